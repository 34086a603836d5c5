"""Measures what a server keeps of agents' conversations: traces are replayed against `rtlang serve`, with and without inferred sessions.

Every replay has a server of its own, whose KV pool holds all sessions at their largest, or a third or a tenth of them.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from rtlang.bench.agents.catalogue import DOORS
from rtlang.bench.agents.model import AFTER, BEFORE, SHAPE, write_model
from rtlang.bench.agents.replay import Marks, replay, warm_up
from rtlang.bench.agents.report import INFERRED, LRU, AgentFigures, AgentsReport
from rtlang.bench.agents.traces import Task, TraceOptions, make_tasks
from rtlang.bench.machine import Environment
from rtlang.bench.server_process import ServerProcess
from rtlang.contract.config import RuntimeConfig
from rtlang.model.system_resources import num_cores
from rtlang.model.text.tokenizer import Tokenizer

FACTORS = (1.0, 3.0, 10.0)
_PAGE_SIZE = 16


@dataclass(frozen=True, slots=True)
class AgentsOptions:
    """What to measure.

    Attributes:
        trace: the sizes of the trace.
        num_sessions: tasks that run at the same time.
        factors: the tokens of all sessions at their largest, relative to the pool.
        sides: `LRU`, `INFERRED` or both.
        doors: names in `DOORS`; tasks use them in turns.
        speed: the delays of tools are divided by it.
    """

    trace: TraceOptions = field(default_factory=TraceOptions)
    num_sessions: int = 20
    factors: tuple[float, ...] = FACTORS
    sides: tuple[str, ...] = (LRU, INFERRED)
    doors: tuple[str, ...] = tuple(DOORS)
    speed: float = 10.0


def run_agents(
    options: AgentsOptions,
    *,
    command: str = "rtlang bench agents",
    tell: Callable[[str], None] = lambda line: None,
) -> AgentsReport:
    """Run the benchmark and return its figures.

    Raises:
        EngineDeadError: a server does not start.
        RtlangError: a server refuses a turn.
    """
    tasks = make_tasks(options.trace)
    infers = any(item.name == "infer_sessions" for item in fields(RuntimeConfig))
    sides = [side for side in options.sides if infers or side == LRU]
    figures: list[AgentFigures] = []
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        tell("writing the model")
        directory = write_model(Path(scratch) / "agents")
        tokenizer = Tokenizer.from_pretrained(directory)
        (before,), (after,) = (tokenizer.encode(name, is_start=False, allow_special=True) for name in (BEFORE, AFTER))
        sizes = _Sizes.of(tasks, options.num_sessions, tokenizer)
        for factor in options.factors:
            num_pages = sizes.num_pages(factor)
            for side in sides:
                name = f"{factor:g}x, {side}"
                tell(f"{name}: starting the server")
                settings = ["--model", str(directory), "--page-size", str(_PAGE_SIZE), "--num-pages", str(num_pages)]
                if infers:
                    settings.append("--infer-sessions" if side == INFERRED else "--no-infer-sessions")
                with ServerProcess("--no-request-log", *settings) as server:
                    warm_up(server.http_url, tasks, options.doors)
                    found = replay(
                        server.http_url,
                        tasks,
                        options.num_sessions,
                        Marks(before, after),
                        doors=options.doors,
                        speed=options.speed,
                        tell=lambda num, name=name: tell(f"{name}: {num} of {len(tasks)} tasks"),  # type: ignore[misc]
                    )
                figures.append(AgentFigures.of(factor, side, found))
    about = f"random llama of {SHAPE['num_hidden_layers']} layers, hidden {SHAPE['hidden_size']}"
    environment = Environment.of(command, about, "bfloat16", num_cores())
    summary = (
        f"{len(tasks)} tasks of about {options.trace.mean_turns} turns, {options.num_sessions} at once, texts scaled by "
        f"{options.trace.scale:.3g}, delays by {1 / options.speed:.3g}; the largest prompt has about {sizes.longest:,} tokens"
    )
    notes = [] if infers else ["this version infers no sessions: only plain LRU was measured"]
    return AgentsReport(environment, summary, tuple(figures), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Tokens of a trace.

    Attributes:
        shared: of all system prompts with their tools.
        own: of a mean task at its largest, without its system prompt.
        longest: of the largest prompt with its output.
    """

    shared: int
    own: int
    longest: int
    num_sessions: int

    @classmethod
    def of(cls, tasks: Sequence[Task], num_sessions: int, tokenizer: Tokenizer) -> _Sizes:
        systems = {task.system: _count(tokenizer, task.system + json.dumps(task.tools)) for task in tasks}
        own = [_own_tokens(tokenizer, task) for task in tasks]
        longest = max(size + systems[task.system] for size, task in zip(own, tasks, strict=True))
        return cls(sum(systems.values()), round(sum(own) / len(own)), longest, num_sessions)

    def num_pages(self, factor: float) -> int:
        """The pages of a pool that holds the sessions' tokens divided by `factor`, but at least the largest prompt."""
        num_tokens = max((self.shared + self.num_sessions * self.own) / factor, 1.25 * self.longest)
        return math.ceil(num_tokens / _PAGE_SIZE)


_CALL_TOKENS = 48
_FRAMING_TOKENS = 16


def _own_tokens(tokenizer: Tokenizer, task: Task) -> int:
    """The tokens of a task's last prompt and answer without the system prompt, with those of forks, which are kept beside it."""
    num = _count(tokenizer, task.text) + task.max_tokens
    turns = [turn for each in task.turns for turn in (each, *each.fork)]
    return num + sum(_count(tokenizer, turn.result) + _CALL_TOKENS + _FRAMING_TOKENS for turn in turns)


def _count(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, is_start=False))
