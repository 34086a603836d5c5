"""Imports, overrides and extensions, checked against lark."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.lark_reader import read_lark
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.cfg_membership import cfg_accepts
from tests.support.grammars.random_grammars import lark_accepts, lark_parser

GRAMMARS = {
    "import": ("%import common.INT\nstart: INT", ["12", "", "x", "1 2"]),
    "alias": ("%import common.SIGNED_NUMBER -> N\nstart: N+", ["-1", "+1.5e3", "1", "-", "1e"]),
    "several": ("%import common (CNAME, WS)\n%ignore WS\nstart: CNAME CNAME", ["a b", "ab", "a  b ", "a"]),
    "override": ('%import common.INT\n%override INT: "x"\nstart: INT', ["1", "x"]),
    "override keeps others": (
        '%import common (INT, NUMBER)\n%override INT: "x"\nstart: INT NUMBER',
        ["x1", "11", "xx", "x1.5"],
    ),
    "extend a terminal": ('%import common.INT\n%extend INT: "x"\nstart: INT+', ["1x2", "x", "y"]),
    "extend with own names": ('%import common.INT\n%extend INT: T\nT: "x"\nstart: INT+', ["1x2", "x", "y"]),
    "extend a rule": ('start: a\na: "x"\n%extend a: "y" a', ["x", "yyx", "y"]),
    "override a rule": ('start: a\na: "x"\n%override a: "y"', ["x", "y"]),
}


@pytest.mark.parametrize(("source", "texts"), GRAMMARS.values(), ids=GRAMMARS)
def test_modules_agree_with_lark(source: str, texts: list[str]) -> None:
    parser = lark_parser(source)
    assert parser is not None
    cfg = read_lark(source)
    verdicts = [cfg_accepts(cfg, text) for text in texts]
    assert verdicts == [lark_accepts(parser, text) for text in texts]
    assert any(verdicts)
    assert not all(verdicts)


def test_library_rules_can_be_imported() -> None:
    cfg = read_lark('%import json.value -> value\n%import dates (date)\nstart: value | "@" date')
    for text in ('{"a": [1]}', "@2026-11-21"):
        assert cfg_accepts(cfg, text)
    for text in ('{"a": [1}', "@2026-11-31", "@", ""):
        assert not cfg_accepts(cfg, text)


@pytest.mark.parametrize(
    ("source", "reason", "location"),
    [
        ("start: a b\na: start", "Rule 'b' used but not defined", "1:10"),
        ("start: T\nT: U", "not defined: U", "2:4"),
        ('start: "x"\nstart: "y"', "'start' defined more than once", "2:1"),
        ('start: "x"\n%override a: "y"', "override a nonexisting rule a", "2:1"),
        ('start: "x"\n%extend A: "y"', "extend terminal A as it wasn't defined", "2:1"),
        ('start{a}: "x"\n%extend start: "y"', "different parameters: start", "2:1"),
        ("start: X\n%import common.X", "common does not define X", "1:8"),
        ("start: X\n%import nothing.X", "unknown grammar nothing: expected one of common, .*, arithmetic", "2:9"),
        ("start: X\n%import a.b.X", "unknown grammar a.b", "2:9"),
        ('start: a\na{start}: "x"', "conflicts with rule start", "1:1"),
        ('start: "x"\n%ignore WS', "'WS'.* not defined", "2:9"),
    ],
)
def test_errors_are_located(source: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        read_lark(source)
    assert caught.value.location == location
