"""The reader of growing JSON against `json.loads` of the whole text, cut anywhere."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rtlang.contract.growing_json import MAX_CONTAINERS, GrowingJson, JsonPath, plain_value
from tests.support.long_tests import sized

ALPHABET = ["a", "é", "😀", '"', "\\", "\n", "\u2028", "\ud800", "\udc00", "/", " ", "{", "]", ",", "1"]


def random_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 4 else 5)
    match kind:
        case 0:
            return rng.choice([True, False, None])
        case 1:
            return rng.randrange(-1000, 1000)
        case 2:
            return rng.choice([0.5, -1e300, 2.5e-7, 0.0, 1e22])
        case 3 | 4:
            return "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(6)))
        case 5 | 6:
            return {f"{rng.choice(ALPHABET)}{index}": random_value(rng, depth + 1) for index in range(rng.randrange(4))}
        case _:
            return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]


def spelled(rng: random.Random, value: Any) -> str:
    return json.dumps(
        value,
        ensure_ascii=rng.random() < 0.5,
        indent=rng.choice([None, 0, 2]),
        separators=rng.choice([None, (",", ":"), (" , ", " : ")]),
    )


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def places_in(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(places_in(each) for each in inner)


def test_every_final_value_is_that_of_the_whole_wherever_the_text_is_cut() -> None:
    for seed in range(sized(400)):
        rng = random.Random(seed)
        value = random_value(rng)
        text = spelled(rng, value)
        whole = json.loads(text)
        for cut in range(len(text) + 1):
            growing = GrowingJson()
            final = growing.push(text[:cut])[0]
            for place in final:
                assert plain_value(growing, place) == at(whole, place.path)
                assert place.path or cut == len(text)  # the whole is final only at its end
            final = final + growing.push(text[cut:])[0] + growing.finish()
            assert growing.is_valid
            assert len(final) == len({place.path for place in final}) == places_in(whole)


def test_the_text_added_to_growing_strings_is_the_strings() -> None:
    for seed in range(sized(300)):
        rng = random.Random(seed)
        value = {str(index): random_value(rng, 4) for index in range(5)}
        text = spelled(rng, value)
        growing, texts, ends = GrowingJson(), {}, {}
        at_end = 0
        while at_end < len(text):
            size = rng.randrange(1, 4)
            final, added = growing.push(text[at_end : at_end + size])
            at_end += size
            if growing.growing is not None:
                texts[growing.growing.path] = texts.get(growing.growing.path, "") + added
                whole = json.loads(text)[growing.growing.path[0]]
                assert whole.startswith(texts[growing.growing.path])
            ends |= {place.path: plain_value(growing, place) for place in final}
        assert ends[()] == json.loads(text)


@pytest.mark.parametrize(
    ("before", "after"), [("[12", "3]"), ("[1", "e5]"), ("[-0", ".5]"), ('{"a": 4', "}"), ("[1.", "25 ]")]
)
def test_a_number_is_final_only_at_its_delimiter(before: str, after: str) -> None:
    growing = GrowingJson()
    assert growing.push(before)[0] == []
    final = growing.push(after)[0]
    assert [plain_value(growing, place) for place in final][-1] == json.loads(before + after)


def test_a_number_alone_is_final_only_when_the_text_ends() -> None:
    growing = GrowingJson()
    assert growing.push("12")[0] == growing.push("34")[0] == []
    (place,) = growing.finish()
    assert plain_value(growing, place) == 1234


def test_the_steps_grow_with_the_text_not_with_the_number_of_chunks_times_it() -> None:
    def steps(count: int, size: int) -> int:
        text = json.dumps({"items": [{"name": "x" * 20, "n": index} for index in range(count)], "text": "y" * count})
        growing = GrowingJson()
        for start in range(0, len(text), size):
            growing.push(text[start : start + size])
        assert growing.root is not None
        assert growing.root.end == len(text)
        assert growing.num_steps <= 3 * len(text)
        return growing.num_steps

    assert steps(2000, 1) <= 11 * steps(200, 1)
    assert steps(2000, 1 << 20) <= steps(2000, 1)


@pytest.mark.parametrize(
    "text", ["x", "[1,,2]", '{"a" 1}', "[1}", "tru!", '["\\q"]', '["\\uzzzz"]', "[01]", "[--1]", "{1: 2}", "{,}", "]"]
)
def test_text_that_is_no_json_is_not_followed(text: str) -> None:
    growing = GrowingJson()
    assert all(place.path for place in growing.push(text)[0])
    assert not growing.is_valid
    assert growing.push("[]") == ([], "")


def test_a_place_that_is_not_final_has_no_value() -> None:
    growing = GrowingJson()
    growing.push('{"a": "b')
    assert isinstance(growing.growing, JsonPath)
    with pytest.raises(ValueError, match="not final"):
        plain_value(growing, growing.growing)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_text_that_is_nested_too_deeply_is_no_value_and_takes_no_memory(opening: str) -> None:
    growing = GrowingJson()
    growing.push(opening * MAX_CONTAINERS)
    assert growing.is_valid
    growing.push(opening * 100_000)
    assert not growing.is_valid
    assert growing.num_steps < 10 * MAX_CONTAINERS
