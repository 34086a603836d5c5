"""Texts and constraints, without a model's tokenizer: every byte is a token."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rtlang.contract.errors import ConstraintError
from rtlang.contract.params import SamplingParams
from rtlang.engine.constraints.stop_search import StopSearch, compile_stop_patterns
from rtlang_grammars import Constraint, GrammarError, RtlangBackend, Vocabulary

_END = 256


@lru_cache(maxsize=1)
def _backend() -> Any:
    token_bytes = (*(bytes([each]) for each in range(256)), b"<end>")
    vocabulary = Vocabulary(token_bytes, frozenset((_END,)), frozenset(), len(token_bytes))
    return RtlangBackend.create(vocabulary, allow_checked=True)


@lru_cache(maxsize=256)
def _grammar(constraint: Constraint) -> Any:
    try:
        return _backend().compile(constraint)
    except GrammarError as error:
        raise ConstraintError(str(error)) from None


@lru_cache(maxsize=256)
def shortest_text(constraint: Constraint) -> str:
    """A short text that the constraint allows.

    Raises:
        ConstraintError: the constraint cannot be compiled, or no text was found.
    """
    grammar = _grammar(constraint)
    found = grammar.matcher().closing_bytes()
    if found is None:
        raise ConstraintError("no short text of the constraint was found; give an answer")
    text: str = found.decode("utf-8", "replace")
    if (reason := _violation(grammar, text)) is not None:
        raise ConstraintError(f"no short text of the constraint was found ({reason}); give an answer")
    return text


def allows(constraint: Constraint, text: str, *, has_checks: bool = True) -> str | None:
    """Why a constraint does not allow a text; None if it does.

    Args:
        has_checks: whether keywords count that masks do not enforce.
    Raises:
        ConstraintError: the constraint cannot be compiled.
    """
    grammar = _grammar(constraint)
    matcher = grammar.matcher()
    data = text.encode("utf-8", "replace")
    for at, byte in enumerate(data):
        if not matcher.accept_token(byte):
            return f"after {data[:at].decode('utf-8', 'ignore')[-40:]!r} follows {data[at:].decode('utf-8', 'ignore')[:20]!r}"
    if not matcher.is_accepting:
        return f"the text ends too early, after {text[-40:]!r}"
    return _violation(grammar, text) if has_checks else None


def stopped_text(text: str, params: SamplingParams, constraint: Constraint | None) -> tuple[str, str | None]:
    """A text up to its first stop, as the engine ends it with a token for each character, and the stop; None if there is none.

    Raises:
        ParameterError: a pattern of `stop_regex` cannot be searched for.
        ConstraintError: the constraint cannot be compiled.
    """
    if not (params.stop or params.stop_regex):
        return text, None
    may_begin = None if constraint is None else lambda offset: allows(constraint, text[:offset]) is None
    search = StopSearch(params.stop, compile_stop_patterns(params.stop_regex), may_begin)
    num_skipped = max(0, params.min_tokens - 1)
    search.skip(text[:num_skipped])
    stop = search.push(text[num_skipped:]) or search.finish()
    if stop is None:
        return text, None
    return text[: search.num_chars if params.include_stop_str_in_output else stop.offset], stop.match


def _violation(grammar: Any, text: str) -> str | None:
    """The first keyword of a schema, among those that masks do not enforce, that the value violates."""
    if grammar.value_check is None:
        return None
    reason: str | None = grammar.value_check.error_in(text)
    return reason
