"""Tests with `is`, and patterns of `match`, on values that are generated later: refused where their answer would be wrong."""

from __future__ import annotations

import enum
import linecache
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, Optional

import pytest

import rtlang as rt
from rtlang.contract.errors import TraceError
from rtlang.testing import ScriptedRuntime


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Invoice:
    total: int
    note: str | None = None


Maybe = Optional[Invoice]  # noqa: UP045
Letter = Literal["a", None]
ANSWERS: dict[str | None, Any] = {
    "maybe": "null",
    "color": "red",
    "number": "null",
    "sure": "true",
    "name": "Ada",
    "invoice": '{"total": 1}',
}
HEAD = """\
def body(s, given=None):
    s += rt.gen("maybe", type=Maybe) + rt.gen("number", type=int | None) + rt.gen("sure", type=bool)
    s += rt.gen("name") + rt.gen("invoice", type=Invoice) + rt.select("color", Color)
"""


def body_of(source: str) -> FunctionType:
    """The function of a body that has no source file."""
    space = dict(globals())
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):  # about `is` with a text
        code = compile(HEAD + textwrap.indent(textwrap.dedent(source), "    "), "<nowhere>", "exec")
    exec(code, space)
    function = space["body"]
    assert isinstance(function, FunctionType)
    assert linecache.getlines("<nowhere>") == []
    return function


def run(source: str, *args: Any) -> rt.Result[Any]:
    return rt.program(body_of(source)).run(*args, runtime=ScriptedRuntime(ANSWERS))


WRONG = [
    ("return s['maybe'] is None", 4, "== None"),
    ("x = s['maybe']\nif x is not None:\n    s += 'x'", 5, "!= None"),
    ("return s.last is Color.RED", 4, "== Color.RED"),
    ("x = s['color']\nreturn x is Color.BLUE", 5, "== Color.BLUE"),
    ("return s['sure'] is True", 4, "== True"),
    ("return s['name'] is 'Ada'", 4, "== 'Ada'"),
    ("x = s.gen('y', Maybe)\nreturn x is None", 5, "== None"),
    ("x = s.select('y', Color)\nreturn x is Color.RED", 5, "== Color.RED"),
    ("x = s.gen('y', Letter)\nreturn x is None", 5, "== None"),
    ("xs = s.gen('y', Maybe, n=3)\nreturn [x for x in xs if x is not None]", 5, "!= None"),
    ("xs = s.fork(2).gen('y', Maybe)\nfor x in xs:\n    if x is None: return 1", 6, "== None"),
    ("fs = s.fork(2)\nfs += rt.gen('y', type=Maybe)\nreturn fs['y'][0] is None", 6, "== None"),
    ("fs = s.fork(2)\nfs += rt.gen('y', type=Maybe)\nfs.join()\nreturn s['y'][1] is None", 7, "== None"),
    ("x = rt.call(lambda: None)\nreturn x is None", 5, "== None"),
    ("return rt.first([s['maybe'], s['maybe']]) is None", 4, "== None"),
    ("x = rt.switch(s['name'], {'Ada': lambda b: s['number']})\nreturn x is None", 5, "== None"),
    (
        "def branch(b):\n    b += 'x' if s['invoice'].note is None else 'y'\nrt.switch(s['name'], {'Ada': branch})",
        5,
        "== None",
    ),
    ("def inner(t, x=None):\n    return 1 if x is None else x\nreturn rt.program(inner)(s, s['maybe'])", 5, "== None"),
    ("def inner(t):\n    return s['maybe']\nreturn rt.program(inner)(s) is None", 6, "== None"),
    ("match s['maybe']:\n    case None: return 1", 5, "== None"),
    ("match s['invoice']:\n    case Invoice(total=1): return 1", 5, r"match rt.value\(...\):"),
    ("match s['name']:\n    case str(): return 1", 5, r"match rt.value\(...\):"),
    ("x = s['maybe']\nreturn rt.value([lambda: x is None])", 5, "== None"),
]


@pytest.mark.parametrize(("source", "line", "hint"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_test_is_refused_at_its_line(source: str, line: int, hint: str) -> None:
    with pytest.raises(TraceError, match=rf"^<nowhere>:{line}: .*{hint}"):
        run(source)


RIGHT: list[tuple[str, Any]] = [
    ("if given is None: given = s['maybe']\nreturn given == None", True),
    ("x = None\nif x is None: x = s['name']\nif x is not None: return str(x)", "Ada"),
    ("for _ in range(2):\n    if given is not None: return 2\n    given = s['name']", 2),
    ("x = s['invoice']\nreturn x is not None", True),
    ("return s['color'] is not None", True),
    ("return rt.value(s['maybe']) is None", True),
    ("return s['maybe'] == None, s['maybe'] != None, s['number'] == None", (True, False, True)),
    ("return s['invoice'].note is None", True),
    ("return s['color'] == Color.RED", True),
    ("return bool(s['maybe']), not s['number'], 'yes' if s['sure'] else 'no'", (False, True, "yes")),
    ("match rt.value(s['maybe']):\n    case None: return 1", 1),
    ("match s['name']:\n    case 'Eve': return 1\n    case 'Ada' | 'Bob': return 2", 2),
    ("match s['color']:\n    case Color.RED: return 1", 1),
    ("s.set('plain', None)\nreturn s['plain'] is None", True),
    ("fs = s.fork(2)\nfs[0] += rt.gen('y')\nfs.join()\nreturn [x is None for x in s['y']]", [False, True]),
    ("return s.meta('name').stop_match is None", True),
    ("x, y = s['name'], s['name']\nreturn x is s or y is not given", True),
]


@pytest.mark.parametrize(("source", "value"), RIGHT, ids=range(len(RIGHT)))
def test_a_right_test_is_left_alone(source: str, value: Any) -> None:
    assert run(source).value == value


def test_a_graph_tests_for_none_itself() -> None:
    @rt.program
    def main(s: rt.State, kind: Any) -> Any:
        s += rt.gen("x", type=kind)
        rt.switch(s["x"] == None, {True: " none", False: " some"})  # noqa: E711
        rt.repeat(rt.gen("again", type=kind), until=lambda b: b["again"] != None, at_most=3)  # noqa: E711
        return s.text()

    for kind, some in ((Maybe, '{"total": 2}'), (int | None, "5"), (list[int] | None, "[1]"), (str | None, '"a"')):
        script = {"x": "null", "again": ["null", some, "null"]}
        result = main.run(kind, runtime=ScriptedRuntime(script))
        assert result.value == f"null nonenull{some}"
        assert result.breaks == ()
        assert main.run(kind, runtime=ScriptedRuntime({**script, "x": some})).value == f"{some} somenull{some}"


def test_an_async_program_is_told_to_await() -> None:
    @rt.program
    async def main(s: rt.State) -> bool:
        return s.gen("maybe", Maybe) is None

    @rt.program
    async def right(s: rt.State) -> bool:
        return await rt.value(s.gen("maybe", Maybe)) is None

    with pytest.raises(TraceError, match=r"await rt\.value"):
        main.run(runtime=ScriptedRuntime(ANSWERS))
    assert right.run(runtime=ScriptedRuntime(ANSWERS)).value is True


def test_a_graph_ahead_of_time_refuses_them_too() -> None:
    @rt.program
    def main(s: rt.State) -> None:
        s += "yes" if s.gen("maybe", Maybe) is None else "no"

    with pytest.raises(TraceError, match="== None"):
        main.graph()


def test_helpers_and_other_codes_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from rtlang.lang.lazy_values import identity_tests

    read: list[int] = []
    whole: Callable[..., Any] = identity_tests.fate_of
    monkeypatch.setattr(
        identity_tests, "fate_of", lambda code, offset, **how: read.append(offset) or whole(code, offset, **how)
    )

    @rt.program
    def main(s: rt.State) -> str:
        s += rt.gen("name")
        return "".join(str(s["name"]) for _ in range(50))

    assert main.run(runtime=ScriptedRuntime(ANSWERS)).value == "Ada" * 50
    assert len(read) <= 4  # Python changes the instruction once while it runs
