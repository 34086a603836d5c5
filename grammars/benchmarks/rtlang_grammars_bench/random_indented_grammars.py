"""Random grammars whose lines are indented, texts for them, and lark's own parser with its `Indenter`."""

from __future__ import annotations

import random

import lark
from lark.indenter import Indenter

from rtlang_grammars.spec.constraint import Indentation

TREES = r"""
?start: _NL* tree+
tree: NAME (":" _NL _INDENT tree+ _DEDENT | _NL)
    | "(" NAME* ")" _NL
NAME: /[a-z]+/
_NL: /(\r?\n[\t ]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""
TREE_LINES = Indentation("_NL", "_INDENT", "_DEDENT", ("LPAR",), ("RPAR",))

_NEWLINES = [
    r"/(\r?\n[\t ]*)+/",
    r"/\n[ ]*/",
    r"/\n[\t ]*/",
    r"/([\t ]*(#[^\n]*)?\r?\n)+[\t ]*/",
    r"/(\n[\t ]*(#[^\n]*)?)+/",
    r"/\n(  )*/",
    r"/( *\n)+ */",
    r"/;|\n */",
    r"/\n( *\n)* +|\n/",
]
_STATEMENTS = [
    "NAME {nl}",
    'NAME "=" expr {nl}',
    '"if" expr block',
    '"if" expr block ["else" block]',
    '"do" ":" stmt',
    "expr+ {nl}",
    '"x" {nl} "y" {nl}',
    "{nl}",
    '"pass" ";"',
]
_BLOCKS = [
    '":" {nl} {indent} stmt+ {dedent}',
    '":" {nl} {indent} stmt+ {dedent} | ":" NAME {nl}',
    '":" {nl} {indent} stmt {dedent}',
    '":" {nl} {indent} stmt* "end" {nl} {dedent}',
]
_EXPRESSIONS = [
    '"(" expr* ")"',
    '"[" [expr ("," expr)*] "]"',
    "NAME",
    '"(" NAME ")"',
    '"-" expr',
    '"[" expr "]"',
    '"(" "]"',
]
_STARTS = ["stmt+", "{nl}? stmt*", "{nl}* stmt+", "stmt+ {nl}*", "({nl} | stmt)*"]


def random_indented_grammar(rng: random.Random) -> tuple[str, Indentation]:
    """A grammar and its indentation."""
    newline, indent, dedent = rng.choice(
        [("_NL", "_INDENT", "_DEDENT"), ("NL", "INDENT", "DEDENT"), ("_NEWLINE", "IN", "_OUT")]
    )

    def pick(choices: list[str], low: int, high: int) -> str:
        found = rng.sample(choices, rng.randint(low, min(high, len(choices))))
        return " | ".join(each.format(nl=newline, indent=indent, dedent=dedent) for each in found)

    source = "\n".join(
        [
            f"start: {pick(_STARTS, 1, 1)}",
            f"stmt: {pick(_STATEMENTS, 1, 4)} | NAME block | '=' expr {newline}".replace("'", chr(34)),
            f"block: {pick(_BLOCKS, 1, 1)}",
            f"expr: {pick(_EXPRESSIONS, 1, 4)} | NAME",
            f"NAME: /{rng.choice(['[a-z]', '[a-z]+', '[a-z]+(?! )'])}/",
            f"{newline}: {rng.choice(_NEWLINES)}",
            f"%declare {indent} {dedent}",
            rng.choice(['%ignore " "', "%ignore /[ \\t]+/", "%ignore /#[^\\n]*/", ""]),
        ]
    )
    has_brackets = rng.random() < 0.8
    opened = [name for name, text in (("LPAR", '"("'), ("LSQB", '"["')) if has_brackets and text in source]
    closed = [name for name, text in (("RPAR", '")"'), ("RSQB", '"]"')) if has_brackets and text in source]
    return source, Indentation(newline, indent, dedent, tuple(opened), tuple(closed), rng.choice([1, 3, 4, 8]))


_LINES = {
    'NAME "="': ["a = {e}"],
    '"if"': ["if {e}{b}"],
    '["else"': ["if {e}{b}", "else{b}"],
    '"do"': ["do:a{b}", "do:={e}"],
    "expr+": ["{e}", "{e} {e}"],
    '"x"': ["x", "y", "x\ny"],
    '"pass"': ["pass;"],
    "stmt:": ["b{b}", "={e}", "b{b}", "= {e}"],
}


def random_indented_text(rng: random.Random, source: str) -> str:
    """Some lines that are likely to fit a grammar."""
    lines = [line for key, found in _LINES.items() if key in source for line in found]

    def expression() -> str:
        choices = [("(", ")"), ("[", "]"), ("-", ""), ("[ ", ", a]"), ("(\n ", ")"), ("[]", "")]
        if rng.random() < 0.6:
            return "a"
        opened, closed = rng.choice(choices)
        return opened + expression() + closed

    def block(column: int, depth: int) -> list[str]:
        found = []
        for _ in range(rng.randint(1, 3)):
            line = rng.choice(lines).replace("{e}", expression()).replace("{e}", expression())
            blanks = "\t" * (column // 4) if rng.random() < 0.1 else " " * column
            if "{b}" not in line:
                found.append(blanks + line + rng.choice(["", "", "", " ", " # no", "\n"]))
            elif depth > 2 or rng.random() < 0.2:
                found.append(blanks + line.replace("{b}", ": a"))
            else:
                found += [blanks + line.replace("{b}", ":"), *block(column + rng.choice([1, 2, 2, 4]), depth + 1)]
                if '"end"' in source:
                    found.append(blanks + "  end")
        return found

    rows = block(0, 0)
    if rng.random() < 0.5:
        at = rng.randrange(len(rows))
        rows[at] = rng.choice([" ", "  ", "\t", ""]) + rows[at].removeprefix(rng.choice([" ", "  ", "    "]))
    return rng.choice(["\n", "\n", "\n", "\r\n", "\n\n"]).join(rows) + rng.choice(["", "\n", "\n", "\n", "\n  "])


def lark_of(source: str, lines: Indentation) -> lark.Lark | None:
    """lark's contextual lexer, LALR parser and Indenter; None where the grammar has conflicts."""

    class Lines(Indenter):  # type: ignore[misc]
        NL_type, INDENT_type, DEDENT_type = lines.newline, lines.indent, lines.dedent
        OPEN_PAREN_types, CLOSE_PAREN_types = [*lines.open], [*lines.close]
        tab_len = lines.tab_len

    try:
        return lark.Lark(source, parser="lalr", lexer="contextual", postlex=Lines(), strict=False)
    except lark.exceptions.LarkError:
        return None


def lark_tree(parser: lark.Lark, text: str) -> object | None:
    """The tree of a text; None where lark refuses it: its Indenter raises an IndexError where the newline has no line break."""
    try:
        found: object = parser.parse(text)
    except (lark.exceptions.LarkError, AssertionError, IndexError):
        return None
    return found
