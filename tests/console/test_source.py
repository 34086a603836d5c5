from __future__ import annotations

import datetime
import enum
import sys
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.console.source import CommandError, describe, load_program, missing_arguments, read_arguments

SOURCE = """
import rtlang as rt
import helper

@rt.program
def first(s, name: str):
    s += helper.GREETING + name

@rt.program
def second(s):
    s += "x"

number = 3
"""


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@rt.program
def typed(
    s: rt.State,
    name: str,
    untyped,  # type: ignore[no-untyped-def]
    age: int = 1,
    share: float = 0.5,
    is_loud: bool = False,
    words: list[str] | None = None,
    numbers: list[int] = (),  # type: ignore[assignment]
    table: dict[str, int] | None = None,
    colour: Colour = Colour.RED,
    day: datetime.date | None = None,
    anything: Any = None,
) -> None:
    s += name


@rt.program
def open_ended(s: rt.State, **rest: str) -> None:
    s += "".join(rest)


@rt.program
def unresolved(s: rt.State, name: NoSuchType = "x") -> None:  # type: ignore[name-defined]  # noqa: F821
    s += name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs in programs.py, outside of the module path; what importing changes is undone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "programs.py").write_text(SOURCE)
    (tmp_path / "helper.py").write_text("GREETING = 'hello '")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("import rtlang as rt\n@rt.program\ndef only(s):\n    s += 'x'\n")
    yield tmp_path
    for name in [
        name
        for name in sys.modules
        if name in ("helper", "package") or name.startswith(("package.", "rtlang_program_"))
    ]:
        del sys.modules[name]


def test_a_file_is_run_with_its_folder_on_the_module_path(folder: Path) -> None:
    program = load_program(f"{folder / 'programs.py'}:first")
    assert program.name == "first"
    assert program.graph(name="Ada").nodes[0].parts == ("hello Ada",)  # type: ignore[union-attr]


def test_a_module_is_found_from_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert load_program("package.inner:only").name == "only"


def test_the_only_program_needs_no_name(folder: Path) -> None:
    assert load_program(str(folder / "package" / "inner.py")).name == "only"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("missing.py:first", "file not found: missing.py"),
        ("some/where/missing:first", "file not found: some/where/missing"),
        ("no_such_module_here:first", "no file or module named no_such_module_here"),
        ("{}/programs.py:third", "no program 'third'; it has first, second"),
        ("{}/programs.py:number", "'number' in"),
        ("{}/programs.py", r"has 2 programs \(first, second\)"),
        ("{}/helper.py", r"has no programs \(none\)"),
        ("{}/helper.py:GREETING", "not a program"),
    ],
)
def test_a_wrong_name_says_what_there_is(folder: Path, spec: str, told: str) -> None:
    with pytest.raises(CommandError, match=told) as caught:
        load_program(spec.format(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def broken(:\n", r"SyntaxError"),
        ("import rtlang\n1 / 0\n", r"bad\.py:2: ZeroDivisionError: division by zero"),
        ("import no_such_module_either\n", r"ModuleNotFoundError.*no_such_module_either"),
        ("raise ValueError('two\\nlines')\n", r"ValueError: two \.\.\.$"),
    ],
)
def test_a_file_that_cannot_be_run_says_where_and_why(folder: Path, source: str, told: str) -> None:
    (folder / "bad.py").write_text(source)
    with pytest.raises(CommandError, match=told) as caught:
        load_program(f"{folder / 'bad.py'}:x")
    assert "\n" not in str(caught.value)


def test_a_module_that_fails_inside_is_not_called_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "package" / "broken.py").write_text("import no_such_module_either\n")
    with pytest.raises(CommandError, match=r"importing .* failed.*no_such_module_either"):
        load_program("package.broken:x")


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ("age=7", "age", 7),
        ("share=0.25", "share", 0.25),
        ("share=1e-3", "share", 0.001),
        ("is_loud=true", "is_loud", True),
        ("is_loud=no", "is_loud", False),
        ("words=a, b,c", "words", ["a", "b", "c"]),
        ('words=["a", "b"]', "words", ["a", "b"]),
        ("numbers=1, 2,3", "numbers", [1, 2, 3]),
        ("numbers=[4]", "numbers", [4]),
        ('table={"a": 1}', "table", {"a": 1}),
        ("colour=blue", "colour", Colour.BLUE),
        ("day=2024-02-29", "day", datetime.date(2024, 2, 29)),
        ("anything=7", "anything", "7"),
    ],
)
def test_a_value_becomes_what_the_parameter_says(given: str, name: str, value: object) -> None:
    values = read_arguments(typed, ["name=Ada", "untyped=7", given])
    assert values == {"name": "Ada", "untyped": "7", name: value}


def test_text_is_never_converted() -> None:
    assert read_arguments(typed, ["name=7=8", "untyped="]) == {"name": "7=8", "untyped": ""}


def test_an_annotation_that_cannot_be_resolved_leaves_text() -> None:
    assert read_arguments(unresolved, ["name=7"]) == {"name": "7"}


def test_a_value_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "essay.txt").write_text("long, with ümlauts\n", encoding="utf-8")
    (tmp_path / "age").write_text("41")
    values = read_arguments(typed, [f"name=@{tmp_path}/essay.txt", f"age=@{tmp_path}/age", "untyped=@@home"])
    assert values == {"name": "long, with ümlauts\n", "age": 41, "untyped": "@home"}


def test_json_arguments_are_converted_and_overridden() -> None:
    given = '{"name": "Ada", "untyped": [1], "age": 41, "colour": "red", "day": "2024-02-29", "numbers": [1, 2]}'
    values = read_arguments(typed, ["colour=blue"], as_json=given)
    assert values == {
        "name": "Ada",
        "untyped": [1],
        "age": 41,
        "colour": Colour.BLUE,
        "day": datetime.date(2024, 2, 29),
        "numbers": [1, 2],
    }
    for wrong, told in (('{"nome": 1}', "--args nome: unknown"), ('{"age": "old"}', "--args age=old: expected int")):
        with pytest.raises(CommandError, match=told):
            read_arguments(typed, ["name=a", "untyped="], as_json=wrong)


def test_a_program_may_take_any_names() -> None:
    assert read_arguments(open_ended, ["a=1", "b=2"]) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["name=Ada"], "requires untyped: pass --arg untyped="),
        ([], "requires name, untyped"),
        (["name"], "'name': expected name=value"),
        (["=3"], "expected name=value"),
        (["nome=Ada"], "nome: unknown argument; typed takes name, untyped"),
        (["name=a", "name=b"], "given twice"),
        (["name=a", "untyped=", "age=old"], "age=old: expected int"),
        (["name=a", "untyped=", "numbers=1,x"], "numbers=1,x"),
        (["name=a", "untyped=", "colour=green"], "expected Colour"),
        (["name=@no/such/file", "untyped="], "cannot read no/such/file: No such file"),
    ],
)
def test_a_wrong_argument_says_what_is_wanted(given: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told) as caught:
        read_arguments(typed, given)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CommandError, match="not UTF-8"):
        read_arguments(typed, [f"name=@{tmp_path}/image", "untyped="])


def test_the_place_of_an_error_is_the_last_line_of_the_users_file() -> None:
    def inner() -> None:
        int("x")

    with pytest.raises(ValueError) as caught:
        inner()
    assert describe(caught.value, __file__).startswith(f"{__file__}:{inner.__code__.co_firstlineno + 1}: ValueError: ")
    assert describe(caught.value) == "ValueError: invalid literal for int() with base 10: 'x'"


def test_arguments_without_a_value_are_named() -> None:
    assert missing_arguments(typed, {}) == ("name", "untyped")
    assert missing_arguments(typed, {"name": "x"}) == ("untyped",)
    assert missing_arguments(open_ended, {}) == ()
