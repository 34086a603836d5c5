"""Types of all of pydantic's kinds: every text that their masks allow is read by the type itself, and what pydantic writes is allowed."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import UUID4, Field, TypeAdapter

import rtlang as rt
from rtlang.lang.output_types.types import output_type
from tests.support.grammars.type_walks import accepts, random_texts
from tests.support.long_tests import sized
from tests.support.schemas.python_types import REFUSED, TYPES, WRITTEN, Level

NUM_TEXTS = sized(12, usual=6)
pytestmark = pytest.mark.filterwarnings("ignore:.*ReadOnly.*:UserWarning")


def label(each: Any) -> str:
    """A name for a test that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+|UUID\([^)]*\)", "", str(each))[:60]


@pytest.mark.parametrize("kind", TYPES, ids=label)
def test_every_text_is_read_by_its_own_type(kind: Any) -> None:
    found = output_type(type=kind)
    assert found.constraint is not None
    texts = random_texts(found.constraint, range(NUM_TEXTS))
    oracle = TypeAdapter(kind)
    for text in texts:
        oracle.validate_json(text)
        found.parse(text)
    assert set(texts) - {"{}", "[]", "null", '""'} or kind is tuple[()]


def test_a_model_at_a_high_temperature_writes_values() -> None:
    kinds = [dict[Level, bool], list[UUID4], dict[date, Level], list[Annotated[str, Field(pattern="(?i)^(yes|no)$")]]]

    @rt.program
    def program(s: Any) -> None:
        for number, kind in enumerate(kinds * 2):
            s += "A value: " + rt.gen(f"value {number}", type=kind, max_tokens=120, temperature=1.5, seed=number)

    with rt.Runtime("rtlang:tiny", dtype="float32") as runtime:
        result = program.run(runtime=runtime)
    for number, kind in enumerate(kinds * 2):
        assert result[f"value {number}"] == TypeAdapter(kind).validate_json(result.text(f"value {number}"))


@pytest.mark.parametrize("key", [Level, Literal["a", "b"], bool])
def test_a_map_of_listed_keys_is_empty_only_where_its_type_says_so(key: Any) -> None:
    def allows(kind: Any) -> bool:
        constraint = output_type(type=kind).constraint
        assert constraint is not None
        return accepts(constraint, "{}")

    assert not allows(dict[key, int])
    assert allows(Annotated[dict[key, int], Field(min_length=0)])
    assert allows(Annotated[dict[key, int], Field(max_length=0)])
    assert allows(dict[int, int])


def test_the_types_are_many() -> None:
    assert len({str(kind) for kind in TYPES}) >= 200


@pytest.mark.parametrize(("kind", "value"), WRITTEN, ids=label)
def test_what_pydantic_writes_is_allowed(kind: Any, value: Any) -> None:
    text = TypeAdapter(kind).dump_json(value).decode()
    assert TypeAdapter(kind).validate_json(text) == value
    constraint = output_type(type=kind).constraint
    assert constraint is not None
    assert accepts(constraint, text), text


@pytest.mark.parametrize(("kind", "reason"), REFUSED, ids=label)
def test_what_no_text_can_serve_is_refused_with_its_place(kind: Any, reason: str) -> None:
    with pytest.raises(rt.ParameterError, match=reason):
        output_type(type=kind)
