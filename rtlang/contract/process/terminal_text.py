"""Text for a terminal: control characters of generated text, which could move the cursor or start a command, are shown as escapes."""

from __future__ import annotations

import re

# C0 and C1 controls and DEL; controls of the writing direction, which reorder what is read; line and paragraph separators; surrogates.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def terminal_text(text: str) -> str:
    """`text` with every control character but newline and tab written as `\\xNN` or `\\uNNNN`, as Python writes them in a literal.

    The result of pieces is the result of the whole text, so it may be applied to text as it streams.
    """
    return UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
