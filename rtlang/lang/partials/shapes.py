"""The types of the values inside a type: of each field, item and entry, as far as its value can be known before the whole is complete.

Where a part of the type may change its contents (validators, unions of several objects, sets, ...), nothing inside is known early:
the value becomes final as a whole.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import json
import types
import typing
import uuid
from collections.abc import Callable
from typing import Any

from rtlang.contract.growing_json import JsonKind

_LEAVES = (
    str,
    int,
    float,
    bool,
    types.NoneType,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    uuid.UUID,
    enum.Enum,
)
_HARMLESS = ("annotated_types", "pydantic.fields", "pydantic.types", "pydantic._internal._fields", "builtins")
_INNER_CACHE = 512


class ValueShape:
    """The type of one value: parses its text, and knows the shapes of the values inside it.

    Args:
        parse: converts JSON text to the value; raises ValueError for invalid text.
        inner: gives the shape of the value at a name or index inside; None if it is not known before the whole is.
    """

    __slots__ = ("_inner", "_known", "parse")

    def __init__(
        self, parse: Callable[[str], Any], inner: Callable[[JsonKind, str | int], ValueShape | None] | None = None
    ) -> None:
        self.parse, self._inner = parse, inner
        self._known: dict[tuple[JsonKind, str | int], ValueShape | None] = {}

    def inside(self, kind: JsonKind, step: str | int) -> ValueShape | None:
        """The shape of the value at `step` in an object or array of this shape; None if nothing is known of it early."""
        if self._inner is None:
            return None
        key = (kind, step)
        if key not in self._known:
            if len(self._known) >= _INNER_CACHE:
                self._known.clear()
            self._known[key] = self._inner(kind, step)
        return self._known[key]


PLAIN = ValueShape(json.loads)
PLAIN._inner = lambda kind, step: PLAIN


def whole(parse: Callable[[str], Any]) -> ValueShape:
    """A shape of which nothing is known before the whole is."""
    return ValueShape(parse)


def shape_of(hint: Any, parse: Callable[[str], Any] | None = None) -> ValueShape:
    """The shape of a Python type.

    Args:
        parse: parses the whole value; by default pydantic does.
    """
    return _shape(hint, None, parse)


def _shape(hint: Any, config: Any, parse: Callable[[str], Any] | None = None) -> ValueShape:
    if hint is Any or hint is object:
        return PLAIN if parse is None else ValueShape(parse, lambda kind, step: PLAIN)
    if parse is None:
        parse = functools.partial(_parse, _Adapter(hint, config))
    return ValueShape(parse, functools.partial(_inside, hint, config))


class _Adapter:
    """A pydantic adapter that is made when it is first needed."""

    def __init__(self, hint: Any, config: Any) -> None:
        self._hint, self._config = hint, config
        self._made: Any = None

    def validate(self, text: str) -> Any:
        if self._made is None:
            from pydantic import PydanticUserError, TypeAdapter

            try:
                self._made = TypeAdapter(self._hint, config=self._config)
            except PydanticUserError:  # the type has a configuration of its own
                self._made = TypeAdapter(self._hint)
        return self._made.validate_json(text)


def _parse(adapter: _Adapter, text: str) -> Any:
    return adapter.validate(text)


def _inside(hint: Any, config: Any, kind: JsonKind, step: str | int) -> ValueShape | None:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        hint, *marks = typing.get_args(hint)
        harmless = all(type(mark).__module__.startswith(_HARMLESS) for mark in marks)
        return _inside(hint, config, kind, step) if harmless else None
    if origin in (typing.Union, types.UnionType):
        deep = [each for each in typing.get_args(hint) if not _is_leaf(each)]
        return _inside(deep[0], config, kind, step) if len(deep) == 1 else None
    if origin in (typing.Required, typing.NotRequired):
        return _inside(typing.get_args(hint)[0], config, kind, step)
    if hint is Any or hint is object:
        return PLAIN
    if kind is JsonKind.ARRAY:
        return _item(hint, origin, config, step)
    if hint is dict:
        return PLAIN
    if origin is dict:
        key, value = typing.get_args(hint)
        return _shape(value, config) if key is str else None
    fields = _fields(hint)
    if fields is None or step not in fields[0]:
        return None
    return _shape(fields[0][step], fields[1])


def _item(hint: Any, origin: Any, config: Any, step: str | int) -> ValueShape | None:
    if hint is list or hint is tuple:
        return PLAIN
    args = typing.get_args(hint)
    if origin is list:
        return _shape(args[0], config)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _shape(args[0], config)
    if origin is tuple and isinstance(step, int) and step < len(args):
        return _shape(args[step], config)
    return None


def _is_leaf(hint: Any) -> bool:
    """Whether values of this type are neither objects nor arrays in JSON."""
    if hint is None or typing.get_origin(hint) is typing.Literal:
        return True
    if typing.get_origin(hint) is typing.Annotated:
        return _is_leaf(typing.get_args(hint)[0])
    return isinstance(hint, type) and issubclass(hint, _LEAVES)


def _fields(hint: Any) -> tuple[dict[str, Any], Any] | None:
    """The types of an object's fields by their names in JSON, and the configuration they are parsed with; None if they are not known."""
    try:
        return _known_fields(hint)
    except TypeError:  # not hashable
        return None


@functools.lru_cache(maxsize=256)
def _known_fields(hint: Any) -> tuple[dict[str, Any], Any] | None:
    owner = typing.get_origin(hint) or hint
    if not isinstance(owner, type):
        return None
    if typing.is_typeddict(owner) or hasattr(owner, "__required_keys__"):
        hints = typing.get_type_hints(owner, include_extras=True)
        return {name: _without_required(each) for name, each in hints.items()}, getattr(
            owner, "__pydantic_config__", None
        )
    if hasattr(owner, "__pydantic_decorators__"):
        return _pydantic_fields(owner)
    if dataclasses.is_dataclass(owner) and not hasattr(owner, "__post_init__") and owner is hint:
        hints = typing.get_type_hints(owner, include_extras=True)
        known = {
            field.name: hints[field.name]
            for field in dataclasses.fields(owner)
            if field.init and not type(field.default).__module__.startswith("pydantic")
        }
        return known, getattr(owner, "__pydantic_config__", None)
    return None


def _without_required(hint: Any) -> Any:
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        (hint,) = typing.get_args(hint)
    return hint


def _pydantic_fields(owner: Any) -> tuple[dict[str, Any], Any] | None:
    """As `_fields`, for a pydantic model or dataclass. Values that a validator or hook may change are not known early."""
    from pydantic import BaseModel, RootModel

    decorators = owner.__pydantic_decorators__
    if decorators.model_validators or decorators.root_validators or "__post_init__" in dir(owner):
        return None
    config: Any = getattr(owner, "model_config", None) or getattr(owner, "__pydantic_config__", None) or {}
    if issubclass(owner, BaseModel):
        own_hooks = ("model_post_init", "__init__", "__get_pydantic_core_schema__", "__new__")
        if issubclass(owner, RootModel) or any(
            getattr(getattr(owner, name), "__func__", getattr(owner, name))
            is not getattr(getattr(BaseModel, name), "__func__", getattr(BaseModel, name))
            for name in own_hooks
        ):
            return None
    checked: set[str] = set()
    for group in (decorators.field_validators, decorators.validators):
        for each in group.values():
            checked |= set(each.info.fields)
    if "*" in checked:
        return None
    known: dict[str, Any] = {}
    for name, info in owner.__pydantic_fields__.items():
        alias = info.validation_alias if info.validation_alias is not None else info.alias
        if name in checked or info.discriminator is not None or not (alias is None or isinstance(alias, str)):
            continue
        hint = info.annotation
        for mark in info.metadata:
            hint = typing.Annotated[hint, mark]
        known[name if alias is None else alias] = hint
    return known, config
