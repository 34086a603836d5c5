"""Captures, temperatures and budgets of rules, on real matchers: forks, rollbacks, tokens that cross the ends of rules."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.batch import fill_tree
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.option_oracle import (
    OptionInterpreter,
    option_vocabulary,
    order_of_terminals,
    random_option_grammar,
)
from tests.support.long_tests import sized

WORDS = (b"ab ", b"cd", b"</t>", b"<t>", b"ab", b"a>!", b"aa!", b"aa>!", "é".encode())
TOKENS = (*(bytes([byte]) for byte in range(256)), *WORDS, b"<|tool|>", b"<end>")
IDS = {text: token_id for token_id, text in enumerate(TOKENS)}
TEXT = r"TEXT: /(.|\n)*/"


@functools.cache
def backend() -> RtlangBackend:
    end = len(TOKENS) - 1
    return RtlangBackend.create(Vocabulary(TOKENS, frozenset([end]), frozenset([end, end - 1]), end + 1))


def begun(source: str, *tokens: bytes) -> MachineMatcher:
    matcher = backend().compile(Constraint(ConstraintKind.LARK, source)).matcher()
    for token in tokens:
        assert matcher.accept_token(IDS[token]), token
    return matcher


def spelled(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


def allowed(matcher: MachineMatcher) -> set[bytes]:
    listed = matcher.allowed(range(len(TOKENS)))
    assert listed == [matcher.fork().accept_token(token_id) for token_id in range(len(TOKENS))]
    return {token for token, is_allowed in zip(TOKENS, listed, strict=True) if is_allowed}


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ('start: "a" v "b"\nv[capture]: /[0-9]+/', "a123b", {"v": ["123"]}),
        ('start: o\no[capture="o"]: "x" i "!"\ni[capture="i"]: /[a-z]+/', "xabc!", {"i": ["abc"], "o": ["xabc!"]}),
        ('start: (item ",")* item\nitem[capture]: /[0-9]+/', "1,22,333", {"item": ["1", "22", "333"]}),
        ('start: lst\nlst[capture]: ITEM "," lst | ITEM\nITEM: /[0-9]+/', "1,2,3", {"lst": ["3", "2,3", "1,2,3"]}),
        ('start: lst\nlst[capture]: lst "," ITEM | ITEM\nITEM: /[0-9]+/', "1,2,3", {"lst": ["1", "1,2", "1,2,3"]}),
        ('start[capture="all"]: "a" /[0-9]*/ "b"', "ab", {"all": ["ab"]}),
        ('start: "a" v "b"\nv[capture]: /[0-9]*/', "ab", {"v": [""]}),
        ('start: "a" v "b"\nv[capture]: /[0-9]+/\n%ignore " "', "a  12  b", {"v": ["12"]}),
        ('start: f "z"\nf[capture="i", suffix=/!!+/, stop_capture="m"]: /[a-z]*/', "xy!!z", {"m": ["!!"], "i": ["xy"]}),
        ('start[capture="o"]: f "z"\nf[capture="i", suffix="!"]: /[a-z]*/', "xy!z", {"i": ["xy"], "o": ["xy!z"]}),
        ('start[capture="o"]: f f "z"\nf[capture="i", stop="!"]: /[a-z]*/', "x!y!z", {"i": ["x", "y"], "o": ["xyz"]}),
        ("start: e\ne[capture]: e \"+\" e | \"n\"", "n+n+n", {"e": ["n", "n", "n", "n+n", "n+n+n"]}),
        (f"start: tool* tail\ntail: TEXT\nhead[lazy]: TEXT \"<t>\"\ntool: head arg \"</t>\"\narg[capture]: /[0-9]+/\n{TEXT}",
         "x<t>42</t>mid<t>7</t>after<t", {"arg": ["42", "7"]}),
    ],
)  # fmt: skip
def test_captures(source: str, text: str, expected: dict[str, list[str]]) -> None:
    matcher = begun(source, *spelled(text))
    assert matcher.is_accepting
    assert matcher.captures() == {name: [each.encode() for each in texts] for name, texts in expected.items()}


def test_captures_follow_rollbacks_and_forks() -> None:
    matcher = begun(
        'start: "<t>" v "</t>" v\nv[capture]: /[a-d]+/ | <|tool|> "é"', b"<t>", b"ab", b"cd", b"</t>", b"<|tool|>"
    )
    assert matcher.captures() == {"v": [b"abcd"]}
    forked = matcher.fork()
    matcher.rollback(3)
    assert matcher.captures() == {}
    for token in (b"</t>", b"ab"):
        assert matcher.accept_token(IDS[token])
    assert matcher.captures() == {"v": [b"ab", b"ab"]}
    assert forked.accept_token(IDS["é".encode()])
    assert forked.captures() == {"v": [b"abcd", "<|tool|>é".encode()]}


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ('start: "a" v "z"\nv[temperature=0.6]: "x"+', "axxz", [None, 0.6, 0.6, 0.6, None]),
        (
            'start: "a" v "z"\nv[temperature=0.6]: w\nw: "x" | y\ny[temperature=0.3]: "y"',
            "ayz",
            [None, 0.6, None, None],
        ),
        ('start: l | r\nl[temperature=0.2]: "a"+\nr[temperature=0.9]: "a" "b"', "aa", [0.9, 0.9, 0.2]),
        ('start: h "z"\nh[temperature=0.6]: "x"\n%ignore " "', "x z", [0.6, None, None, None]),
        ("start: v\nv[temperature=0]: /a*/", "a", [0.0, 0.0]),
        ('start: "a"', "a", [None, None]),
    ],
)
def test_temperatures_belong_to_the_rules_of_the_next_byte(
    source: str, text: str, expected: list[float | None]
) -> None:
    matcher = begun(source)
    found = [matcher.temperature]
    for token in spelled(text):
        assert matcher.accept_token(IDS[token])
        found.append(matcher.temperature)
    assert found == expected


WORD_BUDGET = 'start: "<t>" r "</t>" "1"\nr[max_tokens=2]: /([a-z]* )+/'


def test_a_rule_ends_where_it_first_can_after_its_budget() -> None:
    assert {b"ab ", b"<", b"</t>"} <= allowed(begun(WORD_BUDGET, b"<t>", b"ab "))
    assert allowed(begun(WORD_BUDGET, b"<t>", b"ab ", b"ab ")) == {b"<", b"</t>"}
    within = begun(WORD_BUDGET, b"<t>", b"cd", b"cd")  # inside a word
    assert {b" ", b"ab "} <= allowed(within)
    assert b"</t>" not in allowed(within)
    for token in (b"cd", b"ab "):
        assert within.accept_token(IDS[token])
    assert allowed(within) == {b"<", b"</t>"}


def test_budgets_belong_to_places() -> None:
    matcher = begun(WORD_BUDGET, b"<t>", b"ab ")
    forked = matcher.fork()
    assert matcher.accept_token(IDS[b"ab "])
    assert not matcher.accepts([IDS[b"ab "]])
    matcher.rollback(2)
    assert not matcher.accepts([IDS[b"ab "]] * 3)
    assert matcher.accepts([IDS[b"ab "]] * 2)
    assert forked.accepts([IDS[b"ab "], IDS[b"</t>"]])
    completion = forked.shortest_completion(8)
    assert completion is not None
    assert forked.accepts(completion)


def test_drafts_count_from_their_places() -> None:
    matcher = begun(WORD_BUDGET, b"<t>")
    drafts = [b"ab ", b"ab ", b"</t>", b"1", b"cd"]
    parents = [-1, 0, 1, 2, 1]
    rows = np.empty((5, backend()._index.num_words), dtype=np.int32)
    assert fill_tree(matcher, [IDS[each] for each in drafts], parents, rows) == [True, True, True, True, False]
    assert not rows[4].any()  # a third token of the rule
    for count in range(1, 5):
        alone = np.empty_like(rows[0])
        begun(WORD_BUDGET, b"<t>", *drafts[:count]).fill_bitmask(alone)
        assert (alone == rows[count - 1]).all()


def test_budgets_count_each_occurrence_and_the_tokens_that_touch_it() -> None:
    repeated = begun('start: r+ "1"\nr[max_tokens=2]: /[a-z]+ /', *[b"ab "] * 5)
    assert {b"ab ", b"1"} <= allowed(repeated)
    shared = begun(f'start: "<" r "!"\nr[max_tokens=2]: TEXT\n{TEXT}', b"<t>", b"ab")  # "<t>" has two bytes of r
    assert allowed(shared) == {b"!"}


def test_budgets_with_a_suffix_end_at_the_first_of_both() -> None:
    source = f'start: r "!"\nr[max_tokens=2, capture, suffix=">"]: TEXT\n{TEXT}'
    matcher = begun(source, b"a>!")
    assert matcher.captures() == {"r": [b"a"]}
    matcher = begun(source, b"ab", b"cd")
    assert allowed(matcher) == {b"!"}
    assert matcher.accept_token(IDS[b"!"])
    assert matcher.captures() == {"r": [b"abcd"]}


def test_characters_are_counted_whatever_the_tokens() -> None:
    source = f'start: r "!"\nr[max_chars=2, suffix=">"]: TEXT\n{TEXT}'
    for tokens, is_accepted in (
        ([b"aa!"], True),
        ([b"a>!"], True),
        ([b"aa>!"], False),
        (["é".encode()] * 2 + [b"!"], True),
    ):
        assert begun(source).accepts([IDS[each] for each in tokens]) == is_accepted, tokens
    assert allowed(begun(f'start: r ">"\nr[max_chars=0]: TEXT\n{TEXT}')) == {b">"}


def test_ignored_terminals_may_not_stand_first_where_the_grammar_says_so() -> None:
    for header, is_allowed in (
        ("", True),
        ("%llguidance {}\n", False),
        ('%grammar_options {"allow_initial_skip": true}\n', True),
    ):
        matcher = begun(header + 'start: "a" "b"\n%ignore " "')
        assert matcher.completes_bytes(b"a b ")
        assert matcher.completes_bytes(b" ab") == is_allowed


def test_what_cannot_be_reported_is_refused() -> None:
    with pytest.raises(GrammarError, match="ordinary tokens by id are not supported together with capture"):
        begun("start: a\na[capture]: <[97]>")
    in_order = Constraint(ConstraintKind.LARK, 'start: a\na[lazy]: "b"', lexer=Lexer.LARK)
    with pytest.raises(GrammarError, match="not supported by lexer=lark"):
        backend().compile(in_order)


def test_random_rules_with_options_are_followed_as_by_the_interpreter() -> None:
    """Masks allow every token after which the interpreter can complete the text, and none that it cannot read; captures are the same."""
    tokens = (*option_vocabulary(random.Random(1), 20), b"<end>")
    end = len(tokens) - 1
    options = RtlangBackend.create(Vocabulary(tokens, frozenset([end]), frozenset([end]), end + 1))
    num_bits = 0
    for seed in range(sized(2000, usual=10)):
        rng = random.Random(seed)
        grammar = random_option_grammar(rng)
        try:
            matcher = options.compile(Constraint(ConstraintKind.LARK, grammar.source)).matcher()
        except GrammarError as error:
            assert "no terminal that can start it" in error.reason  # noqa: PT017 - one grammar in 2,000
            continue
        interpreter = OptionInterpreter(grammar, order_of_terminals(grammar))
        place, walked = interpreter.start, list[bytes]()
        for _ in range(8):
            assert matcher.is_accepting == interpreter.is_complete(place), (seed, walked)
            if matcher.is_accepting:
                found = {name: [each.decode() for each in texts if each] for name, texts in matcher.captures().items()}
                assert {name: texts for name, texts in found.items() if texts} == interpreter.captures(place), (
                    seed,
                    walked,
                )
            allowed_ids = matcher.allowed(range(end))
            following = []
            for token_id, is_allowed in enumerate(allowed_ids):
                reached = interpreter.after(place, tokens[token_id].decode())
                is_completable = reached is not None and interpreter.is_completable(reached)
                assert not is_allowed or reached is not None, (seed, walked, tokens[token_id])
                assert is_allowed or not is_completable, (seed, walked, tokens[token_id])
                num_bits += 1
                if is_allowed and reached is not None and is_completable is not False:
                    following.append((token_id, reached))
            if not following or len(place.lexeme) > 2:
                break
            token_id, place = rng.choice(following)
            walked.append(tokens[token_id])
            assert matcher.accept_token(token_id)
    assert num_bits > 300
