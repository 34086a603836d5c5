"""A model runner without a model: pages hold token ids, and the next token is a hash of all tokens before it.

It checks what a real runner cannot: that for every row the pages of the whole prefix hold exactly the tokens of that sequence, whoever
wrote them. A wrong share, a page freed too early or a copy in the wrong order fails at once, not as a slightly different text.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.events import TokenLogprob
from rtlang.contract.step import Row, SampledRow, SampledToken, Step, StepOutput
from rtlang.model.text.chat import ChatTemplate

EOS = 0


# Role r opens as `<r>` and closes as `</r>`, after a start token where the conversation begins the sequence.
FAKE_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<' + m.role + '>' + m.content + '</' + m.role + '>' }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


class FakeDecoder:
    """Bytes to text; incomplete characters wait."""

    def __init__(self) -> None:
        self._pending = b""

    def push(self, token_ids: Sequence[int]) -> str:
        self._pending += bytes(t - 3 for t in token_ids if t >= 3)
        text = self._pending.decode(errors="ignore") if _is_whole(self._pending) else ""
        if text:
            self._pending = b""
        return text

    def flush(self) -> str:
        text, self._pending = self._pending.decode(errors="replace"), b""
        return text


def _is_whole(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return True


class FakeTokenizer:
    """Token b + 3 is the byte b; 0 ends, 1 starts, 2 is unused."""

    vocab_size = num_ids = 259
    eos_token_ids = frozenset({EOS})
    special_token_ids = frozenset({EOS, 1})
    longest_token = 1
    bos_name = "<s>"

    def __init__(self) -> None:
        self.chat = ChatTemplate(self, FAKE_TEMPLATE, {"bos_token": self.bos_name})

    def special_names(self, text: str) -> Iterator[tuple[int, int]]:
        return (found.span() for found in re.finditer("<s>", text))

    def start_ids(self) -> list[int]:
        return [1]

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
        if allow_special and text.startswith(self.bos_name):
            return [1, *self.encode(text.removeprefix(self.bos_name), is_start=False)]
        return [byte + 3 for byte in text.encode()]

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id - 3]) if token_id >= 3 else b""

    named_bytes = token_bytes

    def decode(self, token_ids: Sequence[int]) -> str:
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")

    def decoder(self, *, shows_special: bool = False) -> FakeDecoder:
        return FakeDecoder()


@dataclass
class FakeModelConfig:
    vocab_size: int = 259


def next_token(
    tokens: Sequence[int], *, seed: int = 0, choice: int = 0, vocabulary: int = 24, eos_every: int = 40
) -> int:
    """The model: a letter that depends on every token before it, or the end token about once in `eos_every`."""
    digest = hashlib.blake2b(repr((list(tokens), seed, choice)).encode(), digest_size=8).digest()
    value = int.from_bytes(digest, "little")
    if value % eos_every == 0:
        return EOS
    return 3 + ord("a") + value // eos_every % vocabulary


def logprob(tokens: Sequence[int], target: int) -> float:
    """A made-up log-probability of `target` after `tokens`."""
    digest = hashlib.blake2b(repr((list(tokens), target)).encode(), digest_size=4).digest()
    return -math.log1p(int.from_bytes(digest, "little") % 1000)


@dataclass
class FakeFlight:
    """A launched step; `result` once it is sampled."""

    step: Step
    result: StepOutput | None = None


@dataclass
class FakeRunner:
    """See the module. `fail_at` holds numbers of steps that raise; `poison` the request ids whose logits are not finite; `raising` those
    whose steps raise, `raising_late` those whose results are lost, and more tokens than `memory` in a step raise MemoryError."""

    num_pages: int
    page_size: int = 4
    max_model_len: int = 4096
    eos_every: int = 40
    model_config: FakeModelConfig = field(default_factory=FakeModelConfig)
    tokenizer: Any = field(default_factory=FakeTokenizer)
    fail_at: set[int] = field(default_factory=set)
    poison: set[int] = field(default_factory=set)
    raising: set[int] = field(default_factory=set)
    raising_late: set[int] = field(default_factory=set)
    memory: int = 1 << 30
    is_broken: bool = False
    num_computed: int = 0
    max_rows_seen: int = 0
    is_pipelined: bool = False
    is_row_invariant: bool = False
    num_replayed: int = 0
    num_eager: int = 0
    num_states: int = 0
    state_memory: Any = None

    def __post_init__(self) -> None:
        self.slots = np.full((self.num_pages, self.page_size), -1, dtype=np.int64)

    def with_limits(self, config: RuntimeConfig) -> RuntimeConfig:
        return config

    @property
    def page_memory(self) -> FakeRunner:
        return self

    page_format = "int64"
    gives_back = True

    @property
    def page_bytes(self) -> int:
        return 8 * self.page_size

    def release(self, runs: Sequence[tuple[int, int]]) -> None:
        for first, count in runs:
            self.slots[first : first + count] = -1

    def read_pages(self, page_ids: Sequence[int]) -> NDArray[np.uint8]:
        return self.slots[list(page_ids)].view(np.uint8)

    def write_pages(self, pages: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        for page_id, content in pages:
            self.slots[page_id] = content.view(np.int64)

    def abandon_writes(self) -> None:
        pass

    def launch(self, step: Step) -> FakeFlight:
        for source, target in step.copies:
            self.slots[target] = self.slots[source]
        if sum(len(row.token_ids) for row in step.rows) > self.memory:
            raise MemoryError("too many tokens")
        if step.step_id in self.fail_at or self.is_broken or self.raising & {row.request_id for row in step.rows}:
            for row in step.rows:
                for position, token in enumerate(row.token_ids, row.num_computed_tokens):
                    at = row.page_ids[position // self.page_size], position % self.page_size
                    if (
                        self.slots[at] != token
                    ):  # a page of the same tokens may be shared: writing it again changes nothing
                        self.slots[at] = -7
            raise RuntimeError("this step was told to fail")
        self.max_rows_seen = max(self.max_rows_seen, len(step.rows))
        before: Row | None = None
        for row in step.rows:  # all appends of a step come before all reads
            assert row.token_ids
            assert row.num_shared_tokens % self.page_size == 0
            if before is not None:
                num_shared = row.num_shared_tokens // self.page_size
                ends = [each.num_computed_tokens + len(each.token_ids) for each in (before, row)]
                assert row.num_shared_tokens <= min(ends), "more is shared than a row has"
                assert list(row.page_ids[:num_shared]) == list(before.page_ids[:num_shared])
            else:
                assert row.num_shared_tokens == 0
            for offset, token in enumerate(row.token_ids):
                position = row.num_computed_tokens + offset
                self.slots[row.page_ids[position // self.page_size], position % self.page_size] = token
            self.num_computed += len(row.token_ids)
            before = row
        return FakeFlight(step)

    def sample(
        self, flight: FakeFlight, rows: Sequence[Row], bitmask: NDArray[np.int32] | None, walks: object = None
    ) -> None:
        outputs = []
        for number, row in enumerate(rows):
            end = row.num_computed_tokens + len(row.token_ids)
            tokens = self.slots[list(row.page_ids)].reshape(-1)[:end].tolist()
            assert -1 not in tokens
            assert -7 not in tokens
            assert tokens[row.num_computed_tokens :] == list(row.token_ids)
            scores = tuple(
                TokenLogprob(target, logprob(tokens[: row.num_computed_tokens + row.score_offset + i + 1], target))
                for i, target in enumerate(row.score_token_ids)
            )
            is_finite = row.request_id not in self.poison
            sampled = []
            for index in range(row.num_sampled if is_finite else 0):
                each = row.sampled_after(index)
                known = tokens[: end - row.num_draft_tokens + index]
                token = self.token_after(known, row, flight.step.step_id, number)
                if token in each.banned_token_ids:
                    token = 3 + ord("z")
                if each.mask_row is not None:
                    assert bitmask is not None
                    allowed = [t for t in range(259) if bitmask[each.mask_row, t // 32] >> (t % 32) & 1]
                    if not allowed:
                        break
                    token = token if token in allowed else allowed[token % len(allowed)]
                sampled.append(SampledToken(token))
            outputs.append(SampledRow(tuple(sampled), scores, is_finite))
        flight.result = StepOutput(flight.step.step_id, tuple(outputs))

    def token_after(self, known: Sequence[int], row: Row, step_id: int, number: int) -> int:
        """The token that the model samples after `known`, in a row of this number of this step."""
        return next_token(known, seed=row.seed, choice=row.choice, eos_every=self.eos_every)

    def collect(self, flight: FakeFlight) -> StepOutput:
        assert flight.result is not None, "a step is sampled before it is collected"
        if self.raising_late & {row.request_id for row in flight.step.rows}:
            raise RuntimeError("these results were told to be lost")
        return flight.result

    def sample_again(self, flight: FakeFlight, indices: Sequence[int], bitmask: NDArray[np.int32]) -> list[SampledRow]:
        raise AssertionError("no row is lost")

    def can_follow(self, walk: object) -> bool:
        return False

    def close(self) -> None:
        pass


def naive_generate(
    prompt: Sequence[int], max_tokens: int, *, seed: int = 0, choice: int = 0, eos_every: int = 40, min_tokens: int = 0
) -> list[int]:
    """What the engine must produce: one sequence at a time, no cache."""
    tokens = list(prompt)
    for index in range(max_tokens):
        token = next_token(tokens, seed=seed, choice=choice, eos_every=eos_every)
        if token == EOS:
            if index >= min_tokens:
                break
            token = 3 + ord("z")
        tokens.append(token)
    return tokens[len(prompt) :]
