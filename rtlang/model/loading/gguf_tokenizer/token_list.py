"""Reads the keys of a GGUF file that describe its tokenizer, and checks them before anything is built of them."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ModelLoadError

TOKENS = "tokenizer.ggml.tokens"
TYPES = "tokenizer.ggml.token_type"
SCORES = "tokenizer.ggml.scores"
MERGES = "tokenizer.ggml.merges"
UNKNOWN = "tokenizer.ggml.unknown_token_id"
_MOST_TOKENS = 1 << 19  # twice the largest vocabulary of a published decoder


class TokenType(enum.IntEnum):
    """The values of `tokenizer.ggml.token_type`."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


SPECIAL_TYPES = frozenset((TokenType.CONTROL, TokenType.UNKNOWN))
"""Tokens that text never becomes."""


class TokenizerKeys:
    """Typed access to the metadata of a GGUF file.

    Every method raises a ModelLoadError that names the key if its value is of another type.

    Attributes:
        source: the file, for errors.
    """

    def __init__(self, metadata: Mapping[str, Any], source: str) -> None:
        self._metadata, self.source = metadata, source

    def error(self, key: str, problem: str) -> ModelLoadError:
        """An error about the value of a key."""
        return ModelLoadError(self.source, f"{key} {problem}")

    def text(self, key: str, default: str | None = None) -> str | None:
        """A string."""
        value = self._metadata.get(key)
        if value is None:
            return default
        if not isinstance(value, str | bytes):
            raise self.error(key, f"= {value!r:.80}: expected a string")
        text = _decoded(value)
        if text is None:
            raise self.error(key, "is not UTF-8")
        return text

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        value = self._metadata.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"= {value!r:.80}: expected true or false")
        return value

    def entries(self, key: str, kinds: tuple[type, ...], expected: str) -> list[Any] | None:
        """A list whose elements are of the given types; None if the key is missing."""
        value = self._metadata.get(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self.error(key, f"is of type {type(value).__name__}: expected a list of {expected}")
        found = set(map(type, value))
        if not found <= set(kinds):
            names = ", ".join(sorted(each.__name__ for each in found - set(kinds)))
            raise self.error(key, f"has elements of type {names}: expected {expected}")
        return list(value)

    def needed_entries(self, key: str, kinds: tuple[type, ...], expected: str) -> list[Any]:
        """A list that must be there."""
        value = self.entries(key, kinds, expected)
        if value is None:
            raise self.error(key, f"is missing: expected a list of {expected}")
        return value

    def names(self) -> list[str]:
        """The tokens' names. A name that no text can contain replaces an empty one and one that is not UTF-8."""
        values = self.needed_entries(TOKENS, (str, bytes), "strings")
        if not 0 < len(values) <= _MOST_TOKENS:
            raise self.error(TOKENS, f"has {len(values):,} elements: expected 1 to {_MOST_TOKENS:,}")
        names = [_decoded(value) or f"[TOKEN_{index}]" for index, value in enumerate(values)]
        if len(set(names)) != len(names):
            first: dict[str, int] = {}
            for index, name in enumerate(names):
                if first.setdefault(name, index) != index:
                    raise self.error(TOKENS, f"has {name!r:.80} twice, as {first[name]} and {index}")
        return names

    def types(self, count: int) -> list[int]:
        """The tokens' types; all are normal if the file does not say."""
        types = self.entries(TYPES, (int,), "integers")
        if types is None:
            return [int(TokenType.NORMAL)] * count
        self._check_length(TYPES, types, count)
        unknown = sorted(set(types) - set(TokenType))
        if unknown:
            raise self.error(TYPES, f"has {unknown[0]}: expected {min(TokenType):d} to {max(TokenType):d}")
        return types

    def scores(self, count: int) -> list[float]:
        """The tokens' scores."""
        scores = self.needed_entries(SCORES, (float, int), "numbers")
        self._check_length(SCORES, scores, count)
        if not all(map(math.isfinite, scores)):
            index = next(index for index, score in enumerate(scores) if not math.isfinite(score))
            raise self.error(SCORES, f"has {scores[index]} for token {index}: expected finite numbers")
        return scores

    def token_id(self, key: str, count: int, default: int | None = None) -> int | None:
        """The id of a token, `default` if the file does not say and has so many tokens."""
        value = self._metadata.get(key)
        if value is None:
            return default if default is not None and default < count else None
        if type(value) is not int or not 0 <= value < count:
            raise self.error(key, f"= {value!r:.80}: expected the id of a token, 0 to {count - 1}")
        return value

    def templates(self) -> dict[str, str]:
        """The chat templates by name; the main one is `default`."""
        main = "tokenizer.chat_template"
        found = {
            "default" if key == main else key.removeprefix(main + "."): self.text(key)
            for key in self._metadata
            if key == main or key.startswith(main + ".")
        }
        return {name: template for name, template in found.items() if template is not None}

    def _check_length(self, key: str, values: list[Any], count: int) -> None:
        if len(values) != count:
            raise self.error(key, f"has {len(values):,} elements: expected {count:,}, as {TOKENS} has")


@dataclass(frozen=True, slots=True)
class TokenList:
    """The vocabulary of a GGUF file: names and types by id."""

    names: list[str]
    types: list[int]

    @classmethod
    def read(cls, keys: TokenizerKeys) -> TokenList:
        """Read the vocabulary. Raises ModelLoadError if it is missing or damaged."""
        names = keys.names()
        return cls(names, keys.types(len(names)))

    def ids(self) -> dict[str, int]:
        """Ids by name."""
        return {name: index for index, name in enumerate(self.names)}

    def added(self, special: frozenset[int], stripped: frozenset[int]) -> list[dict[str, Any]]:
        """The entry `added_tokens` of tokenizer.json: tokens that are looked for in a text before it is cut into words.

        Args:
            special: ids that are control tokens besides those of a special type; only trusted text contains them.
            stripped: ids of tokens that take the whitespace after them.
        """
        entries = []
        for index, kind in enumerate(self.types):
            is_special = kind in SPECIAL_TYPES or index in special
            if is_special or kind == TokenType.USER_DEFINED:
                entries.append(
                    {
                        "id": index,
                        "content": self.names[index],
                        "single_word": False,
                        "lstrip": False,
                        "rstrip": index in stripped,
                        "normalized": False,
                        "special": is_special,
                    }
                )
        return entries


def _decoded(value: str | bytes) -> str | None:
    """A string as text; None if it is not UTF-8, whose other bytes may be lone surrogates."""
    try:
        return (value if isinstance(value, bytes) else value.encode()).decode()
    except UnicodeError:
        return None
