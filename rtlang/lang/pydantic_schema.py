"""The JSON schema of pydantic types, as narrow as what pydantic then reads.

Its own schemas say less than its validators for some types: any text is a Decimal, any URI an HttpUrl, and a datetime without an offset
has a format that asks for one. A text held to such a schema could end as one that its own type refuses.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema

# What `url` and `multi_host_url` read for sure: a host whose last label is no number, and then no surprises.
_LABEL = "[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
_HOST = rf"({_LABEL}\.)*[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*"
_REST = r"(:[1-9][0-9]{0,3})?([/?#][!-~]*)?"
NAIVE_DATETIME = (
    r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$"
)
DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"


@functools.cache
def generator() -> type[GenerateJsonSchema]:
    """The class that pydantic's `json_schema` functions take as `schema_generator`."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            """A number; also the text of one where nothing but a pattern would have to say more."""
            found: dict[str, Any] = {"type": "number"}
            names = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
            for own, keyword in {**names, "multiple_of": "multipleOf"}.items():
                if schema.get(own) is not None:
                    found[keyword] = float(schema[own])
            digits, places = schema.get("max_digits"), schema.get("decimal_places")
            if places is not None:
                found.setdefault("multipleOf", float(f"1e-{places}") if places else 1)
            elif digits is not None:
                found.setdefault("multipleOf", 1)
            if digits is not None:
                largest = 10.0 ** (digits - (places or 0))
                found.setdefault("exclusiveMaximum", largest)
                found.setdefault("exclusiveMinimum", -largest)
            return found if len(found) > 1 else {"anyOf": [found, {"type": "string", "pattern": DECIMAL}]}

        def url_schema(self, schema: Any) -> dict[str, Any]:
            return self._with_schemes(super().url_schema(schema), schema)

        def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
            return self._with_schemes(super().multi_host_url_schema(schema), schema)

        def _with_schemes(self, found: dict[str, Any], schema: Any) -> dict[str, Any]:
            schemes = schema.get("allowed_schemes")
            if schemes:
                found["pattern"] = f"^({'|'.join(map(_escaped, schemes))})://{_HOST}{_REST}$"
            return found

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            if schema.get("tz_constraint") == "naive":
                return {"type": "string", "pattern": NAIVE_DATETIME}
            return super().datetime_schema(schema)

    return Generator


def _escaped(scheme: str) -> str:
    return "".join(f"[{letter}]" if letter in "+.-" else letter for letter in scheme)
