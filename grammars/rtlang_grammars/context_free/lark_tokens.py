r"""Tokens in the source of Lark grammars: `<|im_start|>`, `<[151657]>`, `<[1,10-20]>`, `<[^5]>`, `<[*]>`.

lark cannot read them. So each is replaced by the name of a declared terminal and a blank, of the same length, so that lines and columns
stay; errors and trees show it as it was written. Within strings, regular expressions and comments nothing is replaced.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.places import line_and_column
from rtlang_grammars.spec.tokens import SpecialTokens, TokenSet, read_token

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_PART = re.compile(
    r"""(?P<comment>//[^\n]*|\#[^\n]*)
      | (?P<string>"(?:\\"|\\\\|[^"\n])*?"i?)
      | (?P<regexp>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
      | (?P<token><[^<>\n]*>)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A grammar with its tokens taken out.

    Attributes:
        text: the source for lark; lines and columns are as in the original.
        tokens: what the names of the declared terminals stand for.
    """

    text: str
    tokens: dict[str, TokenSet] = field(default_factory=dict)

    def with_names(self) -> str:
        """The source for lark with tokens as literals of their names.

        Raises:
            GrammarError: a token has no name, but ids.
        """
        if not self.tokens:
            return self.text
        lines = []
        for name, token in self.tokens.items():
            if not token.names:
                raise GrammarError(
                    f"{token.source}: a text does not show ids of tokens; only tokens with names have a place in trees"
                )
            written = token.names[0].replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{name}.1000: "{written}"')
        return "\n".join([self.text[: self.text.rindex("\n%declare")], *lines, ""])

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Show tokens in errors as they were written."""
        try:
            yield
        except GrammarError as error:
            if not self.tokens:
                raise
            names = rf"\b(?:{'|'.join(self.tokens)})\b"
            reason = re.sub(names, lambda found: self.tokens[found[0]].source, error.reason)
            at = self.text.rindex("\n%declare")
            last_line = self.text.count("\n", 0, at) + 1
            is_behind = error.location is not None and int(error.location.partition(":")[0]) > last_line
            raise GrammarError(reason, line_and_column(self.text, at) if is_behind else error.location) from None


def take_out_tokens(text: str, known: SpecialTokens) -> TokenSource:
    """Replace the tokens of a grammar by declared terminals.

    Raises:
        GrammarError: a token is malformed, or a string spells a special token of the vocabulary; with `line:column`.
    """
    if "<" not in text and known.name_in(text) is None and "\\" not in text:
        return TokenSource(text)
    names: dict[str, str] = {}
    tokens: dict[str, TokenSet] = {}
    used = set(re.findall(r"\w+", text))
    free_names: dict[int, Iterator[str]] = {}
    pieces, at = [], 0
    for match in _PART.finditer(text):
        if match.lastgroup == "string":
            _check_string(match, known)
        if match.lastgroup != "token":
            continue
        written = match[0]
        if written not in names:
            try:
                found = read_token(written)
            except GrammarError as error:
                raise GrammarError(f"Lark grammar: {error.reason}", line_and_column(text, match.start())) from None
            if len(written) < 3:
                raise GrammarError(
                    "Lark grammar: <>: expected the name of a token", line_and_column(text, match.start())
                )
            free = free_names.setdefault(len(written), _free_names(len(written) - 1, used))
            names[written] = next(free, "")
            if not names[written]:
                raise GrammarError("Lark grammar: too many names of terminals and tokens")
            tokens[names[written]] = found
        name = names[written]
        if _is_word(text[match.start() - 1 : match.start()]):
            raise GrammarError(
                f"Lark grammar: a blank is missing before {written}", line_and_column(text, match.start())
            )
        pieces += [text[at : match.start()], name, " "]
        at = match.end()
    if not tokens:
        return TokenSource(text)
    declared = f"\n%declare {' '.join(tokens)}\n"
    return TokenSource("".join(pieces) + text[at:] + declared, tokens)


def check_literal(text: str, known: SpecialTokens, location: str | None = None) -> None:
    """Refuse a literal that spells a special token.

    Raises:
        GrammarError: it does; says how to write either meaning.
    """
    name = known.name_in(text)
    if name is not None:
        written = name if re.fullmatch(r"<[^<>\n]+>", name) else f"<[{known.names[name]}]>"
        raise GrammarError(
            f"Lark grammar: the string {text!r} spells the special token {name} of this vocabulary: write {written} without quotes for the "
            "token, or a regular expression for its characters",
            location,
        )


def _check_string(match: re.Match[str], known: SpecialTokens) -> None:
    written = match[0]
    if known.name_in(written) is None and "\\" not in written:
        return
    inner = written.removesuffix("i")[1:-1]
    try:
        inner = re.sub(
            r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})", lambda found: chr(int(found[1][1:], 16)), inner
        )
    except (ValueError, OverflowError):
        return  # lark refuses it
    if known.name_in(inner) is not None:
        check_literal(inner, known, line_and_column(match.string, match.start()))


def _free_names(length: int, used: set[str]) -> Iterator[str]:
    """Names for terminals of some characters, at least two, that the source has not."""
    for letters in itertools.product(_LETTERS[:26], *[_LETTERS] * (min(length, 4) - 1)):
        name = "".join(letters).ljust(length, "_")
        if name not in used:
            yield name


def _is_word(char: str) -> bool:
    return char == "_" or char.isalnum()
