"""A model runner whose next token depends on a state that is a hash of all tokens before it, kept in slots; see fake_runner.

The state is updated token by token from the slot that a row names. A row that starts from a wrong slot, a slot written too early or freed
while it is needed, a replay from a wrong place: each changes every token after it. The pages are checked as `FakeRunner` does, and replayed
tokens are not written to them: they must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.step import Row, RowStates, Step, StepOutput
from tests.support.engine.fake_device import FakeDeviceRunner
from tests.support.engine.fake_runner import EOS, FakeFlight, FakeRunner, next_token

_PRIME = (1 << 61) - 1
_GARBAGE = (-9, -9)
_START = (0, 17)

HashState = tuple[int, int]
"""The number of tokens, and a hash of them."""


def advanced(state: HashState, token: int) -> HashState:
    """The state after one more token."""
    return state[0] + 1, (state[1] * 1_000_003 + 2 * token + 1) % _PRIME


def state_of(tokens: Sequence[int]) -> HashState:
    """The state after a sequence."""
    state = _START
    for token in tokens:
        state = advanced(state, token)
    return state


def token_after(state: HashState, *, seed: int, choice: int, eos_every: int) -> int:
    """The model: the next token is a function of the state and the noise key alone."""
    return next_token(state, seed=seed, choice=choice, eos_every=eos_every)


def generate_from_states(
    prompt: Sequence[int],
    max_tokens: int,
    *,
    seed: int = 0,
    choice: int = 0,
    eos_every: int = 40,
    replaced: tuple[int, int] = (0, 0),
) -> list[int]:
    """What the engine must produce: one sequence, token by token, no cache.

    Args:
        replaced: of a constraint (n, token) that takes the token in place of each nth one; n is 0 for none, whose text ends at EOS.
    """
    state, found = state_of(prompt), list[int]()
    every, other = replaced
    for index in range(1, max_tokens + 1):
        token = token_after(state, seed=seed, choice=choice, eos_every=eos_every)
        if every and index % every == 0:
            token = other
        elif token == EOS and not every:
            break
        found.append(token)
        state = advanced(state, token)
    return found


class FakeStateMemory:
    """The bytes of states, as the runner protocol has them: two int64, and zeros up to `state_bytes`."""

    state_format = "hash"

    def __init__(self, states: list[HashState], state_bytes: int = 1024) -> None:
        self.states, self.state_bytes = states, state_bytes

    def release_states(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self.states[slot] = _GARBAGE

    def read_states(self, slots: Sequence[int]) -> NDArray[np.uint8]:
        found = np.zeros((len(slots), self.state_bytes), dtype=np.uint8)
        for slot, content in zip(slots, found, strict=True):
            content[:16] = np.array(self.states[slot], dtype=np.int64).view(np.uint8)
        return found

    def write_states(self, states: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        for slot, content in states:
            assert content.size == self.state_bytes
            count, value = content[:16].copy().view(np.int64).tolist()
            self.states[slot] = count, value

    def abandon_writes(self) -> None:
        pass


@dataclass
class FakeStateRunner(FakeRunner):
    """See the module.

    Attributes:
        num_replayed_tokens: tokens of rows whose K and V were in the pages.
        num_kept: marks of rows beside the last.
        broken: what was wrong with steps. The engine repeats such a step in parts, which may succeed.
    """

    num_states: int = 8
    state_bytes: int = 1024
    num_replayed_tokens: int = 0
    num_kept: int = 0
    broken: list[AssertionError] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.states: list[HashState] = [_GARBAGE] * self.num_states
        self.state_memory = FakeStateMemory(self.states, self.state_bytes)
        self._rows: dict[tuple[int, int], list[HashState]] = {}  # of a step and a row: the states after its tokens

    def launch(self, step: Step) -> FakeFlight:
        try:
            return self._launch(step)
        except AssertionError as error:
            self.broken.append(error)
            raise

    def _launch(self, step: Step) -> FakeFlight:
        will_fail = (
            step.step_id in self.fail_at or self.is_broken or self.raising & {row.request_id for row in step.rows}
        )
        written = {slot for row in step.rows for _, slot in _states(row).marks}
        if will_fail:  # a real step may have written its slots before it failed
            for slot in written:
                self.states[slot] = _GARBAGE
        else:
            self._check_pages(step)
        flight = super().launch(step)
        self._compute(flight.step)
        return flight

    def _check_pages(self, step: Step) -> None:
        """The K and V of replayed tokens are in the pages, or another row of this step writes them, or a copy does."""
        slots = self.slots.copy()
        for source, target in step.copies:
            slots[target] = self.slots[source]
        places = [
            (
                row.page_ids[position // self.page_size],
                position % self.page_size,
                token,
                index < row.num_replayed_tokens,
            )
            for row in step.rows
            for index, (position, token) in enumerate(enumerate(row.token_ids, row.num_computed_tokens))
        ]
        for page_id, offset, token, is_replayed in places:
            if not is_replayed:
                slots[page_id, offset] = token
        for page_id, offset, token, is_replayed in places:
            assert not is_replayed or slots[page_id, offset] == token, "a replayed token has no K and V"

    def _compute(self, step: Step) -> None:
        written: dict[int, HashState] = {}
        for index, row in enumerate(step.rows):
            states = _states(row)
            assert 0 <= row.num_replayed_tokens <= len(row.token_ids) - row.num_draft_tokens
            state = _START if states.source is None else self.states[states.source]
            after: list[HashState] = []
            for token in row.token_ids:
                state = advanced(state, token)
                after.append(state)
            ends = [end for end, _ in states.marks]
            assert ends == sorted(set(ends))
            assert ends[-1] == len(row.token_ids) - row.num_draft_tokens
            for end, slot in states.marks:
                assert slot not in written, "a slot is written twice in a step"
                written[slot] = after[end - 1]
            self._rows[step.step_id, index] = after
            self.num_replayed_tokens += row.num_replayed_tokens
            self.num_kept += len(ends) - 1
        for row in step.rows:
            others = {slot for other in step.rows if other is not row for _, slot in _states(other).marks}
            assert _states(row).source not in others, "a row reads what another one writes"
        for slot, state in written.items():
            self.states[slot] = state

    def token_after(self, known: Sequence[int], row: Row, step_id: int, number: int) -> int:
        after = self._rows[step_id, number]
        state = after[len(known) - 1 - row.num_computed_tokens]
        return token_after(state, seed=row.seed, choice=row.choice, eos_every=self.eos_every)

    def sample(
        self, flight: FakeFlight, rows: Sequence[Row], bitmask: NDArray[np.int32] | None, walks: object = None
    ) -> None:
        try:
            super().sample(flight, rows, bitmask, walks)
        except AssertionError as error:
            self.broken.append(error)
            raise

    def collect(self, flight: FakeFlight) -> StepOutput:
        for number in range(len(flight.step.rows)):
            self._rows.pop((flight.step.step_id, number))
        return super().collect(flight)


def _states(row: Row) -> RowStates:
    assert row.states is not None
    return row.states


@dataclass
class FakeStateDeviceRunner(FakeStateRunner, FakeDeviceRunner):
    """The same on a pipelined runner."""

    is_pipelined: bool = True
