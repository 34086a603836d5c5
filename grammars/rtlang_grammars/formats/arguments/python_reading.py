"""Reads `name=literal` arguments as Python does."""

from __future__ import annotations

import ast
import re
from typing import Any

from rtlang_grammars.formats.arguments.value_reading import NAMED, Incomplete, Malformed


def read_python(text: str, at: int) -> tuple[dict[str, Any], int]:
    end = _python_end(text, at)
    written = _ESCAPE.sub(lambda escape: "/" if escape[0] == r"\/" else escape[0], text[at:end])
    try:
        call = ast.parse(f"_({written})", mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise Malformed(f"the arguments are not Python: {error}") from None
    assert isinstance(call, ast.Call)
    if call.args or not all(each.arg for each in call.keywords):
        raise Malformed("expected arguments with names")
    return {str(each.arg): _literal(each.value) for each in call.keywords}, end


_ESCAPE = re.compile(r"\\.", re.DOTALL)
"""Values that are written as JSON may have `\\/`, which Python does not know, and pairs of surrogates, which it does not join."""


def _python_end(text: str, at: int) -> int:
    """The position of the parenthesis that closes the arguments."""
    depth, quote = 0, ""
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    raise Incomplete


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() as text):
            return _joined(text)
        case ast.Constant(value=int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Name(id=name) if name in NAMED:
            return NAMED[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(each) for each in items]
        case ast.Dict(keys=keys, values=values):
            found: dict[str, Any] = {}
            for key, item in zip(keys, values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                    raise Malformed("expected strings as keys")
                found[_joined(key.value)] = _literal(item)
            return found
    raise Malformed(f"expected a literal, not {ast.unparse(node)[:40]!r}")


def _joined(text: str) -> str:
    """The text with each pair of surrogates as one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
