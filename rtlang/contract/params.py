"""What a caller may ask of one generation, and what is reported about it.

`SamplingParams` is frozen, plain data and validates itself once, at the edge; the engine trusts it afterwards. The names and
meanings of the options are the field's usual ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang_grammars import Constraint, ConstraintKind

__all__ = ["Constraint", "ConstraintKind", "FinishReason", "SamplingParams", "SelectMethod", "Usage"]

MAX_N = 128
MAX_LOGPROBS = 100
MAX_STOPS = 32
MAX_RETRIES = 16
MAX_PRIORITY = 1_000_000
MAX_DEADLINE_S = 1e9


class FinishReason(StrEnum):
    """Why a generation ended."""

    STOP = "stop"  # an end token, a stop string or token, or a finished constraint
    LENGTH = "length"  # max_tokens reached
    CANCELLED = "cancelled"
    ERROR = "error"


class SelectMethod(StrEnum):
    """How `select` compares its choices (all from the model's log-probabilities of their tokens)."""

    TOKEN_LENGTH_NORMALIZED = "token_length_normalized"  # mean log-probability per token
    GREEDY_TOKEN_SELECTION = "greedy_token_selection"  # token by token, the likelier token wins
    UNCONDITIONAL_LIKELIHOOD_NORMALIZED = "unconditional_likelihood_normalized"  # minus the likelihood without prompt
    FULL_LIKELIHOOD = "full_likelihood"  # summed log-probability


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Options of one `gen`.

    Attributes:
        max_tokens: most tokens to generate.
        min_tokens: end tokens and stops are held back until so many tokens are there.
        stop: strings that end the text; they are not part of it. A constrained text ends by its constraint alone: no stop applies to it.
        stop_token_ids: tokens that end the text, besides the model's own end tokens; not part of it.
        stop_regex: patterns (Python `re`) that end the text where they first match; the match is not part of it.
        temperature: 0 takes the most likely token; otherwise logits are divided by it. Default 0, so that programs repeat.
        top_k: draw from the k most likely tokens only; 0 means all.
        top_p: then from the smallest set whose probability reaches top_p.
        min_p: then from tokens at least min_p times as likely as the likeliest.
        presence_penalty, frequency_penalty: subtracted from logits of tokens already generated (once; per occurrence).
        repetition_penalty: logits of tokens in prompt or output are divided (positive) or multiplied (negative) by it.
        logit_bias: pairs (token id, added to its logit).
        seed: of the noise; None draws one. Same seed, same text, whatever else runs.
        n: how many independent texts.
        logprobs: report the log-probability of each generated token and of that many most likely ones; None reports none.
        prompt_logprobs: the same for the tokens of the prompt.
        ignore_eos: the model's end tokens are ordinary tokens.
        max_retries: how often a constrained text is generated again that fails what its constraint leaves to be checked (for temperature 0
            then at temperature 1, as the same text would come again). Its text is shown only when it is valid.
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
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    n: int = 1
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    ignore_eos: bool = False
    max_retries: int = 2

    def __post_init__(self) -> None:
        _check_int("max_tokens", self.max_tokens, 1, 1 << 24)
        _check_int("min_tokens", self.min_tokens, 0, self.max_tokens)
        _check_strings("stop", self.stop)
        _check_strings("stop_regex", self.stop_regex)
        _check_ints("stop_token_ids", self.stop_token_ids)
        _check_float("temperature", self.temperature, 0.0, 100.0)
        _check_int("top_k", self.top_k, 0, 1 << 31)
        _check_float("top_p", self.top_p, 0.0, 1.0, open_low=True)
        _check_float("min_p", self.min_p, 0.0, 1.0)
        _check_float("presence_penalty", self.presence_penalty, -100.0, 100.0)
        _check_float("frequency_penalty", self.frequency_penalty, -100.0, 100.0)
        _check_float("repetition_penalty", self.repetition_penalty, 0.0, 100.0, open_low=True)
        if not isinstance(self.logit_bias, tuple) or len(self.logit_bias) > 1024:
            raise ParameterError("logit_bias", self.logit_bias, "at most 1024 pairs (token id, bias)")
        for pair in self.logit_bias:
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise ParameterError("logit_bias", pair, "pairs (token id, bias) are allowed")
            _check_int("logit_bias", pair[0], 0, 1 << 31)
            _check_float("logit_bias", pair[1], -1e4, 1e4)
        if self.seed is not None:
            _check_int("seed", self.seed, 0, (1 << 64) - 1)
        _check_int("n", self.n, 1, MAX_N)
        _check_int("max_retries", self.max_retries, 0, MAX_RETRIES)
        for name in ("logprobs", "prompt_logprobs"):
            if getattr(self, name) is not None:
                _check_int(name, getattr(self, name), 0, MAX_LOGPROBS)
        if not isinstance(self.ignore_eos, bool):
            raise ParameterError("ignore_eos", self.ignore_eos, "true or false is allowed")

    def to_plain(self) -> dict[str, Any]:
        """Only the fields that differ from their default, as lists and scalars."""
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
            ParameterError: an unknown field, or a value of the wrong type or range; names it.
        """
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in plain.items():
            if name not in known:
                raise ParameterError(str(name), value, f"unknown option; known are {', '.join(sorted(known))}")
            if isinstance(value, list):
                value = tuple(tuple(v) if isinstance(v, list) else v for v in value)
            values[name] = value
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens spent. `cached_tokens` of the prompt tokens came from the prefix cache."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )


def check_run_options(priority: object, deadline_s: object) -> None:
    """Check the options of a whole run.

    Raises:
        ParameterError: the priority is no integer of a moderate size, or the deadline no positive number of seconds (or None).
    """
    _check_int("priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
    if deadline_s is None:
        return
    if isinstance(deadline_s, bool) or not isinstance(deadline_s, (int, float)) or not deadline_s > 0:
        raise ParameterError("deadline_s", deadline_s, "a positive number of seconds is allowed")


def seconds_left(deadline_s: float) -> float:
    """A deadline as a moderate number of seconds: one in the far future is as good as any other."""
    return float(min(deadline_s, MAX_DEADLINE_S))


def _check_int(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ParameterError(name, value, f"an integer from {low} to {high} is allowed")


def _check_float(name: str, value: object, low: float, high: float, *, open_low: bool = False) -> None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    if not good or (open_low and value == low):
        over = "over" if open_low else "from"
        raise ParameterError(name, value, f"a number {over} {low:g} to {high:g} is allowed")


def _check_strings(name: str, value: object) -> None:
    if not isinstance(value, tuple) or len(value) > MAX_STOPS or not all(isinstance(v, str) and v for v in value):
        raise ParameterError(name, value, f"at most {MAX_STOPS} non-empty strings are allowed")


def _check_ints(name: str, value: object) -> None:
    if not isinstance(value, tuple) or len(value) > 1024:
        raise ParameterError(name, value, "at most 1024 token ids are allowed")
    for item in value:
        _check_int(name, item, 0, 1 << 31)
