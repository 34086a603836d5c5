"""The limit of a thought: counted between its marks, however tokens divide them, and kept by sessions of real grammars."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams, reserved_tokens
from rtlang.engine.constraints.session import ConstraintSession
from rtlang.engine.constraints.thought_limit import ThoughtLimit, limit_of, limited_text
from rtlang_grammars import CompletionPath, CompletionSearch, Constraint, ConstraintKind, RtlangBackend, TokenBudget
from rtlang_grammars import Vocabulary as Words
from rtlang_grammars.spec.structures import any_of, raw_text, sequence
from tests.support.grammars.vocabularies import allowed_ids

SPECIAL = (b"<think>", b"</think>")
BYTES = tuple(bytes([each]) for each in range(256))
# Tokens of several bytes, some across the marks, as vocabularies without tokens for marks have them.
MORE = (b"so ", b"\n\n", b"</", b"think", b">\n", b"a</", b'{"', b'": ', b"<think", "é".encode())
SPELLED = Words((*BYTES, *MORE, b"<end>"), frozenset((256 + len(MORE),)), frozenset(), 257 + len(MORE))
NAMED = Words((*BYTES, *MORE, b"<end>", *SPECIAL), frozenset((256 + len(MORE),)), frozenset(), 259 + len(MORE))
SCHEMA = Constraint(
    ConstraintKind.JSON_SCHEMA,
    '{"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}',
)


@pytest.mark.parametrize("size", [1, 2, 5, 50])
def test_a_thought_is_found_however_tokens_divide_it(size: int) -> None:
    limit = ThoughtLimit("<think>\n", "</think>", 5)
    text = b"\n<think>\nwell</thin</think>{}<think>"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    opened = [limit.is_open and (limit.note(piece) or limit.is_open) for piece in pieces]
    assert opened.index(False) == (text.index(b"</think>") + len(b"</think>") - 1) // size
    assert not limit.is_spent


def test_a_text_that_begins_with_something_else_has_no_thought() -> None:
    limit = ThoughtLimit("<think>", "</think>", 0)
    limit.note(b"<th")
    assert (limit.is_open, limit.is_spent) == (True, False)
    limit.note(b"e")
    assert (limit.is_open, limit.is_spent) == (False, False)


def test_a_character_is_begun_only_if_it_can_end_in_time() -> None:
    limit = ThoughtLimit("", "</think>", 4)
    four = "😀".encode()
    assert limit.allows(four[:1])
    limit.note(b"a")
    assert not limit.allows(four[:1])
    assert limit.allows("é".encode()[:1])
    limit.note("é".encode()[:1])
    assert not limit.is_spent
    limit.note("é".encode()[1:])
    limit.note(b"b")
    assert limit.is_spent


def test_a_constraint_keeps_its_part_of_the_tokens() -> None:
    marks = SamplingParams(thought_marks=("", "</t>"))
    assert limit_of(marks, 100, is_constrained=False) is None
    assert limit_of(SamplingParams(), 100, is_constrained=True) is None
    limit = limit_of(marks, 100, is_constrained=True)
    assert limit is not None
    for _ in range(50):
        assert not limit.is_spent
        limit.note(b"a")
    assert limit.is_spent
    assert [reserved_tokens(each) for each in (1, 9, 100_000)] == [0, 4, 1024]


def test_free_text_is_limited_only_with_a_number() -> None:
    assert limited_text(SamplingParams(thought_marks=("", "</t>"))) is None
    with pytest.raises(ParameterError, match="stop_regex"):
        limited_text(SamplingParams(thought_marks=("", "</t>"), max_thought_tokens=3, stop_regex="a"))


def run(
    vocabulary: Words, constraint: Constraint, params: SamplingParams, draw: Callable[[list[int]], int]
) -> tuple[list[int], int]:
    """The tokens that a session lets through, and how many of them are within the thought."""
    backend = RtlangBackend.create(vocabulary)
    matcher = backend.compile(constraint).matcher()
    search = CompletionSearch(vocabulary)
    closing = matcher.closing_bytes()
    assert closing is not None
    keeper = TokenBudget(search, CompletionPath(closing, search.table))
    session = ConstraintSession(matcher, keeper, vocabulary.eos_token_ids, lambda: None)
    session.thought = limit_of(params, params.max_tokens, is_constrained=True)
    row = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    tokens: list[int] = []
    while len(tokens) < params.max_tokens and not session.is_complete:
        session.fill(row)
        session.raise_if_failed()
        token = session.accept(draw(allowed_ids(row)), params.max_tokens - len(tokens))
        if token is None:
            break
        tokens.append(token)
    assert session.is_accepting or session.matcher.is_terminated
    shown = [vocabulary.shown((each,)) for each in tokens]
    text = b"".join(shown)
    if b"</think>" not in text:
        return tokens, 0
    begin = len(params.thought_marks[0].encode()) + text.find(b"<think>") if params.thought_marks[0] else 0
    begin += len(text[begin:]) - len(text[begin:].lstrip(b"\n"))  # line breaks behind the mark are none of the thought
    end, at, count = text.index(b"</think>"), 0, 0
    for piece in shown:
        count += at < end and at + len(piece) > begin
        at += len(piece)
    return tokens, count


@pytest.mark.parametrize("vocabulary", [SPELLED, NAMED], ids=["spelled", "named"])
@pytest.mark.parametrize("is_open", [False, True])
def test_random_thoughts_end_within_their_budget_and_the_value_is_whole(vocabulary: Words, is_open: bool) -> None:
    rng = random.Random(3)
    inside = raw_text(excludes=["<think>", "</think>"])
    section = sequence("" if is_open else "<think>", inside, "</think>")
    constraint = sequence(section if is_open else any_of("", section), SCHEMA)
    begins = {256 + MORE.index(b"<think"), ord("<"), vocabulary.vocab_size - 2}
    num_thoughts = 0
    for _ in range(25):
        most, budget = rng.randrange(45, 90), rng.randrange(12)
        marks = ("" if is_open else "<think>", "</think>")
        params = SamplingParams(max_tokens=most, thought_marks=marks, max_thought_tokens=budget)

        def draw(allowed: list[int]) -> int:
            liked = [each for each in allowed if each in begins]
            return rng.choice(liked if liked and rng.random() < 0.8 else allowed)

        tokens, count = run(vocabulary, constraint, params, draw)
        assert count <= budget
        text = vocabulary.shown(tokens).decode()
        assert json.loads(text.rpartition("</think>")[2]).keys() == {"a"}
        num_thoughts += "</think>" in text
    assert num_thoughts > 10
