"""Options of generations: names, defaults, and their translation to options of `rt.gen`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError

REGEX_INT = r"[-+]?[0-9]+[ \n]*"
REGEX_FLOAT = r"[-+]?[0-9]*\.?[0-9]+[ \n]*"
REGEX_BOOL = r"(True|False)"
REGEX_STR = r"\"[\w\d\s]*\""

DTYPE_REGEXES: dict[Any, str] = {
    int: REGEX_INT,
    "int": REGEX_INT,
    float: REGEX_FLOAT,
    "float": REGEX_FLOAT,
    bool: REGEX_BOOL,
    "bool": REGEX_BOOL,
    str: REGEX_STR,
    "str": REGEX_STR,
}
_NUMBERS = (int, "int", float, "float")
_NUMBER_STOPS = (" ", "\n")

_SAME = (
    *("n", "min_tokens", "stop_token_ids", "stop_regex", "temperature", "top_p", "min_p"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "ignore_eos"),
)
"""Options that mean the same under the same name."""

OPTION_NAMES = frozenset(
    (
        *(
            "max_new_tokens",
            "min_new_tokens",
            "stop",
            "stop_token_ids",
            "stop_regex",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
        ),
        *("frequency_penalty", "presence_penalty", "ignore_eos", "n"),
        *("return_logprob", "logprob_start_len", "top_logprobs_num", "return_text_in_logprobs"),
    )
)
"""Keywords of a run that are options of its generations."""

RUN_DEFAULTS: Mapping[str, Any] = {"max_tokens": 128, "temperature": 1.0}


@dataclass(frozen=True, slots=True)
class LogprobWish:
    """The log-probabilities that a generation reports.

    Attributes:
        num_top: how many of the likeliest tokens, too.
        start: index of the first token of the prompt that is reported; None for no token of the prompt.
        has_text: whether the texts of tokens are reported.
    """

    num_top: int
    start: int | None
    has_text: bool


@dataclass(frozen=True, slots=True)
class Request:
    """A generation in the words of `rt.gen`.

    Attributes:
        options: keywords of `rt.gen`.
        cuts: strings at the first of which a constrained text is cut, because its constraint and not a stop ends it.
        is_empty: whether no text is wanted (max_tokens = 0), only log-probabilities.
        logprobs: the log-probabilities to report; None for none.
    """

    options: dict[str, Any]
    cuts: tuple[str, ...] = ()
    is_empty: bool = False
    logprobs: LogprobWish | None = None


def run_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of a run from the keywords of `run` that were given; `max_new_tokens` is `max_tokens` here."""
    renamed = {key.replace("_new_", "_"): value for key, value in given.items() if value is not None}
    return {**RUN_DEFAULTS, **renamed}


def request_of(options: Mapping[str, Any]) -> Request:
    """Translate the options of a generation, those of its run included.

    Raises:
        ParameterError: an option is invalid; names it.
    """
    made: dict[str, Any] = {key: options[key] for key in _SAME if options.get(key) not in (None, [], ())}
    if options.get("top_k") is not None:
        made["top_k"] = 0 if options["top_k"] == -1 else options["top_k"]
    max_tokens = options["max_tokens"]
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 0:
        raise ParameterError("max_tokens", max_tokens, "expected an integer of at least 0")
    made["max_tokens"] = max(max_tokens, 1)
    stops = _texts(options.get("stop"))
    regex, dtype, schema = options.get("regex"), options.get("dtype"), options.get("json_schema")
    if dtype is not None:
        if regex is not None:
            warnings.warn(f"dtype={dtype!r} is used and regex={regex!r} is not, because both are given", stacklevel=2)
        regex = DTYPE_REGEXES[dtype]
        stops += _NUMBER_STOPS if dtype in _NUMBERS else ()
    if schema is not None and regex is not None:
        raise ParameterError("json_schema", schema, f"expected no regex or dtype beside it, but there is {regex!r}")
    cuts: tuple[str, ...] = ()
    if regex is not None:
        cuts = stops
        made["regex"] = ending_at(regex, cuts)
    elif schema is not None:
        made["schema"] = schema
    if stops and not cuts:
        made["stop"] = stops
    is_empty = max_tokens == 0
    if is_empty:
        for key in ("min_tokens", "stop", "stop_token_ids", "regex", "schema", "n"):
            made.pop(key, None)
        made["ignore_eos"] = True  # a token that ends the text would have no log-probabilities
    return Request(made, cuts, is_empty, _with_logprobs(options, made))


def _with_logprobs(options: Mapping[str, Any], made: dict[str, Any]) -> LogprobWish | None:
    """Add what log-probabilities need to the options that were made."""
    if not options.get("return_logprob"):
        unused = [
            key for key in ("logprob_start_len", "top_logprobs_num", "return_text_in_logprobs") if options.get(key)
        ]
        warn_unused("a generation without return_logprob=True", unused)
        return None
    num_top = options.get("top_logprobs_num") or 0
    start = options.get("logprob_start_len")
    start = None if start is None or start < 0 else start
    made["logprobs"] = num_top
    if start is not None:
        made["prompt_logprobs"] = num_top
    return LogprobWish(num_top, start, bool(options.get("return_text_in_logprobs")))


def ending_at(regex: str, cuts: Iterable[str]) -> str:
    """A pattern for the texts of `regex` that have one of these strings at most once, at their end."""
    ends = "|".join(map(re.escape, cuts))
    return rf"(?=(?:(?!{ends})[\s\S])*(?:{ends})?(?![\s\S]))(?:{regex})" if ends else regex


def _texts(stop: object) -> tuple[str, ...]:
    if stop is None:
        return ()
    if isinstance(stop, str):
        return (stop,) if stop else ()
    if isinstance(stop, (list, tuple)) and all(isinstance(each, str) for each in stop):
        return tuple(each for each in stop if each)
    raise ParameterError("stop", stop, "expected a string or a list of strings")


def warn_unused(where: str, names: Iterable[str]) -> None:
    """Warn about options that have no effect there."""
    for name in names:
        warnings.warn(f"{name} has no effect on {where}", stacklevel=3)
