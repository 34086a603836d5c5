"""Parse trees of texts that were made under a Lark grammar, as lark shapes them.

Special tokens stand in such texts under their names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import LarkError
from lark.indenter import Indenter
from lark.lexer import Lexer as LarkLexer

from rtlang_grammars.context_free.lark_source import load_with_names, read_source
from rtlang_grammars.context_free.lexer_build.tokenization import Lexeme, LexemeTokenizer
from rtlang_grammars.spec.constraint import Indentation, Lexer
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars.spec.tokens import SPELLING_BYTES, AnyTokens, spelling


def parse_tree(
    grammar: str, text: str, lexer: Lexer = Lexer.LONGEST, indentation: Indentation | None = None
) -> Tree[Any]:
    """The parse tree of a text. Of an ambiguous text, the tree that lark's Earley parser prefers.

    Args:
        grammar: a Lark grammar with start rule `start`.
        lexer: how the text is divided into terminals; see `Lexer`.
        indentation: how the indentation of lines becomes terminals.
    Returns:
        A `lark.Tree` with aliases, `?`, `!` and `_` names applied; its tokens know their places in the text.
    Raises:
        GrammarError: the grammar cannot be read.
        ValueError: the text does not match the grammar.
    """
    return _parser(grammar, lexer, indentation).tree(text)


class _Parser:
    """The parsers of one grammar."""

    def __init__(self, grammar: str, lexer: Lexer, indentation: Indentation | None) -> None:
        budget = Budget()
        self._tokenizer: LexemeTokenizer | None = None
        self._grammar, self._indentation = grammar, indentation
        _, self._names = load_with_names(grammar, budget)
        self._known = AnyTokens()
        if lexer is not Lexer.ANYWHERE:
            source = read_source(grammar, budget=budget, tokens=self._known, indentation=indentation)
            self._tokenizer = LexemeTokenizer(source, budget, is_lark=lexer is Lexer.LARK)
        self._parsers: dict[str, Lark] = {}

    def tree(self, text: str) -> Tree[Any]:
        if self._tokenizer is None:
            return self._parse("dynamic_complete", text)
        data = _Lexed(text, self._lexemes(self._tokenizer, text))
        if not self._tokenizer.has_conflicts:
            return self._parse("lalr", data)
        return self._parse("earley", data)

    def _lexemes(self, tokenizer: LexemeTokenizer, text: str) -> list[Lexeme]:
        """The terminals of a text, with offsets in its UTF-8. Names of tokens are handed to the lexer as it knows them."""
        ids = self._known.names
        if not ids:
            return tokenizer.lexemes(text.encode())
        pattern = re.compile("|".join(map(re.escape, sorted(ids, key=len, reverse=True))).encode())
        data, found, at, moved = b"", [], 0, {0: 0}
        written = text.encode()
        for match in pattern.finditer(written):
            data += written[at : match.start()]
            data += spelling(ids[match[0].decode()])
            at = match.end()
            moved[len(data)] = at - len(data)
        data += written[at:]
        shift = 0
        for lexeme in tokenizer.lexemes(data):
            ends = [moved[place] for place in (lexeme.end,) if place in moved]
            start = lexeme.start + shift
            shift = ends[-1] if ends and lexeme.end - lexeme.start == SPELLING_BYTES else shift
            found.append(Lexeme(lexeme.name, start, lexeme.end + shift))
        return found

    def _parse(self, way: str, data: Any) -> Tree[Any]:
        try:
            if way not in self._parsers:
                grammar, _ = load_with_names(self._grammar, Budget())  # lark changes it
                self._parsers[way] = Lark(
                    grammar,  # type: ignore[arg-type, unused-ignore]
                    parser="lalr" if way == "lalr" else "earley",
                    lexer="dynamic_complete" if way == "dynamic_complete" else _Lexemes,
                    postlex=None if self._indentation is None else _Indenter(self._indentation),
                )
            found: Tree[Any] = self._parsers[way].parse(data)
        except LarkError as error:
            raise ValueError(f"the text does not match the grammar: {error}") from None
        for tree in found.iter_subtrees() if self._names else ():
            for i, child in enumerate(tree.children):
                if isinstance(child, Token) and child.type in self._names:
                    tree.children[i] = Token.new_borrow_pos(self._names[child.type], child.value, child)
        return found


class _Indenter(Indenter):  # type: ignore[misc, unused-ignore]
    """lark's own, as data says."""

    NL_type = INDENT_type = DEDENT_type = ""
    OPEN_PAREN_types: list[str] = []  # noqa: RUF012
    CLOSE_PAREN_types: list[str] = []  # noqa: RUF012
    tab_len = 8

    def __init__(self, given: Indentation) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.NL_type, self.INDENT_type, self.DEDENT_type = given.newline, given.indent, given.dedent
        self.OPEN_PAREN_types, self.CLOSE_PAREN_types = [*given.open], [*given.close]
        self.tab_len = given.tab_len


class _Lexed(str):
    """A text that was divided into terminals."""

    __slots__ = ("lexemes",)
    lexemes: list[Lexeme]

    def __new__(cls, text: str, lexemes: list[Lexeme]) -> _Lexed:
        made = super().__new__(cls, text)
        made.lexemes = lexemes
        return made


class _Lexemes(LarkLexer):  # type: ignore[misc, unused-ignore]
    """Hands terminals that were found before to lark's parsers."""

    __future_interface__ = 0

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, data: Any) -> Iterator[Token]:  # type: ignore[override, unused-ignore]
        """The tokens of a `_Lexed` text."""
        encoded = data.encode()
        is_ascii = len(encoded) == len(data)
        at = start_chars = line = 0
        line_start = 0
        for name, start, end in data.lexemes:
            start_chars += start - at if is_ascii else len(encoded[at:start].decode())
            value = encoded[start:end].decode()
            passed = encoded[at:start]
            if b"\n" in passed:
                line += passed.count(b"\n")
                line_start = start_chars - len(passed[passed.rfind(b"\n") + 1 :].decode())
            end_chars = start_chars + len(value)
            end_line, end_line_start = line + value.count("\n"), line_start
            if end_line > line:
                end_line_start = start_chars + value.rfind("\n") + 1
            yield Token(
                name,
                value,
                start_chars,
                line + 1,
                start_chars - line_start + 1,
                end_line + 1,
                end_chars - end_line_start + 1,
                end_chars,
            )
            at, start_chars, line, line_start = end, end_chars, end_line, end_line_start


@functools.lru_cache(maxsize=32)
def _parser(grammar: str, lexer: Lexer, indentation: Indentation | None) -> _Parser:
    return _Parser(grammar, lexer, indentation)
