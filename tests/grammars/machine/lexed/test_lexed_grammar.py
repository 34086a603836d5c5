"""Masks, steps and forced text of grammars with a lexer, against the bytes of every token one by one."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar, LexedState
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench.random_lark_grammars import random_grammar
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar, place_after, small_index
from tests.support.long_tests import sized

CALLS = r"""
start: (stmt ";")+
stmt: NAME "=" expr | "return" expr
expr: expr OP expr | NAME | NUMBER | STRING | NAME "(" [expr ("," expr)*] ")" | "(" expr ")"
OP: "+" | "-" | "**" | "*" | "=="
NAME: /[a-zé_]\w*/
NUMBER: /[0-9]+(\.[0-9]+)?/
STRING: /"(\\.|[^"\\\n])*"/
%ignore /[ \n]+/
%ignore /#[^\n]*/
"""


def allowed(grammar: LexedGrammar, place: LexedState) -> tuple[set[int], list[LexedState]]:
    """The tokens that may follow a place, by trying each, and the places behind them."""
    vocabulary = grammar.index.vocabulary
    tokens, places = set(), []
    for token_id, data in enumerate(vocabulary.token_bytes):
        if token_id in vocabulary.eos_token_ids:
            if place.is_complete:
                tokens.add(token_id)
            continue
        reached = place_after(grammar, data, place.configuration)
        if reached is not None:
            tokens.add(token_id)
            places.append(reached)
    return tokens, places


def bits(mask: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


@pytest.mark.parametrize("is_lark", [False, True], ids=["longest", "lark"])
def test_masks_of_random_grammars_are_exact(*, is_lark: bool) -> None:
    num_masks = 0
    for seed in range(sized(60)):
        rng = random.Random(seed)
        source = random_grammar(rng)
        try:
            grammar = lexed_grammar(source, is_lark=is_lark)
        except GrammarError:
            continue
        place = grammar.start_place
        for _ in range(5):
            expected, places = allowed(grammar, place)
            assert bits(grammar.mask(place.configuration).base) == expected, (seed, place, source)
            num_masks += 1
            if not places:
                break
            place = rng.choice(places)
    assert num_masks > 2.5 * sized(60)


def test_masks_along_a_text_are_exact() -> None:
    grammar = lexed_grammar(CALLS)
    text = 'a = f(1.5, "x\\"", b**2) ; # no\nreturn é == returned;'.encode()
    for end in range(len(text)):
        place = place_after(grammar, text[:end])
        assert place is not None
        if end % 4 == 0:
            assert bits(grammar.mask(place.configuration).base) == allowed(grammar, place)[0], text[:end]
    assert accepts(grammar, text.decode())


def test_steps_of_any_size_lead_to_equal_places() -> None:
    grammar = lexed_grammar(CALLS)
    text = b'a1=b+(c*"d")**2;return 1.25;'
    whole = place_after(grammar, text)
    place = grammar.start_place
    for byte in text:
        following = place_after(grammar, bytes([byte]), place.configuration)
        assert following is not None
        place = following
    assert place == whole


def test_what_no_terminal_can_follow_is_never_begun() -> None:
    with pytest.raises(GrammarError, match="matches no string"):
        lexed_grammar("start: NAME NAME\nNAME: /[a-z]+/")
    grammar = lexed_grammar('start: NAME (NAME | "!")\nNAME: /[a-z]+/')
    assert accepts(grammar, "ab!")
    assert not accepts(grammar, "ab")


def test_forced_bytes_are_those_without_a_choice() -> None:
    grammar = lexed_grammar('start: "select" " " ("all" | "any") ";"')
    assert grammar.forced(grammar.start_place.configuration) == b"select a"
    place = place_after(grammar, b"select al")
    assert place is not None
    assert grammar.forced(place.configuration) == b"l;"


def test_a_backend_serves_all_three_lexers() -> None:
    backend = RtlangBackend(small_index())
    source = 'start: "select" NAME "from" NAME\nNAME: /[a-z]+/\n%ignore " "'
    text = b"select afromb"
    for lexer in Lexer:
        matcher = backend.compile(Constraint(ConstraintKind.LARK, source, lexer=lexer)).matcher()
        assert matcher.completes_bytes(text) == (lexer is Lexer.ANYWHERE), lexer
        assert matcher.completes_bytes(b"select a from b")
        assert matcher.closing_bytes() is not None


def test_a_matcher_forks_rolls_back_and_ends() -> None:
    backend = RtlangBackend(small_index())
    tokens = small_index().vocabulary.token_bytes
    end = next(iter(small_index().vocabulary.eos_token_ids))
    matcher = backend.compile(Constraint(ConstraintKind.LARK, 'start: "ab" "if"?')).matcher()
    assert matcher.accept_token(tokens.index(b"a"))
    fork = matcher.fork()
    assert matcher.accept_token(tokens.index(b"b"))
    assert not fork.is_accepting
    assert matcher.is_accepting
    assert matcher.accept_token(tokens.index(b"if"))
    assert matcher.is_terminated
    matcher.rollback(1)
    assert not matcher.is_terminated
    assert matcher.accept_token(end)
    assert not matcher.accept_token(end)


@pytest.mark.parametrize(
    ("source", "step"),
    [
        ('start: s\ns: s s | s s s | "1"', "1"),
        ('start: e\ne: e "+" e | e "*" e | "-" e | "(" e ")" | N\nN: /[0-9]+/', "1+2*-3+(4*5)*"),
    ],
)
def test_ambiguity_costs_little(source: str, step: str) -> None:
    grammar = lexed_grammar(source)
    place: LexedState | None = grammar.start_place
    for byte in (step * 20 + "1").encode():
        assert place is not None
        grammar.mask(place.configuration)
        place = place_after(grammar, bytes([byte]), place.configuration)
    assert place is not None
    assert place.is_complete
    assert len(grammar.places.stack_sets.tops(place.configuration.stacks)) <= grammar.tables.num_states


def test_stacks_of_ended_texts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtlang_grammars.machine.lexed.lexed_grammar._MAX_STACKS", 200)
    compiled = RtlangBackend(small_index()).compile(Constraint(ConstraintKind.LARK, 'start: "(" start ")" | "ab"'))
    first = compiled.machine
    matcher = compiled.matcher()
    tokens = small_index().vocabulary.token_bytes
    for _ in range(100):
        assert matcher.accept_token(tokens.index(b"("))
    assert compiled.matcher().completes_bytes(b"(ab)")
    assert compiled.machine is not first
    assert matcher.completes_bytes(b"ab" + b")" * 100)


def test_threads_share_a_grammar() -> None:
    grammar = lexed_grammar(CALLS)
    texts = [f'v{number} = f({"(" * number}1{")" * number}, "{number}") ;'.encode() for number in range(24)]
    found: dict[int, list[set[int]]] = {}

    def follow(number: int) -> None:
        place, masks = grammar.start_place, []
        for byte in texts[number]:
            masks.append(bits(grammar.mask(place.configuration).base))
            following = place_after(grammar, bytes([byte]), place.configuration)
            assert following is not None
            place = following
        found[number] = masks

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(found)
    grammar = lexed_grammar(CALLS)
    for number in range(24):
        follow(number)
    assert together == found


def test_texts_with_very_many_parses_are_counted_exactly() -> None:
    """Up to 64 letters, in which every rule may end after one or two parts: sets of hundreds of stacks."""
    rules = "".join(f"r{at}: r{at + 1} r{at + 1}?\n" for at in range(6))
    grammar = lexed_grammar(f'start: r0 "."\n{rules}r6: "a" | "b"\n')
    for count in (0, 1, 2, 17, 40, 63, 64, 65):
        assert accepts(grammar, ("ab" * 33)[:count] + ".") == (1 <= count <= 64), count
