"""The texts that a listed string or a declared name may have.

Every character as itself, or all beyond ASCII as escapes, with small or large digits; slashes as themselves or all escaped. These are the
ways in which programs write JSON. Other mixtures of escapes are valid JSON, too, and are left out: tries of a thousand names would double.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

_PLAIN = re.compile(r"[ !#-.0-\[\]-~]*")  # neither escapes nor slashes: spelled in one way
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # alone, it is no character: only escapes can say it
_ESCAPE = re.compile(r"\\\\|\\u[0-9a-f]{4}")  # an escaped backslash is taken with its own


def string_spellings(value: str) -> set[bytes]:
    """The texts of a string, with its quotes."""
    if _PLAIN.fullmatch(value):
        return {b'"%s"' % value.encode()}
    texts = {json.dumps(value, ensure_ascii=False), json.dumps(value)}
    texts |= {
        _ESCAPE.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), text) for text in texts if "\\u" in text
    }
    texts |= {text.replace("/", "\\/") for text in texts if "/" in text}
    return {text.encode() for text in texts if not _SURROGATE.search(text)}


def spellings(value: str | float | Decimal | bool | None) -> set[bytes]:
    """The texts of a literal that is no array and no object: as Python's json writes them, with and without escapes."""
    if isinstance(value, str):
        return string_spellings(value)
    if value is None or isinstance(value, bool):
        return {json.dumps(value).encode()}
    texts = {str(value) if isinstance(value, Decimal) else json.dumps(value)}
    if isinstance(value, int):
        texts.add(f"{value}.0")
    elif value == int(value):
        texts |= {str(int(value)), f"{int(value)}.0"}
    elif isinstance(value, Decimal):
        texts.add(json.dumps(float(value)))
    return {text.replace("E", "e").encode() for text in texts}
