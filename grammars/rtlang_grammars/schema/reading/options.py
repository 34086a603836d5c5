"""What a caller may choose about the reading of schemas."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Options of `compile_shapes`.

    Attributes:
        default_dialect: how a schema without `$schema` is read (`draft-04`, `draft-06`, `draft-07`, `2019-09`, `2020-12`);
            None: as 2020-12, or as an older draft where it uses a form that only that knows.
        assert_formats: `format` is an assertion for every known format; False: an annotation, as 2020-12 has it by default.
        loose_formats: host names with labels that stand for other scripts (xn--) are allowed and left to be checked; False: left out.
        max_alternatives: how many cases one place of a schema may be split into before the compile is refused
            (or, for `not`, `if` and `oneOf`, the keyword is left to be checked).
        max_listed: how many arrays may be written out for `uniqueItems` over a finite set.
        lenient: keywords to leave unenforced wherever they stand; they are reported as ignored.
    """

    default_dialect: str | None = None
    assert_formats: bool = True
    loose_formats: bool = False
    max_alternatives: int = 4096
    max_listed: int = 400
    lenient: frozenset[str] = frozenset()
