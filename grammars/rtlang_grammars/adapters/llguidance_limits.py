"""Bounds the patterns and multiples that a JSON schema combines on one text, for llguidance.

The library decides in native code, which cannot be stopped, whether combined patterns leave any text; its time grows about fourfold with
every two more patterns. So patterns are counted before the library sees a schema, as it would combine them: through `$ref`, `allOf` and
alternatives, and through properties and items that several subschemas describe. The same holds for `multipleOf`, whose automaton has as
many states as the least common multiple.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from rtlang_grammars.spec.errors import GrammarError

MAX_PATTERNS = 8
"""Distinct patterns and formats on one text. Over twelve families of patterns the worst took 14 ms with 8, 94 ms with 10, 0.3 s with 12
and more than 10 s with 16 (one core); the library refuses patterns of independent words from 4 on.
"""

MAX_MULTIPLE = 100_000
"""Least common multiple of the `multipleOf` of one number: 83,160 took 0.35 s, 720,720 took 3.6 s. Powers of ten cost almost nothing."""

_MAX_ROUND = 100
_MAX_ALTERNATIVES = 1024
_MAX_WORK = 200_000

_Schema = dict[str, Any]
_Place = tuple[Any, ...]
"""Subschemas that apply to one value together."""


def check_limits(schema: _Schema) -> None:
    """Check that no text has to match more than MAX_PATTERNS patterns and formats, and no number too large a multiple.

    The count is conservative: where alternatives combine in more than _MAX_ALTERNATIVES ways, all of a group count together.

    Args:
        schema: plain data. External references, and keywords that the library refuses, are left to the library.
    Raises:
        GrammarError: a limit is exceeded, with the place of one of the combined subschemas; or too many subschemas are combined to be
            counted.
    """
    if not _exceeds(_all_dicts(schema)):  # too few to need counting
        return
    _Counter(schema).check()


class _Counter:
    """Visits every place of one schema."""

    def __init__(self, root: _Schema) -> None:
        self._root = root
        self._named = {
            name: part
            for part in _all_dicts(root)
            for key, prefix in (("$id", ""), ("id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#"))
            if isinstance(part.get(key), str) and (name := prefix + part[key])
        }
        self._work = 0
        self._rest_of: dict[int, _Schema] = {}

    def check(self) -> None:
        seen: set[frozenset[int]] = set()
        places: list[_Place] = [(self._root,)]
        while places:
            place = places.pop()
            ids = frozenset(map(id, place))
            if ids in seen:
                continue
            seen.add(ids)
            for together in self._expanded(place):
                problem = _exceeds(together)
                if problem:
                    raise GrammarError(f"JSON schema: {problem}", self._pointer(together))
                places += self._inner(together)

    def _expanded(self, place: _Place) -> list[list[_Schema]]:
        """Every choice of alternatives, as the subschemas that then apply together."""
        done: list[list[_Schema]] = []
        choices: list[tuple[list[_Schema], list[Any], list[list[Any]], set[int]]] = [([], list(place), [], set())]
        while choices:
            together, waiting, groups, seen = choices.pop()
            while waiting or groups:
                if not waiting:
                    group = groups.pop()
                    if len(done) + len(choices) + len(group) <= max(_MAX_ALTERNATIVES, len(group)):
                        self._spend(len(group) * len(together))
                        choices += [([*together], [branch], [*groups], set(seen)) for branch in group[1:]]
                        group = group[:1]
                    waiting += group
                part = waiting.pop()
                if not isinstance(part, dict) or id(part) in seen:
                    continue
                self._spend()
                seen.add(id(part))
                together.append(part)
                waiting += _listed(part.get("allOf"))
                if isinstance(part.get("$ref"), str):
                    waiting.append(self._resolve(part["$ref"]))
                groups += [group for key in ("anyOf", "oneOf") if (group := _listed(part.get(key)))]
            done.append(together)
        return done

    def _inner(self, together: list[_Schema]) -> Iterator[_Place]:
        """The places of properties and items of a value to which all these subschemas apply."""
        objects = [part for part in together if _OBJECT_KEYS & part.keys()]
        names = {name: None for part in objects for key in _NAMED_KEYS for name in _mapped(part.get(key))}
        for name in (*names, None) if objects else ():
            self._spend(len(objects))
            yield tuple(self._property(part, name) for part in objects)
        arrays = [part for part in together if _ARRAY_KEYS & part.keys()]
        length = max((len(_prefix_items(part)) for part in arrays), default=0)
        for index in range(length + 1) if arrays else ():
            self._spend(len(arrays))
            yield tuple(_item(part, index) for part in arrays)

    def _property(self, part: _Schema, name: str | None) -> Any:
        """The demands of `part` on the property `name`; None for undeclared names. Which patterns a name matches is left open."""
        for key in _NAMED_KEYS:
            found = _mapped(part.get(key))
            if name in found:
                return found[name]
        if id(part) not in self._rest_of:
            rest = [*_mapped(part.get("patternProperties")).values(), part.get("additionalProperties", True)]
            self._rest_of[id(part)] = rest[0] if len(rest) == 1 else {"anyOf": rest}
        return self._rest_of[id(part)]

    def _resolve(self, reference: str) -> Any:
        if reference in self._named:
            return self._named[reference]
        base, _, fragment = reference.partition("#")
        if fragment and not fragment.startswith("/"):
            return self._named.get(f"#{fragment}", True)
        found: Any = self._named.get(base, self._root)
        for step in unquote(fragment).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and step in found:
                found = found[step]
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return True  # the library reports the error
        return found

    def _spend(self, amount: int = 1) -> None:
        self._work += amount
        if self._work > _MAX_WORK:
            raise GrammarError(
                "JSON schema: too many subschemas with patterns are combined; use fewer allOf branches", ""
            )

    def _pointer(self, together: list[_Schema]) -> str | None:
        wanted = {id(part) for part in together if _patterns(part) or _multiple(part) > 1}
        waiting: list[tuple[str, Any]] = [("", self._root)]
        while waiting:
            pointer, value = waiting.pop()
            if id(value) in wanted:
                return pointer
            if isinstance(value, dict):
                waiting += [(f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", value[key]) for key in value]
            elif isinstance(value, list):
                waiting += [(f"{pointer}/{index}", item) for index, item in enumerate(value)]
        return None


_NAMED_KEYS = ("properties", "patternProperties")
_OBJECT_KEYS = {*_NAMED_KEYS, "additionalProperties"}
_ARRAY_KEYS = {"items", "prefixItems", "additionalItems"}


def _exceeds(together: Iterable[_Schema]) -> str | None:
    """The limit that these subschemas exceed if all of them apply to one value."""
    patterns: set[tuple[str, str]] = set()
    multiple = 1
    for part in together:
        patterns |= _patterns(part)
        if abs(multiple) < 10**40:
            multiple = math.lcm(multiple, _multiple(part))
    if len(patterns) > MAX_PATTERNS:
        return (
            f"{len(patterns)} patterns and formats hold for one text; at most {MAX_PATTERNS} are allowed at one place"
        )
    if multiple > MAX_MULTIPLE and int(str(multiple).rstrip("0")) > _MAX_ROUND:
        return (
            f"multipleOf: {multiple} is larger than the limit of {MAX_MULTIPLE}, "
            f"or a number of two digits with zeros behind"
        )
    return None


def _patterns(part: _Schema) -> set[tuple[str, str]]:
    return {(key, part[key]) for key in ("pattern", "format") if isinstance(part.get(key), str)}


def _multiple(part: _Schema) -> int:
    value = part.get("multipleOf")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return 1
    _, digits, exponent = Decimal(str(value)).as_tuple()
    assert isinstance(exponent, int)
    return int("".join(map(str, digits)) + "0" * min(max(exponent, 0), 40))


def _prefix_items(part: _Schema) -> list[Any]:
    return _listed(part.get("prefixItems")) or _listed(part.get("items"))


def _item(part: _Schema, index: int) -> Any:
    prefix = _prefix_items(part)
    if index < len(prefix):
        return prefix[index]
    return part.get("additionalItems", True) if isinstance(part.get("items"), list) else part.get("items", True)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapped(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _all_dicts(root: Any) -> Iterator[_Schema]:
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
