"""What a caller may choose about the reading of schemas."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Options of `compile_shapes`.

    Attributes:
        assert_formats: `format` is an assertion for every known format; False: an annotation, as 2020-12 has it by default.
        max_alternatives: how many cases one place of a schema may be split into before the compile is refused
            (or, for `not`, `if` and `oneOf`, the keyword is left to be checked).
        max_listed: how many arrays may be written out for `uniqueItems` over a finite set.
        lenient: keywords to leave unenforced wherever they stand; they are reported as ignored.
    """

    assert_formats: bool = True
    max_alternatives: int = 4096
    max_listed: int = 2048
    lenient: frozenset[str] = frozenset()
