"""Sampling parameters of a generation, and its finish reason and token usage.

`SamplingParams` is frozen, plain data that normalizes and validates itself on construction; the engine does not check it again.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

from rtlang.contract.errors import ParameterError
from rtlang_grammars import Constraint, ConstraintKind

__all__ = ["Constraint", "ConstraintKind", "FinishReason", "SamplingParams", "SelectMethod", "Usage"]

MAX_N = 128
MAX_LOGPROBS = 100
MAX_PROCESSORS = 32
MAX_STOPS = 32
MAX_STOP_CHARS = 16_384
"""Characters of all stop strings of a generation together."""
MAX_STOP_REGEX_CHARS = 4_096
"""Characters of all stop patterns of a generation together."""
MAX_RETRIES = 16
MAX_PRIORITY = 1_000_000
MAX_SEED = (1 << 64) - 1
MAX_MAX_TOKENS = 1 << 24
MAX_TOKEN_ID = (1 << 31) - 1
MAX_DEADLINE_S = 1e9
MAX_CREDIT = (1 << 53) - 1
MAX_RESERVED_TOKENS = 1024
MAX_BAD_WORDS = 1024
MAX_ALLOWED_IDS = 1 << 18
MAX_DRY_BREAKERS = 128
MAX_DRY_BREAKER_CHARS = 40
"""Characters of one sequence breaker."""
DRY_BREAKERS = ("\n", ":", '"', "*")
_LISTS_OF_TEXTS = ("stop", "stop_regex", "bad_words", "dry_sequence_breakers", "thought_marks")
_NORMALIZED = frozenset((*_LISTS_OF_TEXTS, "stop_token_ids", "logit_bias", "logits_processors", "allowed_token_ids"))
"""Options accepted in several forms."""


class FinishReason(StrEnum):
    """Why a generation ended."""

    STOP = "stop"  # an end token, a stop string or token, or a finished constraint
    LENGTH = "length"  # max_tokens reached
    CANCELLED = "cancelled"
    ERROR = "error"


class SelectMethod(StrEnum):
    """How `select` compares choices by the log-probabilities of their tokens."""

    TOKEN_LENGTH_NORMALIZED = "token_length_normalized"  # mean log-probability per token
    GREEDY_TOKEN_SELECTION = "greedy_token_selection"  # token by token, the more likely token wins
    UNCONDITIONAL_LIKELIHOOD_NORMALIZED = "unconditional_likelihood_normalized"  # minus the likelihood without prompt
    FULL_LIKELIHOOD = "full_likelihood"  # summed log-probability


LogitsProcessor = Callable[[list[int], Any], Any]
"""A function of the tokens generated so far and of a `torch.Tensor` of logits, [vocab_size], that returns logits of the same shape."""

FAULT = re.compile(r"(raise|nan|memory|exit)(?::([0-9]{1,7}))?")
"""The form of `SamplingParams.x_fault`."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Options of one generation. Lists are accepted wherever tuples are declared, and normalized.

    Attributes:
        max_tokens: maximum number of tokens to generate. 0: the prompt is computed, and scored with `prompt_logprobs`; the text is empty.
        min_tokens: end tokens and stops are ignored before this number of tokens.
        stop: a string or strings that end the text and are not part of it. A stop ends a constrained text only if the text before it is
            complete; elsewhere it is a part of the text.
        stop_token_ids: tokens that end the text, in addition to the model's end tokens; not part of it. In constrained text they may come
            where it is complete.
        stop_regex: a pattern or patterns (Python `re` without backreferences, atomic groups, possessive quantifiers and conditionals) that
            end the text where a match begins. Generation ends with the first character that makes a match certain.
        temperature: logits are divided by it; 0 (the default, for reproducible programs) takes the most likely token.
        top_k: sample from the k most likely tokens only; 0 means all.
        top_p: then from the smallest set of tokens whose probability reaches top_p.
        min_p: then from tokens at least min_p times as likely as the most likely one.
        presence_penalty, frequency_penalty: subtracted from the logits of generated tokens (once; per occurrence).
        repetition_penalty: positive logits of tokens in prompt or output are divided by it, negative ones multiplied.
        bad_words: a string or strings that the text must not contain as tokenized here, alone or after a space. The last token of such a
            sequence is not sampled after the others; other tokens that spell the same text are allowed.
        allowed_token_ids: the only tokens that may be sampled, end tokens included; None allows all.
        no_repeat_ngram_size: no sequence of this many tokens occurs twice in prompt and output together; 0 allows all.
        typical_p: sample from the smallest set of tokens whose information is closest to the expected one and whose probability reaches
            typical_p (locally typical sampling); after top_k and before top_p.
        top_n_sigma: sample from tokens whose logits are at most this many standard deviations below the highest; before top_k. 0: all.
        xtc_probability, xtc_threshold: with this probability, all tokens at least as likely as the threshold but the least likely of them
            are excluded (exclude top choices); after min_p.
        dry_multiplier, dry_base, dry_allowed_length: a token that continues a repetition of n >= dry_allowed_length tokens of prompt and
            output has dry_multiplier * dry_base ** (n - dry_allowed_length) subtracted from its logit (DRY). 0 as the multiplier: none.
        dry_sequence_breakers: texts across which no repetition is counted.
        dry_range: number of last tokens in which repetitions are looked for; 0 means all.
        mirostat, mirostat_tau, mirostat_eta: 2 (Mirostat 2.0) keeps the surprise of the text near tau bits a token, with the learning rate
            eta: tokens above a limit that is learned are excluded, after the other filters. 0 turns it off. Such text is never drafted.
        dynatemp_range, dynatemp_exponent: the temperature is within `temperature` +- the range, at (entropy / highest entropy) ** exponent
            of it; not below 0.
        logit_bias: pairs (token id, bias added to its logit), or a mapping.
        seed: seed of the sampling noise; None chooses one at random. The same seed gives the same text, whatever else runs.
        n: number of independent completions.
        best_of: number of candidates, of which the one with the largest sum of log-probabilities is the completion. A candidate that cannot
            win any more is stopped. Needs a temperature above 0, and n = 1.
        logprobs: report the log-probability of each generated token and of this many most likely tokens; None reports none.
        prompt_logprobs: the same for the tokens of the prompt.
        ignore_eos: treat the model's end tokens as ordinary tokens.
        include_stop_str_in_output: the text ends after the stop instead of before it: with the stop string, with the character that made a
            stop pattern certain, or with the stop token, but never with the model's end tokens. Not together with a constraint.
        truncate_prompt_tokens: the model sees only this many tokens at the end of the sequence before the generation. The sequence keeps
            all of them, for what follows; None: all.
        logits_processors: functions that change the logits of each generated token, in this order: `function(token_ids, logits)` gets the
            list of the tokens generated so far and the logits, float32 [vocab_size], which it may change in place, and returns the new
            ones. They come before penalties, bias and masks, and tokens of such a text are not drafted. Functions cannot leave their
            process, nor be recorded.
        priority: of this generation's requests, in place of the run's; lower numbers are served earlier. None: that of the run.
        deadline_s: seconds after which this generation fails with DeadlineError, from the moment when its inputs are there. Other nodes of
            the run go on. None: no limit.
        max_retries: number of times an invalid value is generated again, if its constraint has keywords that masks do not enforce (at
            temperature 1 if the temperature is 0, which would repeat the same text). Such text is streamed only once it is valid.
        token_healing: take back the last token of the text before the generation; the first generated token begins with its characters,
            which are not part of the generated text. It counts for max_tokens.
        x_fault: for tests of a runtime with `fault_injection`: the fault of the step that samples the first token, or the token with
            this index (`raise:5`). `raise` and `memory` raise (the latter unless the request is alone), `nan` spoils its logits, and
            `exit` ends the process.
        distortion: report the probability mass that the masks of a constraint removed at each step; on the CPU only.
        thought_marks: the texts that begin and end a thought at the start of the text, by the names of their special tokens; the first is
            empty if the prompt has begun the thought. A constraint must allow the thought; `reserved_tokens` of `max_tokens` are
            kept for the text after it. Without a constraint that text is free, and only `max_thought_tokens` limits a thought.
        max_thought_tokens: maximum number of tokens of the thought, its marks not counted; then the mark that ends it is forced.
        keeps_invalid: a value that stays invalid is the completion, for a program that checks it; otherwise the generation fails.
        shows_special: special tokens stand in the text under their names, as they always do in constrained text.
    """

    max_tokens: int = 128
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    stop_regex: tuple[str, ...] = ()
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    bad_words: tuple[str, ...] = ()
    allowed_token_ids: tuple[int, ...] | None = None
    no_repeat_ngram_size: int = 0
    typical_p: float = 1.0
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_sequence_breakers: tuple[str, ...] = DRY_BREAKERS
    dry_range: int = 0
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    n: int = 1
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    ignore_eos: bool = False
    include_stop_str_in_output: bool = False
    truncate_prompt_tokens: int | None = None
    logits_processors: tuple[LogitsProcessor, ...] = ()
    priority: int | None = None
    deadline_s: float | None = None
    max_retries: int = 2
    token_healing: bool = False
    distortion: bool = False
    best_of: int = 1
    x_fault: str | None = None
    thought_marks: tuple[str, ...] = ()
    max_thought_tokens: int | None = None
    shows_special: bool = False
    keeps_invalid: bool = False

    if TYPE_CHECKING:  # the forms in which options are accepted, for type checkers

        def __init__(
            self,
            max_tokens: int = 128,
            min_tokens: int = 0,
            stop: str | Iterable[str] = (),
            stop_token_ids: Iterable[int] = (),
            stop_regex: str | re.Pattern[str] | Iterable[str | re.Pattern[str]] = (),
            temperature: float = 0.0,
            top_k: int = 0,
            top_p: float = 1.0,
            min_p: float = 0.0,
            presence_penalty: float = 0.0,
            frequency_penalty: float = 0.0,
            repetition_penalty: float = 1.0,
            bad_words: str | Iterable[str] = (),
            allowed_token_ids: Iterable[int] | None = None,
            no_repeat_ngram_size: int = 0,
            typical_p: float = 1.0,
            top_n_sigma: float = 0.0,
            xtc_probability: float = 0.0,
            xtc_threshold: float = 0.1,
            dry_multiplier: float = 0.0,
            dry_base: float = 1.75,
            dry_allowed_length: int = 2,
            dry_sequence_breakers: str | Iterable[str] = ("\n", ":", '"', "*"),
            dry_range: int = 0,
            mirostat: int = 0,
            mirostat_tau: float = 5.0,
            mirostat_eta: float = 0.1,
            dynatemp_range: float = 0.0,
            dynatemp_exponent: float = 1.0,
            logit_bias: Mapping[int, float] | Iterable[tuple[int, float]] = (),
            seed: int | None = None,
            n: int = 1,
            logprobs: int | None = None,
            prompt_logprobs: int | None = None,
            ignore_eos: bool = False,
            include_stop_str_in_output: bool = False,
            truncate_prompt_tokens: int | None = None,
            logits_processors: Iterable[LogitsProcessor] = (),
            priority: int | None = None,
            deadline_s: float | None = None,
            max_retries: int = 2,
            token_healing: bool = False,
            distortion: bool = False,
            best_of: int = 1,
            x_fault: str | None = None,
            thought_marks: Iterable[str] = (),
            max_thought_tokens: int | None = None,
            shows_special: bool = False,
            keeps_invalid: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in _NORMALIZED:
            object.__setattr__(self, name, normalized_option(name, getattr(self, name)))
        _check_int("max_tokens", self.max_tokens, 0, MAX_MAX_TOKENS)
        _check_int("min_tokens", self.min_tokens, 0, self.max_tokens)
        _check_strings("stop", self.stop)
        _check_strings("stop_regex", self.stop_regex)
        for pattern in self.stop_regex:
            if (error := _pattern_error(pattern)) is not None:
                raise ParameterError("stop_regex", pattern, f"expected a valid Python re pattern: {error}")
        _check_ids("stop_token_ids", self.stop_token_ids, 1024)
        _check_float("temperature", self.temperature, 0.0, 100.0)
        _check_int("top_k", self.top_k, 0, 1 << 31)
        _check_float("top_p", self.top_p, 0.0, 1.0, open_low=True)
        _check_float("min_p", self.min_p, 0.0, 1.0)
        _check_float("presence_penalty", self.presence_penalty, -100.0, 100.0)
        _check_float("frequency_penalty", self.frequency_penalty, -100.0, 100.0)
        _check_float("repetition_penalty", self.repetition_penalty, 0.0, 100.0, open_low=True)
        _check_filters(self)
        if not isinstance(self.logit_bias, tuple) or len(self.logit_bias) > 1024:
            raise ParameterError("logit_bias", self.logit_bias, "expected at most 1024 (token id, bias) pairs")
        for pair in self.logit_bias:
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise ParameterError("logit_bias", pair, "expected a (token id, bias) pair")
            _check_int("logit_bias", pair[0], 0, MAX_TOKEN_ID)
            _check_float("logit_bias", pair[1], -1e4, 1e4, where=f" for token {pair[0]}")
        if self.seed is not None:
            _check_int("seed", self.seed, 0, MAX_SEED)
        _check_int("n", self.n, 1, MAX_N)
        _check_int("best_of", self.best_of, 1, MAX_N)
        if self.best_of > 1 and (self.n > 1 or self.temperature == 0):
            raise ParameterError(
                "best_of", self.best_of, "expected 1 with n > 1, or with temperature 0, where all candidates are equal"
            )
        if self.truncate_prompt_tokens is not None:
            _check_int("truncate_prompt_tokens", self.truncate_prompt_tokens, 1, MAX_MAX_TOKENS)
        processors: object = self.logits_processors
        if not isinstance(processors, tuple) or len(processors) > MAX_PROCESSORS or not all(map(callable, processors)):
            raise ParameterError(
                "logits_processors", processors, f"expected a list of at most {MAX_PROCESSORS} functions"
            )
        check_run_options(0 if self.priority is None else self.priority, self.deadline_s)
        _check_int("max_retries", self.max_retries, 0, MAX_RETRIES)
        for name in ("logprobs", "prompt_logprobs"):
            if getattr(self, name) is not None:
                _check_int(name, getattr(self, name), 0, MAX_LOGPROBS)
        if self.x_fault is not None and not (isinstance(self.x_fault, str) and FAULT.fullmatch(self.x_fault)):
            raise ParameterError(
                "x_fault", self.x_fault, "expected raise, nan, memory or exit, or one of them as in raise:5"
            )
        if self.thought_marks and not _are_marks(self.thought_marks):
            raise ParameterError(
                "thought_marks", self.thought_marks, "expected two texts, of which the second is not empty"
            )
        if self.max_thought_tokens is not None:
            _check_int("max_thought_tokens", self.max_thought_tokens, 0, MAX_MAX_TOKENS)
            if not self.thought_marks:
                raise ParameterError("max_thought_tokens", self.max_thought_tokens, "allowed only with thought_marks")
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(name, getattr(self, name), "expected true or false")

    def depends_on_run_seed(self, constraint: Constraint | None) -> bool:
        """Whether noise follows from the seed of the run: no seed of its own, and the generation or a rule of its constraint samples."""
        samples = self.temperature > 0 or self.n > 1 or self.best_of > 1
        return self.seed is None and (samples or (constraint is not None and constraint.may_set_temperature))

    def to_plain(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as lists and scalars.

        Raises:
            ParameterError: there are logits_processors, which have no plain form.
        """
        if self.logits_processors:
            raise ParameterError(
                "logits_processors",
                self.logits_processors[0],
                "functions run only in a runtime of this process, without a journal or a recording",
            )
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                plain[field.name] = (
                    [list(v) if isinstance(v, tuple) else v for v in value] if isinstance(value, tuple) else value
                )
        return plain

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> SamplingParams:
        """The inverse of `to_plain`.

        Raises:
            ParameterError: a field is unknown, or its value has the wrong type or range; names the field.
        """
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in plain.items():
            if name not in known:
                raise ParameterError(str(name), value, f"unknown option; expected one of {', '.join(sorted(known))}")
            if name in _NORMALIZED and not isinstance(value, list):
                raise ParameterError(name, value, "expected a list")
            if isinstance(value, list):
                value = tuple(tuple(v) if isinstance(v, list) else v for v in value)
            values[name] = value
        return cls(**values)


_FLAGS = tuple(field.name for field in fields(SamplingParams) if isinstance(field.default, bool))


def sampling_params(options: Mapping[str, Any], base: SamplingParams | None = None) -> SamplingParams:
    """`base` (by default the defaults) with these options. Programs repeat their options, so equal ones are checked once and shared.

    Raises:
        ParameterError: an option is invalid; names it.
    """
    if not options:
        return SamplingParams() if base is None else base
    key = []
    for name, value in options.items():
        kind = type(value)
        if kind is tuple:
            if not all(type(item) is str for item in value):
                return _with_options(base, options)
        elif kind not in _SCALARS:
            return _with_options(base, options)
        key.append((name, kind, value))  # 1, 1.0 and True are equal keys but not equally valid
    return _known_params(base, tuple(key))


_SCALARS = frozenset((int, float, str, bool, type(None)))


@lru_cache(maxsize=1024)
def _known_params(base: SamplingParams | None, key: tuple[tuple[str, type, Any], ...]) -> SamplingParams:
    return _with_options(base, {name: value for name, _, value in key})


def _with_options(base: SamplingParams | None, options: Mapping[str, Any]) -> SamplingParams:
    return SamplingParams(**options) if base is None else replace(base, **options)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts.

    Attributes:
        cached_tokens: the part of the prompt tokens taken from the prefix cache.
        host_tokens, disk_tokens, peer_tokens: the part of these that came from a tier below the pool.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    host_tokens: int = 0
    disk_tokens: int = 0
    peer_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.host_tokens + other.host_tokens,
            self.disk_tokens + other.disk_tokens,
            self.peer_tokens + other.peer_tokens,
        )


def check_run_options(priority: object, deadline_s: object, seed: object = None) -> None:
    """Check the options of a whole run, or of a generation.

    Raises:
        ParameterError: `priority`, `deadline_s` or `seed` is invalid.
    """
    _check_int("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
    if seed is not None:
        _check_int("seed", seed, 0, MAX_SEED)
    if deadline_s is None:
        return
    if isinstance(deadline_s, bool) or not isinstance(deadline_s, (int, float)) or not deadline_s > 0:
        raise ParameterError("deadline_s", deadline_s, "expected a positive number of seconds")


def check_credit(num_tokens: object) -> None:
    """Check a number of tokens that are granted to a graph.

    Raises:
        ParameterError: it is no integer from 0 to `MAX_CREDIT`.
    """
    _check_int("credit", num_tokens, 0, MAX_CREDIT)


def reserved_tokens(max_tokens: int) -> int:
    """The part of `max_tokens` that a thought leaves to the constrained text that follows it."""
    return min(max_tokens // 2, MAX_RESERVED_TOKENS)


def seconds_left(deadline_s: float) -> float:
    """A deadline in seconds, limited to `MAX_DEADLINE_S`."""
    return float(min(deadline_s, MAX_DEADLINE_S))


@lru_cache(maxsize=256)
def _pattern_error(pattern: str) -> str | None:
    """Why a pattern is no Python `re`; None if it is one."""
    try:
        # About syntax whose meaning may change, such as [[
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            _parser.parse(pattern)  # to compile it takes a second for a class of all letters in either case
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return None


_TEXTS = frozenset(("stop", "stop_regex", "bad_words", "dry_sequence_breakers"))


def normalized_option(name: str, value: Any) -> Any:
    """The canonical form of an option that may be given in several forms; other options and invalid values are returned unchanged.

    Strings and patterns become tuples of one, iterables become tuples, and a mapping of token ids to biases becomes pairs.
    """
    if name not in _NORMALIZED or value is None:
        return value
    if name in _TEXTS and isinstance(value, (str, re.Pattern)):
        value = (value,)
    if name == "logit_bias" and isinstance(value, Mapping):
        value = value.items()
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        return value
    items = tuple(value)
    if name == "stop_regex":
        for item in items:
            if isinstance(item, re.Pattern) and isinstance(item.pattern, bytes):
                raise ParameterError(name, item, "expected a str pattern, not a bytes pattern")
            if isinstance(item, re.Pattern) and item.flags != re.compile(item.pattern).flags:
                raise ParameterError(name, item, "expected a pattern without flags; use inline flags")
        return tuple(item.pattern if isinstance(item, re.Pattern) else item for item in items)
    if name == "logit_bias":
        return tuple(tuple(pair) if isinstance(pair, (list, tuple)) else pair for pair in items)
    return items


def _check_filters(params: SamplingParams) -> None:
    """Check the options of `rtlang.engine.token_rules` and `rtlang.model.filters`.

    Raises:
        ParameterError: an option is invalid; names it.
    """
    _check_texts("bad_words", params.bad_words, MAX_BAD_WORDS, MAX_STOP_CHARS)
    if params.allowed_token_ids is not None:
        if params.allowed_token_ids == ():
            raise ParameterError("allowed_token_ids", [], "expected at least one token id, or None for all")
        _check_ids("allowed_token_ids", params.allowed_token_ids, MAX_ALLOWED_IDS)
    _check_int("no_repeat_ngram_size", params.no_repeat_ngram_size, 0, MAX_MAX_TOKENS)
    _check_float("typical_p", params.typical_p, 0.0, 1.0, open_low=True)
    _check_float("top_n_sigma", params.top_n_sigma, 0.0, 1e4)
    _check_float("xtc_probability", params.xtc_probability, 0.0, 1.0)
    _check_float("xtc_threshold", params.xtc_threshold, 0.0, 1.0)
    _check_float("dry_multiplier", params.dry_multiplier, 0.0, 100.0)
    _check_float("dry_base", params.dry_base, 1.0, 100.0)
    _check_int("dry_allowed_length", params.dry_allowed_length, 1, MAX_MAX_TOKENS)
    _check_texts("dry_sequence_breakers", params.dry_sequence_breakers, MAX_DRY_BREAKERS, MAX_STOP_CHARS)
    for text in params.dry_sequence_breakers:
        if len(text) > MAX_DRY_BREAKER_CHARS:
            raise ParameterError(
                "dry_sequence_breakers", text, f"expected at most {MAX_DRY_BREAKER_CHARS} characters in each entry"
            )
    _check_int("dry_range", params.dry_range, 0, MAX_MAX_TOKENS)
    if type(params.mirostat) is not int or params.mirostat not in (0, 2):
        raise ParameterError(
            "mirostat", params.mirostat, "expected 0 (off) or 2 (Mirostat 2.0); mode 1 is not supported"
        )
    _check_float("mirostat_tau", params.mirostat_tau, 0.0, 100.0, open_low=True)
    _check_float("mirostat_eta", params.mirostat_eta, 0.0, 1.0, open_low=True)
    _check_float("dynatemp_range", params.dynatemp_range, 0.0, 100.0)
    _check_float("dynatemp_exponent", params.dynatemp_exponent, 0.0, 100.0)
    if params.temperature == 0:
        for name in ("xtc_probability", "mirostat", "dynatemp_range"):
            if getattr(params, name):
                raise ParameterError(
                    name, getattr(params, name), "expected 0 with temperature 0, which takes the most likely token"
                )


def _check_int(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ParameterError(name, value, f"expected an integer from {low} to {high}")


def _check_float(name: str, value: object, low: float, high: float, *, open_low: bool = False, where: str = "") -> None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    if not good or (open_low and value == low):
        bounds = f"above {low:g} and at most {high:g}" if open_low else f"from {low:g} to {high:g}"
        raise ParameterError(name, value, f"expected a number {bounds}{where}")


def _check_strings(name: str, value: object) -> None:
    what = "a string or a list of strings" if name == "stop" else "a string pattern or a list of string patterns"
    _check_texts(name, value, MAX_STOPS, MAX_STOP_CHARS if name == "stop" else MAX_STOP_REGEX_CHARS, what)


def _check_texts(
    name: str, value: object, max_entries: int, limit: int, what: str = "a string or a list of strings"
) -> None:
    if not isinstance(value, tuple) or len(value) > max_entries:
        raise ParameterError(name, value, f"expected {what} with at most {max_entries} entries")
    for item in value:
        if not isinstance(item, str) or not item:
            raise ParameterError(name, item, f"expected {what}, none of them empty")
        if not item.isascii() and any("\ud800" <= character <= "\udfff" for character in item):
            raise ParameterError(name, item, "expected text without lone surrogates")
    num_chars = sum(map(len, value))
    if num_chars > limit:
        raise ParameterError(
            name, f"{num_chars} characters", f"expected at most {limit} characters in all entries together"
        )


def _are_marks(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) != 2 or not all(isinstance(each, str) for each in value):
        return False
    return bool(value[1]) and sum(map(len, value)) <= MAX_STOP_CHARS


def _check_ids(name: str, value: object, max_entries: int) -> None:
    if not isinstance(value, tuple) or len(value) > max_entries:
        raise ParameterError(name, value, f"expected a list of at most {max_entries} token ids")
    for item in value:
        _check_int(name, item, 0, MAX_TOKEN_ID)


def as_constraint(given: Constraint | Mapping[str, Any]) -> Constraint:
    """A constraint, or the one of a JSON schema that is given as a map.

    Raises:
        ParameterError: it is something else, or not JSON.
    """
    if isinstance(given, Mapping):
        try:
            return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(dict(given)))
        except (TypeError, ValueError, RecursionError) as error:
            raise ParameterError("constraint", given, f"expected a JSON schema: {error}") from None
    if not isinstance(given, Constraint):
        raise ParameterError("constraint", given, "expected a Constraint, or a JSON schema as a map")
    return given
