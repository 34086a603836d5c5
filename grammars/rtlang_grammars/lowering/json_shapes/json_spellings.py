"""Spellings of enumerated strings and declared names.

Either every character stands for itself, or all characters beyond ASCII are escaped with lower or upper case digits; slashes are all plain
or all escaped. Programs write JSON in these ways. Other mixtures of escapes are valid JSON but are left out: they would double the size of
a trie of a thousand names.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

from rtlang_grammars.spec.constraint import Numbers

_PLAIN = re.compile(r"[ !#-.0-\[\]-~]*")  # needs no escapes and has no slashes: one spelling
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # a lone surrogate is not a character: only escapes can spell it
_ESCAPE = re.compile(r"\\\\|\\u[0-9a-f]{4}")  # an escaped backslash consumes its successor


def has_half_a_character(value: str) -> bool:
    """Whether a string contains a lone surrogate, which neither UTF-8 nor the automaton of undeclared names can spell."""
    return bool(_SURROGATE.search(value))


def string_spellings(value: str) -> set[bytes]:
    """The spellings of a string, with its quotes."""
    if _PLAIN.fullmatch(value):
        return {b'"%s"' % value.encode()}
    texts = {json.dumps(value, ensure_ascii=False), json.dumps(value)}
    texts |= {
        _ESCAPE.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), text) for text in texts if "\\u" in text
    }
    texts |= {text.replace("/", "\\/") for text in texts if "/" in text}
    return {text.encode() for text in texts if not has_half_a_character(text)}


def spellings(value: str | float | Decimal | bool | None, numbers: Numbers) -> set[bytes]:
    """The spellings of a scalar literal: as Python's json writes it, with and without escapes. Plain numbers have one spelling."""
    if isinstance(value, str):
        return string_spellings(value)
    if value is None or isinstance(value, bool):
        return {json.dumps(value).encode()}
    texts = {str(value) if isinstance(value, Decimal) else json.dumps(value)}
    if numbers is Numbers.PLAIN:
        pass
    elif isinstance(value, int):
        texts.add(f"{value}.0")
    elif value == int(value):
        texts |= {str(int(value)), f"{int(value)}.0"}
    elif isinstance(value, Decimal):
        texts.add(json.dumps(float(value)))
    return {text.replace("E", "e").encode() for text in texts}
