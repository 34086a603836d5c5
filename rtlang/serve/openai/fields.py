"""Strict reading of request bodies.

Each route has a `FieldTable`. A field that would change the output and is not supported is refused with an error that names it; only the
fields in `IGNORED` are ignored. A null means that the field is missing, as clients send it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.runs.principal import check_cache_salt

IGNORED = frozenset(
    (
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
        "prediction",
        "request_id",
        "guided_decoding_backend",
    )
)
"""Fields of every route that do not change the text. docs/serving.md publishes this list."""


@dataclass(frozen=True, slots=True)
class FieldTable:
    """The fields of one route.

    Attributes:
        accepted: fields that the route reads.
        fixed: fields that are accepted with these values only, because others are not supported.
        refused: fields with a better refusal than that they are unknown: the reason.
        hints: fields that are accepted and never change the text; routes may read them.
    """

    accepted: frozenset[str]
    fixed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    hints: frozenset[str] = IGNORED

    def given(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The accepted fields of a body that are not null.

        Raises:
            ParameterError: a field is not supported, or not with this value; names it.
        """
        found: dict[str, Any] = {}
        for name, value in body.items():
            if value is None or name in self.hints:
                continue
            if name in self.accepted:
                found[name] = value
            elif name in self.fixed:
                allowed = self.fixed[name]
                if not any(type(value) is type(each) and value == each for each in allowed):
                    shown = " or ".join(_shown(each) for each in allowed)
                    raise ParameterError(name, value, f"only {shown} is supported")
            elif name in self.refused:
                raise ParameterError(name, value, self.refused[name])
            else:
                raise ParameterError(name, value, "this field is not supported")
        return found


def _shown(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def check_inner(where: str, given: Any, accepted: Sequence[str], ignored: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a map within a body that are not null and not ignored.

    Raises:
        ParameterError: it is not a map, or has a field that is not in `accepted`; names the field by its path.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(where, given, "expected an object")
    found = {name: value for name, value in given.items() if value is not None and name not in ignored}
    for name, value in found.items():
        if name not in accepted:
            raise ParameterError(
                f"{where}.{name}", value, f"this field is not supported; expected {', '.join(accepted)}"
            )
    return found


def rename_field(error: ParameterError, names: Iterable[tuple[str, str]]) -> ParameterError:
    """Give an error of a chat request the field that the client of another API sent, in place.

    Args:
        names: fields of the chat request, each with its name in the other API. The first that is the field of the error, or contains it,
            is replaced in the field and in the message.
    """
    for name, here in names:
        if error.field == name or error.field.startswith((f"{name}.", f"{name}[")):
            error.message = error.message.replace(name, here, 1)
            error.field = here + error.field.removeprefix(name)
            break
    return error


def read_bool(given: Mapping[str, Any], name: str, default: bool = False, where: str = "") -> bool:
    """A boolean field."""
    value = given.get(name, default)
    if not isinstance(value, bool):
        raise ParameterError(where + name, value, "expected true or false")
    return value


def read_int(given: Mapping[str, Any], name: str, low: int, high: int, default: int | None = None) -> int | None:
    """An integer field from `low` to `high`."""
    if name not in given:
        return default
    value: object = given[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ParameterError(name, value, f"expected an integer from {low} to {high}")
    return value


SALTS = ("cache_salt", "extra_key")
"""The fields that `read_cache_salt` reads: the first name is vLLM's and SGLang's, the second SGLang's."""


def read_cache_salt(given: Mapping[str, Any]) -> str | None:
    """The salt of the prefix cache, made of both fields if both are given.

    Raises:
        ParameterError: a field is no text of the allowed length; names it.
    """
    found = [name for name in SALTS if name in given]
    for name in found:
        try:
            check_cache_salt(given[name])
        except ParameterError as error:
            raise ParameterError(name, given[name], error.allowed) from None
    if len(found) < len(SALTS):
        return given[found[0]] if found else None
    return hashlib.sha256(json.dumps([given[name] for name in SALTS]).encode()).hexdigest()


def read_text(given: Mapping[str, Any], name: str, where: str = "") -> str:
    """A text field, which must be there."""
    value = given.get(name)
    if not isinstance(value, str):
        raise ParameterError(where + name, value, "expected a string")
    return value


def read_list(given: Mapping[str, Any], name: str, where: str = "") -> list[Any]:
    """A list field, which must be there."""
    value = given.get(name)
    if not isinstance(value, list):
        raise ParameterError(where + name, value, "expected a list")
    return value


_MAX_PAIRS, _MAX_NAME, _MAX_VALUE = 16, 64, 512


def read_metadata(value: Any) -> dict[str, str]:
    """The field `metadata` of an object that keeps it.

    Raises:
        ParameterError: it is no map of at most 16 short texts; names the entry.
    """
    if not isinstance(value, Mapping) or len(value) > _MAX_PAIRS:
        raise ParameterError("metadata", value, f"expected an object of at most {_MAX_PAIRS} names and texts")
    for name, text in value.items():
        if len(name) > _MAX_NAME or not isinstance(text, str) or len(text) > _MAX_VALUE:
            allowed = f"expected a name of at most {_MAX_NAME} and a text of at most {_MAX_VALUE} characters"
            raise ParameterError(f"metadata.{name[:_MAX_NAME]}", text, allowed)
    return dict(value)


def read_ids(name: str, value: Any, vocab_size: int | None = None, *, may_be_empty: bool = False) -> tuple[int, ...]:
    """A list of token ids, below `vocab_size` if that is given.

    Raises:
        ParameterError: it is something else; names the field.
    """
    if not isinstance(value, list) or not (value or may_be_empty):
        raise ParameterError(name, value, f"expected a list of token ids{'' if may_be_empty else ' that is not empty'}")
    for token_id in value:
        if type(token_id) is not int or token_id < 0 or (vocab_size is not None and token_id >= vocab_size):
            allowed = "token ids from 0" if vocab_size is None else f"token ids from 0 to {vocab_size - 1}"
            raise ParameterError(name, token_id, f"expected {allowed}")
    return tuple(value)


def read_id_lists(
    name: str, value: Any, max_lists: int, vocab_size: int | None = None, *, may_be_empty: bool = False
) -> tuple[list[tuple[int, ...]], bool]:
    """One list of token ids or several, and whether there are several; otherwise as `read_ids`."""
    is_many = isinstance(value, list) and bool(value) and isinstance(value[0], list)
    lists = value if is_many else [value]
    if len(lists) > max_lists:
        raise ParameterError(name, len(lists), f"expected at most {max_lists} lists of token ids")
    return [read_ids(name, ids, vocab_size, may_be_empty=may_be_empty) for ids in lists], is_many
