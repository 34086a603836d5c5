"""A runner whose tokens come from a script. Everything around it is real: pages, prefix cache, batches, masks, drafts and sessions.

A page holds the ids of its tokens, so the runner sees of a sequence what a model would: the tokens in its pages. At the first token of a
reply it reads the conversation from them and takes the reply of the script; from then on it continues the reply's text, with whatever
tokens the mask of the request allows. A text that the mask forbids fails the request: a model would have been made to say something else.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, RtlangError, ScriptError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.step import Row, SampledRow, SampledToken, Step, StepOutput
from rtlang.model.loader import model_directory
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.runner import PageMemory, StateContent
from rtlang.model.scripted.prompt_reading import PromptReader
from rtlang.model.scripted.reply_text import reply_text
from rtlang.model.scripted.script import Script, ScriptedReply
from rtlang.model.scripted.script_file import read_script, script_path
from rtlang.model.scripted.vocabulary import scripted_tokenizer
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_grammars.formats.catalogue import format_named
from rtlang_grammars.machine.export import Walk

_TOKEN = np.dtype(np.int32)
_DEFAULT_TOKENS = 1 << 21
"""Tokens of the cache; 8 MiB."""
_MAX_REPLIES = 4096
_UNLIKELY = -20.0
_MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class _Flight:
    step: Step
    output: list[SampledRow] = field(default_factory=list)


@dataclass(slots=True)
class _Writing:
    """A reply that is being written.

    Attributes:
        start: tokens of the sequence before the reply.
        plan: the bytes of the reply.
        end_of_thought, after_thought: the bytes of the plan before the mark that ends the thought, and before what follows it.
        tokens: the tokens of the plan by the number of bytes before each.
        written, num_bytes: the last written tokens and their bytes, so that the next token is found without counting again.
    """

    reply: ScriptedReply
    start: int
    plan: bytes
    end_of_thought: int
    after_thought: int
    tokens: dict[int, int]
    written: list[int] = field(default_factory=list)
    num_bytes: int = 0
    is_paced: bool = False


class ScriptedRunner:
    """The `Runner` of a script; see the module.

    Args:
        sleep: waits for the delays of the script.
    """

    is_pipelined: ClassVar[bool] = False
    is_row_invariant: ClassVar[bool] = True
    num_states: ClassVar[int] = 0
    state_memory: ClassVar[StateContent | None] = None
    page_format: ClassVar[str] = "script"

    script: Script
    model_config: ModelConfig
    tokenizer: Tokenizer

    def __init__(self, config: RuntimeConfig, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.config = config
        self.num_replayed = self.num_eager = 0
        self._sleep = sleep
        self._slots = np.zeros((0, config.page_size), dtype=_TOKEN)
        self._replies: OrderedDict[tuple[int, int], _Writing] = OrderedDict()

    def load(self) -> None:
        """Read the script and allocate the pages.

        Raises:
            ConfigError: the script cannot be used, or a setting is one that a scripted model does not have.
        """
        path = script_path(self.config.model)
        assert path is not None
        self.script = script = read_script(path)
        if self.config.tensor_parallel != 1:
            raise ConfigError("tensor_parallel", self.config.tensor_parallel, "expected 1 for a scripted model")
        if self.config.device != "cpu":
            raise ConfigError("device", self.config.device, "expected cpu for a scripted model")
        self.tokenizer = scripted_tokenizer(script)
        tiny = ModelConfig.from_pretrained(model_directory("rtlang:tiny"))
        self.model_config = replace(tiny, max_position_embeddings=script.max_model_len)
        self._format = format_named(script.format)
        self._reader = PromptReader(self.tokenizer)
        self._token_of = _tokens_by_bytes(self.tokenizer)
        self._eos = min(self.tokenizer.eos_token_ids)
        num_pages = self.config.num_pages
        if num_pages is None:
            room = max(_DEFAULT_TOKENS, self.max_model_len) * _TOKEN.itemsize
            num_pages = max(2, (self.config.cache_bytes or room) // self.page_bytes)
        self._slots = np.zeros((num_pages, self.config.page_size), dtype=_TOKEN)

    @property
    def max_model_len(self) -> int:
        """The setting of the request, else of the script."""
        return self.config.max_model_len or self.script.max_model_len

    @property
    def num_pages(self) -> int:
        """Pages in the pool."""
        return len(self._slots)

    def with_limits(self, config: RuntimeConfig) -> RuntimeConfig:
        """See `Runner`: the settings as they are."""
        return config

    @property
    def page_memory(self) -> PageMemory:
        """See `Runner`: the runner itself."""
        return self

    @property
    def page_bytes(self) -> int:
        """Bytes of a page."""
        return self.config.page_size * _TOKEN.itemsize

    @property
    def gives_back(self) -> bool:
        """See `PageMemory`."""
        return True

    def release(self, runs: Sequence[tuple[int, int]]) -> None:
        """See `PageMemory`."""
        for first, count in runs:
            self._slots[first : first + count] = 0

    def read_pages(self, page_ids: Sequence[int]) -> NDArray[np.uint8]:
        """See `PageMemory`."""
        return self._slots[list(page_ids)].view(np.uint8)

    def write_pages(self, pages: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        """See `PageMemory`."""
        for page_id, content in pages:
            self._slots[page_id] = content.view(_TOKEN)

    def abandon_writes(self) -> None:
        """See `PageMemory`: a page is written when its iterable gives it."""

    def close(self) -> None:
        """See `Runner`."""
        self._replies.clear()

    def sample_again(self, flight: _Flight, indices: Sequence[int], bitmask: NDArray[np.int32]) -> list[SampledRow]:
        """See `Runner`; never called, since no row is lost."""
        raise AssertionError(f"no row of {indices} can be lost: the host computes all masks")

    def can_follow(self, walk: Walk) -> bool:
        """See `Runner`; always False."""
        return False

    def launch(self, step: Step) -> _Flight:
        """See `Runner`; writes the tokens into their pages."""
        size = self.config.page_size
        for source, target in step.copies:
            self._slots[target] = self._slots[source]
        for row in step.rows:
            if not len(row.token_ids):
                raise ValueError(f"row of request {row.request_id} has no tokens")
            positions = np.arange(row.num_computed_tokens, row.num_computed_tokens + len(row.token_ids))
            pages = np.asarray(row.page_ids)[positions // size]
            self._slots[pages, positions % size] = row.token_ids
        return _Flight(step)

    def sample(
        self,
        flight: _Flight,
        rows: Sequence[Row],
        bitmask: NDArray[np.int32] | None = None,
        walks: Mapping[int, Walk] = MappingProxyType({}),
    ) -> None:
        """See `Runner`; takes the tokens of the script, after its delays."""
        wait_s = 0.0
        for row in rows:
            end = row.num_computed_tokens + len(row.token_ids)
            known = self._slots[list(row.page_ids)].reshape(-1)[:end]
            scores = self._scores(row, known) if len(row.score_token_ids) else ()
            found = SampledRow((), scores)
            if row.needs_sample:
                writing = self._writing(row, known[: end - row.num_draft_tokens])
                if isinstance(writing, RtlangError):
                    found = SampledRow((), scores, error=writing)
                else:
                    wait_s = max(wait_s, self._delay(writing))
                    found = self._sampled(row, writing, known, bitmask)._replace(scores=scores)
            flight.output.append(found)
        if wait_s:
            self._sleep(wait_s)

    def collect(self, flight: _Flight) -> StepOutput:
        """See `Runner`."""
        return StepOutput(flight.step.step_id, tuple(flight.output))

    # -- replies

    def _writing(self, row: Row, known: NDArray[np.int32]) -> _Writing | RtlangError:
        """The reply that a row writes, or why there is none. `known`: the tokens before the first sampled one."""
        key = row.request_id, row.choice
        found = self._replies.get(key)
        if found is None or not row.num_output_tokens:
            try:
                found = self._begun(known[: len(known) - row.num_output_tokens])
            except RtlangError as error:  # not kept: the steps that measure the runner have ids of later requests
                return error
            self._replies[key] = found
            if len(self._replies) > _MAX_REPLIES:
                self._replies.popitem(last=False)
        self._replies.move_to_end(key)
        return found

    def _begun(self, prompt: NDArray[np.int32]) -> _Writing:
        reading = self._reader.read(prompt.tolist())
        reply = self.script.reply_to(reading.conversation)
        text = reply_text(self._format, reply)
        plan, thought = text.text, text.end_of_thought
        skipped = 0
        span = self._format.reasoning
        if reading.begun and plan.startswith(reading.begun):  # the prompt has begun the reply
            skipped = len(reading.begun)
        elif span is not None and reading.begun.rstrip().endswith(span.end):  # the prompt has closed the thought
            skipped = text.num_thought_chars
        marks = [
            max(0, len(plan[:each].encode()) - len(plan[:skipped].encode()))
            for each in (thought, text.num_thought_chars)
        ]
        return self._written(reply, len(prompt), plan[skipped:], marks[0], marks[1])

    def _written(
        self, reply: ScriptedReply, start: int, text: str, end_of_thought: int, after_thought: int
    ) -> _Writing:
        tokens, place = {}, 0
        for token_id in self.tokenizer.encode(text, is_start=False):
            tokens[place] = token_id
            place += len(self.tokenizer.token_bytes(token_id))
        return _Writing(reply, start, text.encode("utf-8", "replace"), end_of_thought, after_thought, tokens)

    def _delay(self, writing: _Writing) -> float:
        """Seconds before the next tokens of a reply."""
        rate = self.script.tokens_per_s
        if not writing.is_paced:
            writing.is_paced = True
            return self.script.first_token_s if writing.reply.delay_s is None else writing.reply.delay_s
        return 0.0 if rate is None else 1 / rate

    # -- tokens

    def _sampled(
        self, row: Row, writing: _Writing, known: NDArray[np.int32], bitmask: NDArray[np.int32] | None
    ) -> SampledRow:
        """The tokens of a row: one after each draft that the script agrees with, and one more."""
        sampled: list[SampledToken] = []
        num_before = len(known) - row.num_draft_tokens
        for index in range(row.num_sampled):
            each = row.sampled_after(index)
            try:
                token_id = self._next(writing, known[writing.start : num_before + index].tolist(), each, bitmask)
            except RtlangError as error:
                return SampledRow(tuple(sampled), error=None if sampled else error)
            logprobs = row.params.logprobs
            top = ((token_id, 0.0),) if logprobs else ()
            sampled.append(SampledToken(token_id, None if logprobs is None else TokenLogprob(token_id, 0.0, top)))
            if index < row.num_draft_tokens and row.draft_token_ids[index] != token_id:
                break
        return SampledRow(tuple(sampled))

    def _next(self, writing: _Writing, written: list[int], row: Row, bitmask: NDArray[np.int32] | None) -> int:
        """The next token of a reply after the tokens `written`.

        Raises:
            RtlangError: the failure of the reply, or a ScriptError if the request does not allow its text.
        """
        place = self._place(writing, written)
        mask = None if row.mask_row is None or bitmask is None else bitmask[row.mask_row]
        for token_id in self._candidates(writing, place):
            if self._is_allowed(token_id, row, mask):
                return token_id

        def is_allowed(cut: _Writing) -> bool:
            return any(self._is_allowed(each, row, mask) for each in self._candidates(cut, place))

        if self._cut_thought(writing, place, is_allowed):
            return self._next(writing, written, row, bitmask)
        rest = writing.plan[place:]
        if not rest and writing.reply.failure is not None:
            raise writing.reply.failure.error()
        if not rest.strip() and self._is_allowed(self._eos, row, mask):
            return self._eos
        before, after = _text(writing.plan[:place]), _text(rest)
        what = f"{after[:_MAX_SHOWN]!r}" if rest else "the end of the reply"
        raise ScriptError(
            f"{writing.reply.place}: the request does not allow {what} after {before[-_MAX_SHOWN:]!r}; "
            "its schema, grammar, tool choice, or limits of tokens ask for something else"
        )

    def _place(self, writing: _Writing, written: list[int]) -> int:
        """The bytes of the plan that are written.

        Raises:
            ScriptError: something else is written.
        """
        num_known = len(writing.written)
        if written[:num_known] == writing.written:
            more, place = written[num_known:], writing.num_bytes
        else:
            more, place = written, 0
        for token_id in more:
            data = self.tokenizer.named_bytes(token_id)
            fits = partial(_goes_on, data=data, place=place)
            if not fits(writing) and not self._cut_thought(writing, place, fits):
                before, after = (_text(each) for each in (writing.plan[:place], writing.plan[place:]))
                raise ScriptError(
                    f"{writing.reply.place}: the text goes on with {_text(data)!r} after {before[-_MAX_SHOWN:]!r}, "
                    f"the reply with {after[:_MAX_SHOWN]!r}"
                )
            place += len(data)
        writing.written, writing.num_bytes = written, place
        return place

    def _candidates(self, writing: _Writing, place: int) -> Iterator[int]:
        """The tokens that continue the plan: first the tokenizer's choice, then all others, longest first."""
        if place >= len(writing.plan):
            if writing.reply.failure is None:
                yield self._eos
            return
        if (usual := writing.tokens.get(place)) is not None:
            yield usual
        for length in range(min(self.tokenizer.longest_token, len(writing.plan) - place), 0, -1):
            if (found := self._token_of.get(writing.plan[place : place + length])) is not None:
                yield found

    def _cut_thought(self, writing: _Writing, place: int, fits: Callable[[_Writing], bool]) -> bool:
        """End a thought early, as the request makes a model do. Returns whether the text after it `fits`."""
        if place > writing.end_of_thought:
            return False
        for target in (writing.end_of_thought, writing.after_thought):
            cut = _without(writing, place, target)
            if target > place and fits(cut):
                writing.plan, writing.tokens = cut.plan, cut.tokens
                writing.end_of_thought = writing.after_thought = -1
                return True
        return False

    @staticmethod
    def _is_allowed(token_id: int, row: Row, mask: NDArray[np.int32] | None) -> bool:
        if token_id in row.banned_token_ids:
            return False
        allowed = None if row.filters is None else row.filters.allowed_token_ids
        if allowed is not None and token_id not in allowed:
            return False
        return mask is None or bool(mask[token_id // 32] >> (token_id % 32) & 1)

    def _scores(self, row: Row, known: NDArray[np.int32]) -> tuple[TokenLogprob, ...]:
        """Scores of given tokens: tokens of the script's reply are certain, others unlikely."""
        begin = row.num_computed_tokens + row.score_offset
        found = []
        try:
            writing = self._begun(known[: begin + 1 if begin + 1 <= len(known) else len(known)])
            rest = writing.plan
        except RtlangError:
            rest = b""
        for token_id in row.score_token_ids:
            data = self.tokenizer.named_bytes(token_id)
            is_next = bool(data) and rest.startswith(data)
            rest = rest[len(data) :] if is_next else b""
            logprob = 0.0 if is_next else _UNLIKELY
            found.append(TokenLogprob(token_id, logprob, ((token_id, logprob),) if row.num_score_top else ()))
        return tuple(found)


def _without(writing: _Writing, place: int, target: int) -> _Writing:
    """The reply with the bytes of its plan from `place` to `target` left out."""
    shift = target - place
    tokens = {at: each for at, each in writing.tokens.items() if at < place}
    tokens |= {at - shift: each for at, each in writing.tokens.items() if at >= target}
    return replace(writing, plan=writing.plan[:place] + writing.plan[target:], tokens=tokens)


def _goes_on(writing: _Writing, data: bytes, place: int) -> bool:
    """Whether the plan has these bytes at a place."""
    return writing.plan.startswith(data, place)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _tokens_by_bytes(tokenizer: Tokenizer) -> dict[bytes, int]:
    found = {tokenizer.token_bytes(token_id): token_id for token_id in range(tokenizer.vocab_size)}
    found.pop(b"", None)
    return found
