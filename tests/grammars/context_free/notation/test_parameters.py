"""Rules with parameters, against functions that compute the same sets of texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest

from rtlang_grammars.context_free.notation.parameters import with_parameters_written_out
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar

TEXTS = ["".join(each) for count in range(6) for each in itertools.product("abc", repeat=count)]


@pytest.mark.parametrize(
    ("rules", "holds"),
    [
        (
            'start: perm::0x0 "."\nperm::_: "" %if is_ones([0:3]) // "all" of them\n'
            '  | "a" perm::set_bit(0) %if bit_clear(0)\n  | "b" perm::set_bit(1) %if bit_clear(1)\n'
            '  | "c" perm::set_bit(2) %if not(bit_set(2))\n',
            lambda text: sorted(text) == list("abc"),
        ),
        (
            'start: x::0 "."\nx::_: "a" x::incr(_) %if lt(_, 3) | y::_\ny::_: ("b" | "c") y::incr(_) %if lt(_, 3) | ""\n',
            lambda text: re.fullmatch("a*[bc]*", text) is not None and len(text) <= 3,
        ),
        (
            'start: l::0x0 "."\nl::_: "a" l::incr([0:2]) %if lt([0:2], 2) | "b" l::incr([2:4]) %if le([2:4], 0)\n'
            '  | "c" l::bit_or(16) %if eq([4:5], 0) | ""\n',
            lambda text: text.count("a") <= 2 and text.count("b") <= 1 and text.count("c") <= 1,
        ),
        (
            'start: p::7 "."\np::_: "" %if bit_count_le(_, 2) | "a" p::clear_bit(0) %if and(bit_set(0), bit_count_ge(_, 2))\n'
            '  | "b" p::clear_bit(1) %if and(bit_set(1), bit_count_gt(_, 1)) | "c" p::decr(_) %if or(ne(_, 7), is_zeros([3:9]))\n',
            None,
        ),
        ('start: s::0 "." s::2\ns::_: "a" %if ge(_, 1) | "b" "c"? s::bit_and(0) %if gt([0:2], 1) | "" %if is_zeros(_)\n', None),
    ],
)  # fmt: skip
def test_texts_are_those_of_the_conditions(rules: str, holds: Callable[[str], bool] | None) -> None:
    grammar = lexed_grammar(rules)
    if holds is not None:
        assert [each for each in TEXTS if accepts(grammar, f"{each}.")] == [each for each in TEXTS if holds(each)]
    elif rules.startswith("start: p"):
        assert [each for each in ("a", "b", "", "ab", "aa", "c") if accepts(grammar, f"{each}.")] == [
            "a",
            "b",
            "ab",
            "c",
        ]
    else:
        assert [each for each in (".a", "..", ".b", ".bc", "a.a") if accepts(grammar, each)] == [".a", ".b", ".bc"]


def test_lines_stay() -> None:
    source = 'start: a::1\n\na::_: "x"\n  | "y" a::2 %if eq(_, 1)\nb: "z"\n'
    written = with_parameters_written_out(source).split("\n")
    assert written[4] == 'b: "z"'
    assert written[0].startswith("start: a__p1")


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ('start: foo::0\nfoo::_: "a" %if eq([3:3], 0)', "expected bits", "2:21"),
        ('start: foo\nfoo::_: "a" %if eq([64:65], 0)', "expected bits", "2:21"),
        ('start: foo::0\nfoo::_: "a" %if eq(0, 0)', "expected _ or bits", "2:13"),
        ('start: foo::0\nfoo::_: "a" %if foo([0:1], 0)', "foo: expected one of and", "2:13"),
        ('start: a::1\na: "a"', "rule a has no parameter", "1:9"),
        ('start: a::_\na::_: "a"', "start has no parameter that a could be given", "1:9"),
        ('start: a\na: "x" %if true', "%if is allowed in rules with parameters", "2:8"),
        ('start: a::0\na::_[lazy]: "x"', "options are not supported on rules with parameters", "2:1"),
        ('start: a::0\na::_: "x" a::incr(_)', "more than 5000 rules", None),
    ],
)
def test_errors_have_the_place(source: str, reason: str, location: str | None) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        with_parameters_written_out(source)
    assert caught.value.location == location
