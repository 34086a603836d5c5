"""Grammars of the library for a lexer, against the parsers of their languages: what the masks allow parses, and real texts are accepted."""

from __future__ import annotations

import ast
import itertools
import logging
import random
import re
import shlex
import sqlite3
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlglot
import yaml

from rtlang_grammars.context_free.lark_library import library_constraint
from rtlang_grammars.context_free.lexer_build.parse_trees import parse_tree
from tests.support.grammars.library_texts import ACCEPTED, REFUSED
from tests.support.grammars.mask_walks import in_grammar, random_walk
from tests.support.grammars.node_parsers import mermaid_errors, typescript_errors
from tests.support.long_tests import sized

WORDS = {
    "python3": (
        "and as assert async await break class continue def del elif else except finally for from global if "
        "import in is lambda nonlocal not or pass raise return try while with yield True False None match "
        "case _ x foo self __init__ 1 0 12 3.5 1e5 0x1f 2j ( ) [ ] { } : , ; . ... = == != -> + - * ** / // % "
        '@ & | ~ < >= << += := """ \'\'\' " \' r" b" f" f\' {x} {x!r} # \\ \\n \\x41 rb\' print( x: *a **k '
    ),
    "sql": (
        "select distinct all from where group by having order limit offset as with recursive union intersect "
        "except join inner left right outer cross on using and or not is null in like between case when then "
        "else end cast exists over partition rows unbounded preceding current row asc desc true nulls first "
        "filter ilike :: || == interval 'ab' '1' 'it''s' \"a\" `a` count max coalesce a b c t u x 1 2 3.5 ( ) , "
        ". ; * + - / % = <> <= <=> text integer signed char real decimal current_date day regexp div full "
        "glob "
    ),
    "typescript_types": (
        "type interface export extends keyof infer readonly new typeof in as true null void this string "
        'number A K T Array Record a x id : ; , ? | & < > ( ) [ ] { } = => . ... - + "a" \'b\' "\\n" 1 2.5 `t` '
        "// /* */ +readonly -? [] "
    ),
    "command_line": ("ls -l --all --name=x -- a b \"c d\" 'e f' \\ = - / . é git commit -m -- "),
    "yaml_subset": (
        'a b key name: value true null ~ 1 2.5 -3 2024-01-02 "x" \'y\' - : , [ ] { } # "a: {x: 1} [1, yes '
        "http://x.y/z $x /a/b ./x 10.0.0.1 3px \\n "
    ),
    "mermaid": (
        "flowchart graph TD LR subgraph end sequenceDiagram participant actor as Note left right of over loop "
        "alt else par and classDiagram class stateDiagram-v2 state [*] erDiagram pie showData title A B a1 "
        'Bar : --> --- -.-> ==> |yes| [x] (y) {z} [ ] ( ) { } "q" 12 ->> -->> -x <|-- *-- ..> +int() o{ '
        "||--o{ }|..|{ PK string "
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_texts_are_accepted(name: str) -> None:
    assert [text for text in ACCEPTED[name] if not in_grammar(name, text)] == []


@pytest.mark.parametrize("name", REFUSED)
def test_other_texts_are_refused(name: str) -> None:
    assert [text for text in REFUSED[name] if in_grammar(name, text)] == []


def walks(name: str, count: int, words: str = "", max_steps: int = 40) -> list[str]:
    return [random_walk(name, words or WORDS[name], random.Random(seed), max_steps) for seed in range(sized(count))]


def parse_python(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that mean nothing
        ast.parse(text)


def test_python_that_the_masks_allow_parses() -> None:
    for text in walks("python3", 120):
        parse_python(text)


def test_python_that_is_accepted_parses() -> None:
    for text in ACCEPTED["python3"]:
        parse_python(text)


def test_python_that_is_refused_does_not_parse() -> None:
    for text in REFUSED["python3"]:
        with pytest.raises(SyntaxError):
            parse_python(text)


def test_the_standard_library_is_python() -> None:
    folder = Path(itertools.__file__ if hasattr(itertools, "__file__") else ast.__file__).parent
    files = [each for each in sorted(folder.glob("*.py")) if each.stat().st_size <= 20_000]
    texts = [each.read_text(encoding="utf-8") for each in random.Random(0).sample(files, 40)]
    accepted = [text for text in texts if in_grammar("python3", text)]
    assert len(accepted) >= 36  # the rest has f-strings with calls
    assert all('f"' in text or "f'" in text or 'F"' in text for text in texts if text not in accepted)


def test_a_python_program_has_a_tree() -> None:
    constraint = library_constraint("python3")
    tree = parse_tree(
        constraint.source, "if a:\n    b = [1,\n  2]\nelse:\n    pass\n", indentation=constraint.indentation
    )
    assert len(list(tree.find_data("if"))) == 1
    assert len(list(tree.find_data("assignment"))) == 1


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
def test_queries_that_the_masks_allow_parse(dialect: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    for text in walks(f"sql_select_{dialect}", 120, WORDS["sql"]):
        if not re.search(r"\*\s*(/\*.*\*/\s*)*except", text, re.IGNORECASE):  # sqlglot reads columns to leave out
            sqlglot.parse_one(text, read=dialect)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
def test_queries_that_are_accepted_parse(dialect: str) -> None:
    for text in ACCEPTED[f"sql_select_{dialect}"]:
        sqlglot.parse_one(text, read=dialect)


def sqlite_error(database: sqlite3.Connection, text: str) -> str | None:
    """The error of a query that is one of syntax: what names and functions there are is none."""
    try:
        database.execute("explain " + text)
    except sqlite3.Error as error:
        if not re.match(r"no such |no tables specified|wrong number of arguments|misuse of |ambiguous |SELECTs to the left|"
                        r"table .* has \d+ values|sub-select returns|circular reference|a JOIN clause|cannot join|"
                        r"DISTINCT |FILTER|.* may not be used as a window|\d+\w+ (ORDER|GROUP)|duplicate WITH", str(error)):  # fmt: skip
            return str(error)
    return None


def test_sqlite_finds_no_error_of_syntax() -> None:
    database = sqlite3.connect(":memory:")
    for table in "tux":
        database.execute(f"create table {table} (a int, b int, c int)")
    assert sqlite_error(database, "select from t") is not None
    for text in walks("sql_select_sqlite", 200, WORDS["sql"]):
        assert sqlite_error(database, text) is None, text
    for text in ACCEPTED["sql_select_sqlite"]:
        assert sqlite_error(database, text) is None, text
    database.close()


def test_yaml_that_the_masks_allow_loads() -> None:
    for text in [*walks("yaml_subset", 150), *ACCEPTED["yaml_subset"]]:
        yaml.safe_load(text)


def test_command_lines_are_read_as_by_shlex_and_a_shell() -> None:
    constraint = library_constraint("command_line")
    for text in [*walks("command_line", 60), *ACCEPTED["command_line"]]:
        words = shlex.split(text)
        tokens = [str(each) for each in parse_tree(constraint.source, text).scan_values(lambda _: True)]
        assert words == [shlex.split(each)[0] for each in tokens], text
        if text.isascii():
            found = subprocess.run(["/bin/sh", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True)
            assert found.stdout.decode().split("\0")[:-1] == words, text


@pytest.mark.parametrize(
    ("name", "errors"), [("typescript_types", typescript_errors), ("mermaid", mermaid_errors)], ids=["types", "mermaid"]
)
def test_what_the_masks_allow_parses_in_node(name: str, errors: Callable[[list[str]], list[str]]) -> None:
    texts = [*walks(name, 150), *ACCEPTED[name]]
    assert [pair for pair in zip(texts, errors(texts), strict=True) if pair[1]] == []


@pytest.mark.parametrize(
    ("name", "errors"), [("typescript_types", typescript_errors), ("mermaid", mermaid_errors)], ids=["types", "mermaid"]
)
def test_what_is_refused_does_not_parse_in_node(name: str, errors: Callable[[list[str]], list[str]]) -> None:
    assert all(errors(REFUSED[name]))


@pytest.mark.parametrize("name", ["mermaid", "typescript_types"])
def test_walks_complete(name: str) -> None:
    for text in walks(name, 40):
        assert in_grammar(name, text)
