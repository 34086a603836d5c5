"""The input of a custom tool within the arguments of the call that the model writes: `{"input": "..."}`, read as it arrives."""

from __future__ import annotations

import json
import re

INPUT = "input"
"""The name of the only argument of a custom tool."""
_BEGIN = re.compile(rf'\s*\{{\s*"{INPUT}"\s*:\s*"')
_WHOLE = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"
)


class CustomInput:
    """Decodes the input of one call from pieces of its arguments.

    Attributes:
        text: the input so far.
    """

    def __init__(self) -> None:
        self.text = ""
        self._arguments = ""
        self._at: int | None = None  # up to where the string is decoded

    def push(self, piece: str) -> str:
        """Add a piece of the arguments; returns the piece of the input in it."""
        self._arguments += piece
        if self._at is None:
            begin = _BEGIN.match(self._arguments)
            if begin is None:
                return ""
            self._at = begin.end()
        whole = _WHOLE.match(self._arguments, self._at)
        assert whole is not None  # the pattern matches the empty text
        self._at = whole.end()
        return self._add(json.loads(f'"{whole[0]}"', strict=False))

    def finish(self) -> str:
        """End the arguments; returns the rest of the input. Arguments of another form are taken as the input."""
        try:
            whole = json.loads(self._arguments, strict=False)
        except (ValueError, RecursionError):
            return "" if self._at is not None else self._add(self._arguments)
        text = whole.get(INPUT) if isinstance(whole, dict) else None
        if not isinstance(text, str):
            text = self._arguments
        return self._add(text[len(self.text) :]) if text.startswith(self.text) else ""

    def _add(self, text: str) -> str:
        self.text += text
        return text
