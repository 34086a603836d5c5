"""Options of the schema compiler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Options of `compile_shapes`.

    Attributes:
        default_dialect: dialect of a schema without `$schema` (`draft-04`, `draft-06`, `draft-07`, `2019-09` or `2020-12`);
            None means 2020-12, or an older draft if the schema uses a form that only that draft defines.
        assert_formats: `format` is an assertion for every known format; if False it is an annotation, the default of 2020-12.
        loose_formats: allow all host names with A-labels (`xn--`) and report the format as `checked`; if False they are forbidden.
        max_alternatives: number of cases that one schema may expand to; beyond it, the compile fails or, for `not`, `if` and
            `oneOf`, the keyword is reported as `checked`.
        max_listed: number of arrays that may be enumerated for `uniqueItems` over a finite set of items.
        lenient: keywords to ignore in every schema; they are reported as `ignored`.
    """

    default_dialect: str | None = None
    assert_formats: bool = True
    loose_formats: bool = False
    max_alternatives: int = 4096
    max_listed: int = 400
    lenient: frozenset[str] = frozenset()
