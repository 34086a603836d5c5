"""Finds the end of a JSON object in a text that grows."""

from __future__ import annotations

import re

_SIGN = re.compile(r'[{}\[\]"]')
_END_OF_STRING = re.compile(r'(?:[^"\\]|\\.)*+"', re.DOTALL)


class JsonScan:
    """The JSON object or array at `begin` of a text, after blanks. Each character is looked at once, except for an unfinished string."""

    def __init__(self, begin: int) -> None:
        self._begin = self._at = begin
        self._depth = 0
        self._is_in_string = self._is_done = False

    def value(self, text: str) -> str:
        """The text of the value as far as it is there. Call it with the same text, or with more of it."""
        while self._depth == 0 and self._begin < len(text) and text[self._begin] in " \t\r\n":
            self._begin += 1
            self._at = self._begin
        while not self._is_done and self._at < len(text):
            if self._is_in_string:
                end = _END_OF_STRING.match(text, self._at)
                if end is None:
                    break
                self._at, self._is_in_string = end.end(), False
                continue
            sign = _SIGN.search(text, self._at)
            if sign is None:
                self._at = len(text)
                break
            self._at = sign.end()
            match sign[0]:
                case '"':
                    self._is_in_string = True
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    self._is_done = self._depth <= 0
        return text[self._begin : self._at if self._is_done else len(text)]
