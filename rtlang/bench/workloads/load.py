"""Programs that arrive over time: at random moments, or in bursts of the same mean load."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

BURST = 16
"""Programs of a burst."""

_SHARE_OF_CHAINS = 0.3
_NUM_CHAINED = 3
_FOLLOWING_TOKENS = (16, 64)


@dataclass(frozen=True, slots=True)
class Call:
    """One generation: tokens added to the text before it, and tokens generated."""

    num_prompt: int
    num_output: int


@dataclass(frozen=True, slots=True)
class ProgramLoad:
    """Calls one after the other, each continuing the text of the one before.

    Attributes:
        arrival_s: when it comes, in seconds.
        client: number of the client that sends it.
        priority: of its requests.
    """

    arrival_s: float
    calls: Sequence[Call]
    client: int = 0
    priority: int = 0

    @property
    def num_tokens(self) -> int:
        """Tokens of its prompts and outputs."""
        return sum(call.num_prompt + call.num_output for call in self.calls)


def at_once(num_programs: int, *, longest_prompt: int, seed: int) -> list[ProgramLoad]:
    """Programs that all arrive at time 0: prompts of 16 to `longest_prompt` tokens, log-uniform, and outputs of 16 to 128.

    Three in ten make three calls, the others one.
    """
    rng = random.Random(seed)
    programs = []
    for _ in range(num_programs):
        first = round(math.exp(rng.uniform(math.log(16), math.log(longest_prompt))))
        num_calls = _NUM_CHAINED if rng.random() < _SHARE_OF_CHAINS else 1
        prompts = [first, *(rng.randint(*_FOLLOWING_TOKENS) for _ in range(num_calls - 1))]
        programs.append(ProgramLoad(0.0, [Call(each, rng.randint(16, 128)) for each in prompts]))
    return programs


def poisson(programs: Sequence[ProgramLoad], per_s: float, *, seed: int) -> list[ProgramLoad]:
    """The programs, arriving as a Poisson process with so many per second on average."""
    rng = random.Random(seed)
    return _spread(programs, [rng.expovariate(per_s) for _ in programs])


def bursts(programs: Sequence[ProgramLoad], per_s: float, *, seed: int) -> list[ProgramLoad]:
    """The programs in groups of `BURST` at once; the groups arrive as a Poisson process with the same mean load."""
    rng = random.Random(seed)
    is_first = (number % BURST == 0 for number in range(len(programs)))
    return _spread(programs, [rng.expovariate(per_s / BURST) if each else 0.0 for each in is_first])


def of_clients(programs: Sequence[ProgramLoad], num_clients: int) -> list[ProgramLoad]:
    """The programs, sent by several clients in turn."""
    return [replace(each, client=number % num_clients) for number, each in enumerate(programs)]


def _spread(programs: Sequence[ProgramLoad], waits_s: Sequence[float]) -> list[ProgramLoad]:
    now, found = 0.0, []
    for program, wait_s in zip(programs, waits_s, strict=True):
        now += wait_s
        found.append(replace(program, arrival_s=now))
    return found
