"""Masks by history equal those of a matcher that read the generated tokens, wherever rows stand; budgets end every text in time."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import tokenizers
from numpy.typing import NDArray

from rtlang_grammars import Constraint, ConstraintKind, GrammarError, RtlangBackend, Vocabulary
from rtlang_grammars.plugs.token_histories import TokenHistories
from rtlang_grammars.spec.errors import EmptyMaskError
from rtlang_grammars.spec.protocols import CompiledGrammar
from tests.support.grammars.vocabularies import spell, without_letter
from tests.support.long_tests import sized

END = 1
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
LIST = {"type": "array", "items": {"enum": ["a", "b", [1, 2, 3]]}, "minItems": 2}


@functools.cache
def vocabulary() -> Vocabulary:
    path = Path(__file__).parents[3] / "rtlang" / "tiny" / "tokenizer.json"
    return Vocabulary.from_tokenizer(tokenizers.Tokenizer.from_file(str(path)), eos_token_ids=[END], vocab_size=2056)


@functools.cache
def grammar(source: str) -> CompiledGrammar:
    return backend().compile(Constraint(ConstraintKind.JSON_SCHEMA, source))


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(vocabulary())


def expected(source: str, generated: list[int]) -> NDArray[np.bool_]:
    """The mask of a new matcher after the tokens; only end tokens once it ended, or where it refuses one."""
    matcher, row = grammar(source).matcher(), np.empty(vocabulary().num_mask_words, dtype=np.int32)
    if not all(map(matcher.accept_token, generated)) or END in generated:
        return np.arange(2056) == END
    matcher.fill_bitmask(row)
    return np.unpackbits(row.view(np.uint8), bitorder="little")[:2056].astype(np.bool_)


def no_scores(row: int) -> NDArray[np.float32]:
    raise AssertionError("scores are needed with a budget only")


@pytest.mark.parametrize("seed", range(sized(4, usual=2)))
def test_rows_that_beam_search_moves_keep_their_masks(seed: int) -> None:
    draw, sources = random.Random(seed), [json.dumps(PERSON), json.dumps(LIST)]
    histories = TokenHistories([grammar(source) for source in sources], vocabulary())
    rows = [[7, 8, 9], [7, 8, 9], [0, 0, 9], [0, 0, 9]]  # two prompts of two beams each, the second padded
    for _ in range(20):
        masks = histories.allowed(np.array(rows), no_scores)
        following = []
        for row, mask in enumerate(masks):
            assert (mask == expected(sources[row // 2], rows[row][3:])).all()
            parent = rows[row // 2 * 2 + draw.randrange(2)]  # beams of one prompt change places and are copied
            choices = np.flatnonzero(masks[rows.index(parent, row // 2 * 2)]).tolist()
            token_id = draw.choice(choices) if draw.random() < 0.95 else draw.randrange(2056)  # some that are excluded
            following.append([*parent, token_id])
        rows = following


def test_drafts_are_taken_back() -> None:
    source, draw = json.dumps(PERSON), random.Random(0)
    histories, sure = TokenHistories([grammar(source)], vocabulary()), [5, 6]
    for _ in range(8):
        row = list(sure)
        for _ in range(draw.randrange(1, 6)):  # verified one by one, as speculative decoding does
            mask = histories.allowed(np.array([row]), no_scores)[0]
            assert (mask == expected(source, row[2:])).all()
            row.append(draw.choice(np.flatnonzero(mask).tolist()))
        sure = row[: draw.randrange(len(sure), len(row)) + 1]


def test_another_prompt_begins_a_new_text() -> None:
    source = json.dumps(LIST)
    histories = TokenHistories([grammar(source)], vocabulary())
    start = expected(source, [])
    first = int(np.flatnonzero(start)[0])
    for prompt in ([3], [4], [3, 4, 5], [4]):  # also one that was there before
        assert (histories.allowed(np.array([prompt]), no_scores)[0] == start).all()
    assert (histories.allowed(np.array([[4, first]]), no_scores)[0] == expected(source, [first])).all()
    histories.reset()
    assert (histories.allowed(np.array([[4, first]]), no_scores)[0] == start).all()


@pytest.mark.parametrize("num_tokens", [8, 12, 25])
@pytest.mark.parametrize("schema", [PERSON, LIST], ids=["person", "list"])
def test_texts_are_complete_at_the_end_of_their_budget(schema: dict[str, object], num_tokens: int) -> None:
    draw, num_ended = np.random.default_rng(num_tokens), 0
    closers = [END, *(i for i, text in enumerate(vocabulary().token_bytes) if text.endswith((b'"', b"}", b"]")))]
    histories = TokenHistories([grammar(json.dumps(schema))], vocabulary(), num_tokens)
    for prompt in range(sized(6, usual=2)):
        histories.reset()
        rows = np.full((3, 1), prompt)
        for _ in range(num_tokens):
            scores = draw.normal(0, 4, (3, 2060)).astype(np.float32)  # wider than the vocabulary
            scores[::2, closers] += 15  # these rows end early
            masks = histories.allowed(rows, scores.__getitem__)
            assert masks.any(axis=1).all()
            chosen = np.where(masks, scores[:, :2056], -np.inf).argmax(axis=1)
            rows = np.column_stack([rows, chosen])
        for row in rows[:, 1:].tolist():
            num_ended += END in row
            value = json.loads(vocabulary().text_of(row))
            jsonschema.validate(value, schema)
    assert num_ended or num_tokens < 20


def test_a_budget_leaves_likely_tokens_that_fit() -> None:
    histories = TokenHistories([grammar(json.dumps(PERSON))], vocabulary(), 40)
    scores = np.linspace(0, 8, 2056, dtype=np.float32)
    mask = histories.allowed(np.array([[3]]), lambda _: scores)[0]
    allowed = np.flatnonzero(expected(json.dumps(PERSON), []))
    assert set(np.flatnonzero(mask)) == set(allowed[allowed >= np.flatnonzero(mask).min()])


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(GrammarError, match="max_new_tokens = 2"):
        TokenHistories([grammar(json.dumps(PERSON))], vocabulary(), 2)
    with pytest.raises(ValueError, match="max_new_tokens = 0"):
        TokenHistories([grammar(json.dumps(PERSON))], vocabulary(), 0)
    with pytest.raises(ValueError, match="grammars"):
        TokenHistories([], vocabulary())
    two = TokenHistories([grammar(json.dumps(PERSON)), grammar(json.dumps(LIST))], vocabulary())
    with pytest.raises(ValueError, match="3 rows"):
        two.allowed(np.zeros((3, 1), dtype=np.int64), no_scores)


def test_reports_name_every_keyword() -> None:
    (report,) = TokenHistories([grammar(json.dumps(PERSON))], vocabulary()).reports
    assert report is not None
    assert ("#/properties/age", "type") in {(entry.pointer, entry.keyword) for entry in report.entries}


def test_named_end_tokens_and_special_ones_are_parts_of_the_text() -> None:
    source = 'start: "a" <|system|> "b" <|end|> "c"\n'
    compiled = backend().compile(Constraint(ConstraintKind.LARK, source))
    histories = TokenHistories([compiled], vocabulary(), 12)
    row = [9]
    for _ in range(12):
        mask = histories.allowed(np.array([row]), lambda _: np.zeros(2056, dtype=np.float32))[0]
        row.append(int(np.flatnonzero(mask)[-1]))
    assert vocabulary().shown(row[1 : row.index(END, row.index(END) + 1)]) == b"a<|system|>b<|end|>c"


def test_a_place_without_a_token_is_an_error_and_not_an_end() -> None:
    stuck = RtlangBackend.create(without_letter(vocabulary(), b"b")).compile(Constraint(ConstraintKind.REGEX, "ab"))
    histories, (a,) = TokenHistories([stuck], vocabulary()), spell(vocabulary(), "a")
    assert np.flatnonzero(histories.allowed(np.array([[5]]), no_scores)[0]).tolist() == [a]
    with pytest.raises(EmptyMaskError, match="no token may follow after b'a', and the text is not complete") as caught:
        histories.allowed(np.array([[5, a]]), no_scores)
    assert caught.value.text == b"a"
