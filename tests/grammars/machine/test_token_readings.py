"""Special tokens and tokens by id in every notation: masks against an independent recognizer that tries every token.

A token stands in a text as one character of the private use areas, and ordinary tokens also as their letters, so that a constraint is a
pattern of the `regex` module, whose partial matches say what may be completed. Where tokens are taken by id every reading is tried.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import regex

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.machine.batch import fill_batch, fill_tree
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.machine.token_readings import TokenReadings
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import any_of, repeat, sequence, tagged, token
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.speed import read_vocabulary
from tests.support.grammars.vocabularies import allowed_ids
from tests.support.long_tests import sized

_TEXTS = (
    *'abcxyz0129 {}":,<|>/_-nme',
    "ab",
    "bc",
    "abc",
    "xa",
    "<|",
    "|>",
    "name",
    '{"',
    '":',
    "}",
    " a",
    "10",
    "a<",
    "<|t|",
    "||",
    "ax",
)
TEXTS = tuple(dict.fromkeys(text.encode() for text in _TEXTS))
S, T, U, NAMELESS, END, STOP = range(len(TEXTS), len(TEXTS) + 6)
VOCABULARY = Vocabulary(
    (*TEXTS, b"<|s|>", b"<|t|>", b"<|t|>u", b"", b"<|end|>", b"<|stop|>"),
    frozenset({END, STOP}),
    frozenset({S, T, U, NAMELESS, END}),
    len(TEXTS) + 9,
)
BACKEND = RtlangBackend(VocabularyIndex(VOCABULARY))
A, AB, X = TEXTS.index(b"a"), TEXTS.index(b"ab"), TEXTS.index(b"x")


def mark(token_id: int) -> str:
    """The character that stands for a token."""
    return chr(0xE000 + token_id)


def marks(*token_ids: int) -> str:
    """A class of the characters that stand for tokens."""
    return f"[{''.join(map(mark, token_ids))}]"


ORDINARY = range(len(TEXTS))
ANY = marks(*ORDINARY, S, T, U, NAMELESS)
"""Any token but those that end a text."""
BLANKS = " {0,2}"
FREE = '[a-z0-9 {}":,<|>/_-]'


@dataclass(frozen=True)
class Case:
    """A constraint and the pattern of its texts; `by_id`: ordinary tokens are also read as themselves."""

    constraint: Constraint
    pattern: str
    by_id: bool = False


def lark(source: str, lexer: Lexer = Lexer.LONGEST) -> Constraint:
    return Constraint(ConstraintKind.LARK, source, lexer=lexer)


def gbnf(source: str) -> Constraint:
    return Constraint(ConstraintKind.GBNF, source)


def schema(source: str) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, source)


def cases_of(lexer: Lexer) -> list[Case]:
    s, t, end = mark(S), mark(T), mark(END)
    return [
        Case(lark("start: <|s|> NAME <|t|> NUMBER?\nNAME: /[a-c]+/\nNUMBER: /[0-9]+/", lexer), f"{s}[a-c]+{t}[0-9]*"),
        Case(lark(f'start: (<|s|> "ab" | <|t|>u)*\nu: <[{NAMELESS}]>', lexer), f"(?:{s}ab|{t}{mark(NAMELESS)})*"),
        Case(lark('start: "a" <|end|> ("b" <|end|>)? ', lexer), f"a{end}(?:b{end})?"),
        Case(lark('start: NAME <|t|>? <|s|>\nNAME: /[a-z]+/\n%ignore " "', lexer), f" *[a-z]+ *(?:{t} *)?{s} *"),
        Case(
            lark("start: NAME (<|t|> NAME)*\nNAME: /[a-z]+(?![0-9])/\n%ignore <|s|>", lexer),
            f"{s}*[a-z]+(?:{s}*{t}{s}*[a-z]+)*{s}*",
        ),
        Case(
            lark(f"start: <[{S}-{NAMELESS}]> <[^{T}]>", lexer),
            f"{marks(S, T, U, NAMELESS)}{marks(*ORDINARY, S, U, NAMELESS)}",
            True,
        ),
        Case(lark('start: (<|s|> <[*]>* <|t|> "x")+', lexer), f"(?:{s}{ANY}*{t}x)+", True),
        Case(lark(f'start: (<[{A},{AB}]> | "ab" "x" | "a")+', lexer), f"(?:{marks(A, AB)}|abx|a)+", True),
        Case(lark(f'start: <[{A}]> "b" | <[{AB}]> "c" | "abcx"', lexer), f"{mark(A)}b|{mark(AB)}c|abcx", True),
    ]


CASES = [
    *(case for lexer in Lexer for case in cases_of(lexer)),
    Case(
        gbnf('root ::= <|s|> item{1,3} <|t|>\nitem ::= [a-c] | <|t|> "x"'),
        f"{mark(S)}(?:[a-c]|{mark(T)}x){{1,3}}{mark(T)}",
    ),
    Case(
        gbnf("root ::= <|s|> !<|t|>{0,2} <|t|>"), f"{mark(S)}{marks(*ORDINARY, S, U, NAMELESS)}{{0,2}}{mark(T)}", True
    ),
    Case(gbnf(f"root ::= (!<[{S}]> | <|s|> [a-c])+"), f"(?:{marks(*ORDINARY, T, U, NAMELESS)}|{mark(S)}[a-c])+", True),
    Case(
        sequence("ab<|s|>", repeat("<|t|>u", 1, 2), any_of("x", token("<|end|>"))),
        f"ab{mark(S)}{mark(U)}{{1,2}}(?:x|{mark(END)})",
    ),
    Case(
        sequence(schema('{"enum": ["ab", 10]}'), token(S), schema('{"const": {"name": 10}}')),
        rf'{BLANKS}(?:"ab"|10){mark(S)}{BLANKS}\{{{BLANKS}"name"{BLANKS}:{BLANKS}10{BLANKS}\}}',
    ),
    Case(Constraint(ConstraintKind.CHOICE, '["a<|t|>x", "ab", "<|t|>u"]'), f"a{mark(T)}x|ab|{mark(U)}"),
    Case(
        tagged([("<|s|>", Constraint(ConstraintKind.REGEX, "[a-c]+"), "<|t|>")], high=2),
        f"{FREE}*(?:{mark(S)}[a-c]+{mark(T)}{FREE}*){{0,2}}",
    ),
    Case(
        tagged([(token("<|s|>"), "x", token("<|t|>")), ("<|t|>ab", "", token(U))], low=1, high=1, text_behind=False),
        f"{FREE}*(?:{mark(S)}x{mark(T)}|{mark(T)}ab{mark(U)})",
    ),
    Case(  # a trigger that ends within the name of a token goes on to its end; one in plain text stays
        tagged([("<|t|>a", "x", ""), ("<<a", "b", "<|s|>")], triggers=["<|t", "<<"], high=1),
        f"(?:(?!<<){FREE})*(?:(?:{mark(T)}ax|<<ab{mark(S)})(?:(?!<<){FREE})*)?",
    ),
]


class Recognizer:
    """Decides by the pattern which tokens may follow others."""

    def __init__(self, case: Case) -> None:
        self._pattern, self._by_id = regex.compile(case.pattern), case.by_id

    def readings(self, token_id: int) -> list[str]:
        if token_id >= len(TEXTS):
            return [mark(token_id)]
        return [TEXTS[token_id].decode(), *([mark(token_id)] if self._by_id else [])]

    def after(self, texts: list[str], token_id: int) -> list[str]:
        """The readings that can be completed after one more token."""
        found = (text + reading for text, reading in itertools.product(texts, self.readings(token_id)))
        return [text for text in dict.fromkeys(found) if self._pattern.fullmatch(text, partial=True)]

    def is_complete(self, texts: list[str]) -> bool:
        return any(self._pattern.fullmatch(text) for text in texts)


def follow(recognizer: Recognizer, texts: list[str], token_ids: list[int]) -> list[str]:
    """The readings after some tokens."""
    for token_id in token_ids:
        texts = recognizer.after(texts, token_id)
    return texts


def mask_of(matcher: MachineMatcher) -> list[int]:
    row = np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher.fill_bitmask(row)
    return allowed_ids(row)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_masks_allow_exactly_the_tokens_that_can_be_completed(number: int) -> None:
    case, rng = CASES[number], random.Random(number)
    recognizer, grammar = Recognizer(case), BACKEND.compile(case.constraint)
    assert isinstance(grammar.matcher()._grammar, TokenReadings) == case.by_id
    num_special = num_ends = 0
    for _ in range(12):
        matcher, texts = grammar.matcher(), [""]
        for _ in range(rng.randint(1, 10)):
            parts = [i for i in range(VOCABULARY.vocab_size - 3) if recognizer.after(texts, i)]
            is_complete = recognizer.is_complete(texts)
            allowed = mask_of(matcher)
            assert allowed == sorted({*parts, *([END, STOP] if is_complete else [])})
            assert matcher.is_accepting == is_complete
            assert [i for i in range(VOCABULARY.vocab_size + 2) if matcher.fork().accept_token(i)] == allowed
            assert [i for i in allowed if matcher.takes(i)] == parts
            assert matcher.is_terminated == (is_complete and not parts)
            assert follow(recognizer, texts, matcher.forced_tokens())
            assert len(parts) == 1 or not matcher.forced_tokens() or not is_complete
            closing = matcher.shortest_completion(60)
            assert closing is not None
            assert recognizer.is_complete(follow(recognizer, texts, closing))
            if not parts:
                break
            special = [i for i in parts if i >= len(TEXTS)]
            chosen = rng.choice(special if special and rng.random() < 0.4 else parts)
            if closing and rng.random() < 0.4:
                chosen = closing[0]
            num_special += chosen >= len(TEXTS) or case.by_id
            before = mask_of(matcher)
            other = matcher.fork()
            assert other.accept_token(chosen)
            other.rollback(1)
            assert mask_of(other) == before
            assert matcher.accept_token(chosen)
            texts = recognizer.after(texts, chosen)
            num_ends += recognizer.is_complete(texts)
    assert num_special
    assert num_ends


@pytest.mark.parametrize("number", range(len(CASES)))
def test_texts_end_complete_within_their_budget(number: int) -> None:
    case, rng = CASES[number], random.Random(number)
    recognizer, grammar, search = Recognizer(case), BACKEND.compile(case.constraint), CompletionSearch(VOCABULARY)
    for _ in range(sized(8, usual=4)):
        matcher, texts = grammar.matcher(), [""]
        path = search.find(matcher, 60)
        assert path is not None
        left = path.cost() + rng.randint(0, 5)
        keeper = TokenBudget(search, path)
        while left:
            parts = [i for i in mask_of(matcher) if matcher.takes(i)]
            if not parts:
                break
            taken = keeper.advance(matcher, rng.choice(parts), left)
            if taken is None:
                break
            texts, left = recognizer.after(texts, taken), left - 1
        assert matcher.is_accepting
        assert recognizer.is_complete(texts)


def test_an_end_token_that_the_constraint_names_goes_on_and_any_other_ends() -> None:
    matcher = BACKEND.compile(lark('start: "a" (<|end|> "b")?')).matcher()
    assert matcher.accept_token(A)
    assert (matcher.is_accepting, matcher.is_terminated) == (True, False)
    ended, going_on = matcher.fork(), matcher
    assert ended.accepts([STOP])
    assert ended.accept_token(STOP)
    assert ended.is_terminated
    assert not ended.accepts([A])
    assert going_on.accept_token(END)
    assert not going_on.is_accepting
    assert mask_of(going_on) == [TEXTS.index(b"b"), TEXTS.index(b"bc")][:1]
    going_on.rollback(1)
    assert going_on.accept_token(STOP)
    going_on.rollback(1)
    assert going_on.is_accepting


def test_text_before_a_forced_token_is_spelled_to_its_end() -> None:
    matcher = BACKEND.compile(lark('start: "ab" <|s|> "a" ("b" | "c")')).matcher()
    assert matcher.forced_tokens() == [AB, S]
    assert matcher.forced_bytes().startswith(b"ab\xff")


def test_batches_and_trees_of_drafts_have_the_same_masks() -> None:
    sources = ("start: <[*]>~1..3 <|t|>", f'start: "a" <|s|> | <[{A}]> <|t|>', "start: /[a-c]+/ <|end|>")
    matchers = [BACKEND.compile(lark(source)).matcher() for source in sources]
    rows = np.empty((3, VOCABULARY.num_mask_words), dtype=np.int32)
    fill_batch(matchers, rows)
    assert [allowed_ids(row) for row in rows] == [mask_of(matcher) for matcher in matchers]
    tree = np.empty((4, VOCABULARY.num_mask_words), dtype=np.int32)
    assert fill_tree(matchers[1], [A, S, T, X], [-1, 0, 0, 0], tree) == [True, True, True, False]
    assert [allowed_ids(row) for row in tree] == [[S, T], [END, STOP], [END, STOP], []]


def test_equal_readings_are_one() -> None:
    source = f"start: (<[{A}]> | LETTER)*\nLETTER: /[a-z]/"
    matcher = BACKEND.compile(lark(source)).matcher()
    sizes = []
    for _ in range(12):
        assert matcher.accept_token(A)
        sizes.append(len(matcher._place.configuration))
    assert sizes[-6:] == [4] * 6  # the last letter as a token or text, of which a lexeme may go on or not


def test_too_many_readings_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtlang_grammars.machine.token_readings._MAX_READINGS", 1)
    matcher = BACKEND.compile(lark(f'start: <[{A}]> "b" | "a" "c"')).matcher()
    with pytest.raises(GrammarError, match="more than 1 readings"):
        matcher.accept_token(A)


QWEN2 = Path(__file__).parents[4] / "shared" / "tokenizers" / "qwen2" / "tokenizer.json"


@pytest.mark.skipif(not QWEN2.exists(), reason="the tokenizer of Qwen2 is not there")
def test_chat_turns_of_qwen2_are_tokens() -> None:
    vocabulary, tokenizer = read_vocabulary(QWEN2)
    backend = RtlangBackend(VocabularyIndex(vocabulary))
    start, end = (vocabulary.tokens.names[name] for name in ("<|im_start|>", "<|im_end|>"))
    text = "Hello, world <|im_start|>user\n"
    matcher = backend.compile(sequence(text, token(end))).matcher()
    assert matcher.forced_tokens() == [*tokenizer.encode(text, add_special_tokens=False).ids, end]
    for lexer in Lexer:
        turns = lark('start: (<|im_start|> ROLE "\\n" <[^151645]>~0..3 <|im_end|>)+\nROLE: /user|assistant/', lexer)
        matcher, row = backend.compile(turns).matcher(), np.empty(vocabulary.num_mask_words, dtype=np.int32)
        for token_id in (start, *tokenizer.encode("user\n").ids):
            assert matcher.accept_token(token_id)
        others = np.setdiff1d(np.arange(len(vocabulary.token_bytes)), sorted(vocabulary.eos_token_ids))
        for token_id in (start, 5, 40_000, end):
            matcher.fill_bitmask(row)
            assert allowed_ids(row) == (
                sorted([*others.tolist(), end]) if not (matcher.is_accepting) and token_id != end else [end]
            )
            assert matcher.accept_token(token_id)
        assert matcher.is_accepting
        assert not matcher.is_terminated


class RandomExpression:
    """A random expression of literals, tokens and sets of tokens in every notation."""

    def __init__(self, rng: random.Random, depth: int, *, with_ordinary: bool) -> None:
        choice = rng.random()
        self.parts: list[RandomExpression] = []
        self.ids: list[int] = []
        self.letter, self.is_negated = "", False
        self.low, self.high = rng.choice([(0, 1), (0, None), (1, None), (1, 2), (0, 2)])
        if depth and choice < 0.65:
            self.kind = "sequence" if choice < 0.35 else "choice" if choice < 0.5 else "repeat"
            count = 1 if self.kind == "repeat" else rng.randint(2, 3)
            self.parts = [RandomExpression(rng, depth - 1, with_ordinary=with_ordinary) for _ in range(count)]
            return
        self.kind = rng.choice(["literal", "set", "set"])
        self.letter = rng.choice("abcx")  # none begins with another: no literal wins over a shorter one
        known = [S, T, U, NAMELESS, END, *([A, AB, X] if with_ordinary else [])]
        self.ids = sorted({rng.choice(known) for _ in range(rng.randint(1, 3))})
        self.is_negated = with_ordinary and rng.random() < 0.3

    def pattern(self) -> str:
        parts = [f"(?:{part.pattern()})" for part in self.parts]
        match self.kind:
            case "sequence":
                return "".join(parts)
            case "choice":
                return "|".join(parts)
            case "repeat":
                return f"{parts[0]}{{{self.low},{'' if self.high is None else self.high}}}"
            case "literal":
                return self.letter
        every = [*ORDINARY, S, T, U, NAMELESS]
        return marks(*(set(every) - set(self.ids) if self.is_negated else self.ids))

    def source(self, *, is_gbnf: bool) -> str:
        parts = [part.source(is_gbnf=is_gbnf) for part in self.parts]
        match self.kind:
            case "sequence":
                return f"({' '.join(parts)})"
            case "choice":
                return f"({' | '.join(parts)})"
            case "repeat":
                counts = f"{{{self.low},{self.high}}}" if is_gbnf else f"~{self.low}..{self.high}"
                return f"({parts[0]})" + {(0, 1): "?", (0, None): "*", (1, None): "+"}.get(
                    (self.low, self.high), counts
                )
            case "literal":
                return f'"{self.letter}"'
        return f"<[{'^' * self.is_negated}{','.join(map(str, self.ids))}]>"

    def structure(self) -> Constraint:
        parts = [part.structure() for part in self.parts]
        match self.kind:
            case "sequence":
                return sequence(*parts)
            case "choice":
                return any_of(*parts)
            case "repeat":
                return repeat(parts[0], self.low, self.high)
            case "literal":
                return sequence(self.letter)
        return token(self.source(is_gbnf=False))


@pytest.mark.parametrize("seed", range(sized(60, usual=10)))
def test_random_expressions_mean_the_same_in_every_notation(seed: int) -> None:
    rng = random.Random(seed)
    made = RandomExpression(rng, 3, with_ordinary=seed % 2 == 0)
    constraints = [lark(f"start: {made.source(is_gbnf=False)}", lexer) for lexer in Lexer]
    constraints += [gbnf(f"root ::= {made.source(is_gbnf=True)}"), made.structure()]
    for constraint in constraints:
        grammar = BACKEND.compile(constraint)
        by_id = isinstance(grammar.matcher()._grammar, TokenReadings)
        recognizer = Recognizer(Case(constraint, made.pattern(), by_id))
        matcher, texts = grammar.matcher(), [""]
        for _ in range(6):
            parts = [i for i in range(VOCABULARY.vocab_size - 3) if recognizer.after(texts, i)]
            is_complete = recognizer.is_complete(texts)
            assert mask_of(matcher) == sorted({*parts, *([END, STOP] if is_complete else [])})
            closing = matcher.shortest_completion(80)
            assert closing is not None
            assert recognizer.is_complete(follow(recognizer, texts, closing))
            assert follow(recognizer, texts, matcher.forced_tokens())
            if not parts:
                break
            chosen = closing[0] if closing and rng.random() < 0.3 else rng.choice(parts)
            assert matcher.accept_token(chosen)
            texts = recognizer.after(texts, chosen)
