"""Fields of generated JSON are used as soon as they are final, and are what the whole text says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

import rtlang as rt
from rtlang.contract.request_graph import Apply, Const, Ref
from rtlang.runtime.executors.early_fields import MAX_READ_CHARS, EarlyFields, early_value

GENERATION, PARSE = 1, 2
TEXT = (GENERATION, 0)


def random_value(random: Random, depth: int = 0) -> Any:
    """Plain data of any kind; no object has a name twice."""
    kind = random.randrange(4 if depth > 3 else 6)
    match kind:
        case 0:
            return random.choice([None, True, False])
        case 1:
            return random.choice([0, -1, 12, 3.5, 1e30, -0.25])
        case 2 | 3:
            return "".join(random.choice('ab"\\\n{}[]é\U0001f600') for _ in range(random.randrange(6)))
        case 4:
            return [random_value(random, depth + 1) for _ in range(random.randrange(4))]
        case _:
            return {
                random.choice("xyz") + str(number): random_value(random, depth + 1)
                for number in range(random.randrange(4))
            }


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if path:
        yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths_of(each, (*path, key))


def add_reader(early: EarlyFields, first_id: int, path: tuple[Any, ...]) -> int:
    """Add the nodes that read one field; returns the last."""
    node_id, before = first_id, PARSE
    for key in path:
        early.add(Apply(node_id, "field" if isinstance(key, str) else "item", (Ref(before), Const(key))))
        node_id, before = node_id + 1, node_id
    return before


def is_settled(text: str, path: tuple[Any, ...], value: Any) -> bool:
    """Whether every way to go on with a text of random values keeps a field: tried with other ends of its number or string."""
    for end in ("1", '"', " ", "e5", ".5"):
        for close in ("", *("]" * n + "}" * m for n in range(4) for m in range(4))):
            try:
                found = json.loads(text + end + close)
                for key in path:
                    found = found[key]
            except (ValueError, KeyError, IndexError, TypeError):
                continue
            if found != value:
                return False
    return True


def test_each_field_is_given_once_and_as_the_whole_text_says() -> None:
    random = Random(3)
    num_early = 0
    for _ in range(300):
        whole = random_value(random)
        text = json.dumps(whole, ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1]))
        fields = list(paths_of(whole))
        early = EarlyFields()
        early.add(Apply(PARSE, "parse_json", (Ref(GENERATION),)))
        expected, given, readers = {}, {}, {}
        late = []
        for number, (path, value) in enumerate(fields):
            if random.random() < 0.3:
                late.append((number, path, value))
                continue
            reader = add_reader(early, 1000 * (number + 1), path)
            expected[reader], readers[reader] = value, path
        missing = add_reader(early, 10**6, ("no such field", 0, -1))
        end = 0
        while end < len(text) - 1:
            end = min(len(text) - 1, end + random.randint(1, 4))
            if late and random.random() < 0.2:  # recorded while the text is generated
                number, path, value = late.pop()
                reader = add_reader(early, 1000 * (number + 1), path)
                expected[reader], readers[reader] = value, path
            if early.is_read(TEXT):
                for field in early.read(TEXT, text[:end]):
                    for reader in readers.keys() & field.readers:
                        assert reader not in given
                        given[reader] = early_value(field).value
                        assert is_settled(text[:end], readers[reader], given[reader])
                    num_early += len(field.readers)
        assert missing not in given
        assert all(repr(expected[reader]) == repr(value) for reader, value in given.items())
        early.forget(GENERATION)
        assert not early.is_read(TEXT)
    assert num_early > 500


def test_a_field_that_many_nodes_read_is_found_once() -> None:
    early = EarlyFields()
    early.add(Apply(PARSE, "parse_json", (Ref(GENERATION),)))
    for reader in range(1_000):
        early.add(Apply(10 + reader, "field", (Ref(PARSE), Const("a"))))
    early.add(Apply(5_000, "field", (Ref(PARSE), Const("b"))))
    (found,) = early.read(TEXT, '{"a": [1, 2], "b"')
    assert (found.readers, found.json) == (list(range(10, 1_010)), "[1, 2]")
    assert early.read(TEXT, '{"a": [1, 2], "b": "x"') == [([5_000], '"x"')]
    early.add(Apply(5_001, "field", (Ref(PARSE), Const("a"))))
    assert early.read(TEXT, '{"a": [1, 2], "b": "x"') == [([5_001], "[1, 2]")]
    assert not early.is_read(TEXT)


def test_a_long_text_that_is_read_late_is_caught_up_with_in_parts() -> None:
    early = EarlyFields()
    early.add(Apply(PARSE, "parse_json", (Ref(GENERATION),)))
    early.add(Apply(10, "field", (Ref(PARSE), Const("b"))))
    text = '{"a": "' + "x" * 3 * MAX_READ_CHARS + '", "b": 1}'
    found, num_reads = [], 0
    while not found:
        assert 0 < early.num_unread(TEXT, text) <= MAX_READ_CHARS
        found, num_reads = early.read(TEXT, text), num_reads + 1
    assert (found, num_reads) == ([([10], "1")], 4)


def test_only_fields_of_parsed_texts_are_read() -> None:
    early = EarlyFields()
    assert early.add(Apply(2, "strip", (Ref(1),))) is None
    assert early.add(Apply(3, "field", (Ref(2), Const("city")))) is None
    assert early.add(Apply(4, "parse_json", (Const("{}"),))) is None
    assert early.add(Apply(5, "parse_json", (Ref(1, 2),))) is None
    assert not early.is_read((1, 2))
    assert early.add(Apply(6, "item", (Ref(5), Ref(2)))) is None
    assert early.add(Apply(7, "field", (Ref(5), Const("city")))) == (1, 2)
    assert early.is_read((1, 2))
    assert not early.is_read((1, 0))


class Trip(BaseModel):
    city: Literal["Paris", "Rome"]
    days: int = Field(ge=10, le=99)
    story: str = Field(min_length=60, max_length=80)


@rt.program
def travel(s: Any, is_eager: bool) -> None:
    """A trip, and the weather in its city."""
    trip, weather = s.fork(2)
    trip += rt.user("A trip as JSON.")
    trip += rt.assistant(rt.gen("trip", schema=Trip, max_tokens=120))
    read = rt.value(trip["trip"]) if is_eager else trip["trip"]
    weather += rt.user("Weather in ", read.city, " for ", read.days, " days?")
    weather += rt.assistant(rt.gen("weather", max_tokens=6, temperature=1.0, seed=3))


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(device="cpu", dtype="float32", num_pages=256) as runtime:
        yield runtime


def order_of_values(stream: Any) -> list[str]:
    return [event.name for event in stream if isinstance(event, rt.ValueEvent)]


def test_a_generation_starts_when_the_field_it_needs_is_final(runtime: rt.Runtime) -> None:
    assert order_of_values(travel.stream(is_eager=False, runtime=runtime)) == ["weather", "trip"]
    assert order_of_values(travel.stream(is_eager=True, runtime=runtime)) == ["trip", "weather"]
    early = travel.run(is_eager=False, runtime=runtime)
    late = travel.run(is_eager=True, runtime=runtime)
    assert [each.text() for each in early.forks[0]] == [each.text() for each in late.forks[0]]


class Checked(BaseModel):
    city: Literal["Paris", "Rome"]
    stays: list[Annotated[list[Annotated[int, Field(ge=0, le=99)]], Field(min_length=3, max_length=3)]] = Field(
        json_schema_extra={"uniqueItems": True}, min_length=4, max_length=6
    )


def test_a_value_that_a_check_may_refuse_is_waited_for(runtime: rt.Runtime) -> None:
    @rt.program
    def checked(s: Any) -> None:
        trip, weather = s.fork(2)
        trip += rt.user("A trip as JSON.")
        trip += rt.assistant(rt.gen("trip", schema=Checked, max_tokens=120, temperature=2.0, seed=1, max_retries=0))
        weather += rt.user("Weather in ", trip["trip"].city, "?")
        weather += rt.assistant(rt.gen("weather", max_tokens=6))

    stream = checked.stream(runtime=runtime)
    assert order_of_values(stream) == ["trip", "weather"]
    assert stream.result().breaks == ()
