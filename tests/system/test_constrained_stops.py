"""Stops beside constraints: the text is that of the same generation without stops, cut by brute force at the first stop that counts."""

from __future__ import annotations

import json
import queue
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.events import Completion, Event, GraphFailed, NodeFinished
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.engine import engine, preparation
from rtlang.engine.constraints import session
from tests.support.long_tests import sized

GRAMMAR = """start: item (", " item)*
item: NAME | "[" item "]"
NAME: /[a-z]{1,6}/
"""
ITEMS = re.compile(r"(?:\[*[a-z]{1,6}\]*)(?:, \[*[a-z]{1,6}\]*)*")


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def is_items(text: str) -> bool:
    depth_ok = all(part.count("[") == part.count("]") for part in text.split(", "))
    return bool(ITEMS.fullmatch(text)) and depth_ok


CONSTRAINTS: dict[str, tuple[dict[str, Any], Callable[[str], bool]]] = {
    "words": ({"regex": "[a-f ,.]{0,40}"}, lambda text: re.fullmatch("[a-f ,.]{0,40}", text) is not None),
    "numbers": ({"regex": r"\d+(, \d+)*"}, lambda text: re.fullmatch(r"\d+(, \d+)*", text) is not None),
    "characters": ({"regex": "([éa日]b?)+"}, lambda text: re.fullmatch("([éa日]b?)+", text) is not None),
    "json": ({"schema": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 12}}}}, is_json),
    "integer": ({"schema": {"type": "integer"}}, lambda text: re.fullmatch(r"-?(0|[1-9]\d*)", text) is not None),
    "choices": ({"choices": ["a", "ab", "abcab", "b, c"]}, lambda text: text in ("a", "ab", "abcab", "b, c")),
    "grammar": ({"grammar": GRAMMAR}, is_items),
}
STRINGS = [",", ", ", "a", "ab", "b", "é", "日b", " ", '"', "}", "1", "11", "0", "]", "e", "."]
PATTERNS = [r"[,.]", r"\d\d", "b+", r"(?<=a)b", r"\b", "[éb]", "x*", r"\w{3}"]


def cut(
    text: str, is_complete: Callable[[str], bool], strings: tuple[str, ...], patterns: tuple[str, ...], start: int = 0
) -> str:
    """A text up to the first place, in the shortest beginning that has one, where it is complete and a stop begins; not before `start`."""
    places = [place for place in range(start, len(text) + 1) if is_complete(text[:place])]
    found = [re.compile(each) for each in patterns]
    for end in range(len(text) + 1):
        for place in (each for each in places if each <= end):
            if any(text[place:end] == each for each in strings):
                return text[:place]
            if any(is_certain(each, text[:end], place) for each in found):
                return text[:place]
    at_end = [place for place in places if any(each.match(text, place) for each in found)]
    return text[: at_end[0]] if at_end else text


def is_certain(pattern: re.Pattern[str], text: str, place: int) -> bool:
    """Whether a pattern matches whatever follows: one more character decides the assertions in `PATTERNS`."""
    return all(pattern.match(text + tail, place) for tail in ("", "a", " ", "é"))


@rt.program
def generate(s: rt.State, text: str, options: dict[str, Any]) -> None:
    s += text + rt.gen("x", **options)


@rt.program
def best_text(s: rt.State, text: str, options: dict[str, Any]) -> None:
    s += text + rt.best_of(6, rt.gen("x", **options))


@pytest.fixture(scope="module", params=["drafts", "no drafts", "late tokens", "slow masks"])
def runtime(request: Any) -> Iterator[rt.Runtime]:
    """With all tokens accepted, or all masks filled, on other threads in the last two."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "late tokens":
            patch.setattr(engine, "MAX_WORK", 0)
            patch.setattr(preparation, "MAX_WORK", 0)
        if request.param == "slow masks":
            patch.setattr(session, "SLOW_FILL_S", -1.0)
        with rt.Runtime("rtlang:tiny", speculation="on" if request.param == "drafts" else "off") as made:
            yield made


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_the_text_is_cut_where_brute_force_cuts_it(name: str, runtime: rt.Runtime) -> None:
    constraint, is_complete = CONSTRAINTS[name]
    rng = random.Random(name)
    cases: list[tuple[str, dict[str, Any], tuple[str, ...], tuple[str, ...]]] = []
    for seed in range(sized(24)):
        strings = tuple(rng.sample(STRINGS, rng.randint(0, 2)))
        patterns = tuple(rng.sample(PATTERNS, rng.randint(0 if strings else 1, 1)))
        options = {**constraint, "max_tokens": 40, "temperature": rng.choice([0.0, 1.0, 2.0]), "seed": seed}
        if name in ("words", "numbers", "characters", "grammar"):  # the others have texts of few tokens
            options["min_tokens"] = rng.choice([0, 0, 1, 4])
        cases.append((rng.choice(["1, 2, ", "The ", "ab ab ab ab "]), options, strings, patterns))
    plain = generate.run_batch([{"text": text, "options": options} for text, options, _, _ in cases], runtime=runtime)
    stopped = generate.run_batch(
        [{"text": text, "options": {**options, "stop": s, "stop_regex": p}} for text, options, s, p in cases],
        runtime=runtime,
    )
    num_cut = 0
    tokenizer: Any = runtime.tokenizer
    for (_, options, strings, patterns), whole, found in zip(cases, plain, stopped, strict=True):
        ignored = whole.meta("x").token_ids[: max(0, options.get("min_tokens", 0) - 1)]
        start = len(b"".join(map(tokenizer.token_bytes, ignored)).decode("utf-8", "ignore"))
        expected = cut(whole.text("x"), is_complete, strings, patterns, start)
        assert found.text("x") == expected, (whole.text("x"), strings, patterns)
        assert is_complete(found.text("x"))
        assert (found.meta("x").stop_match in (*strings, *patterns)) or expected == whole.text("x")
        num_cut += expected != whole.text("x")
    assert num_cut or name == "json", "no case is cut"


def test_streams_show_no_part_of_a_stop_and_the_value_is_parsed(runtime: rt.Runtime) -> None:
    options = {"regex": r"\d+(, \d+)*", "stop": [", "], "max_tokens": 30, "temperature": 1.0, "seed": 3}

    pieces = list(generate.stream("1, 2, ", options, runtime=runtime).text("x"))
    assert re.fullmatch(r"\d+", "".join(pieces))
    found = generate.run("1, 2, ", options, runtime=runtime)
    assert found["x"] == "".join(pieces)
    number = generate.run("1, 2, ", {"type": int, "stop": ["2"], "max_tokens": 8, "temperature": 1.0}, runtime=runtime)
    assert isinstance(number["x"], int)


def test_of_several_candidates_each_ends_at_its_stop(runtime: rt.Runtime) -> None:
    options = {"regex": "[a-f ,.]{1,40}", "max_tokens": 30, "temperature": 1.0, "seed": 5}
    whole = generate.run("The ", {**options, "n": 6}, runtime=runtime)["x"]
    stopped = generate.run("The ", {**options, "n": 6, "stop": ["a", " "], "logprobs": 0}, runtime=runtime)
    is_complete = CONSTRAINTS["words"][1]
    expected = [cut(text, lambda each: bool(each) and is_complete(each), ("a", " "), ()) for text in whole]
    assert stopped["x"] == expected
    best = best_text.run("The ", {**options, "stop": ["a", " "], "logprobs": 0}, runtime=runtime)
    sums = [sum(each.logprob for each in logprobs) for logprobs in (meta.logprobs for meta in stopped.meta("x"))]
    assert best["x"] == expected[sums.index(max(sums))]


def test_healed_text_ends_at_its_stop(runtime: rt.Runtime) -> None:
    options = {"regex": "[a-z ]{1,30}", "max_tokens": 20, "token_healing": True, "temperature": 1.0, "seed": 4}
    whole = generate.run("hello wor", options, runtime=runtime)["x"]
    for stop in sorted(set(whole)):
        found = generate.run("hello wor", {**options, "stop": stop}, runtime=runtime)["x"]
        assert found == cut(whole, lambda text: bool(text), (stop,), ()), stop


@pytest.mark.parametrize("min_tokens", [0, 3, 6])
def test_a_stop_token_ends_the_text_at_the_first_place_where_it_is_complete(
    min_tokens: int, runtime: rt.Runtime
) -> None:
    tokenizer: Any = runtime.tokenizer
    (stop,) = tokenizer.encode("#", is_start=False)
    options = {"regex": r"\d\d(, \d\d)*", "max_tokens": 30, "temperature": 1.0, "seed": 9}
    whole = generate.run("1, 2, ", options, runtime=runtime).text("x")
    found = generate.run(
        "1, 2, ",
        {**options, "stop_token_ids": [stop], "logit_bias": {stop: 1000.0}, "min_tokens": min_tokens},
        runtime=runtime,
    )
    ends = [end for end in range(len(whole) + 1) if re.fullmatch(r"\d\d(, \d\d)*", whole[:end])]
    token_ids = found.meta("x").token_ids
    assert found.text("x") in [whole[:end] for end in ends]
    assert len(token_ids) >= min_tokens
    sizes = [len(tokenizer.decode(token_ids[:count])) for count in range(min_tokens, len(token_ids))]
    assert not set(sizes) & set(ends)  # no earlier place was complete
    assert found.meta("x").stop_match == stop
    ignored = generate.run("1, 2, ", {**options, "stop_token_ids": [stop]}, runtime=runtime).text("x")
    assert re.fullmatch(r"\d\d(, \d\d)*", ignored)


def test_a_text_goes_on_from_given_tokens_to_the_same_stop(runtime: rt.Runtime) -> None:
    """The tokens of an earlier run are replayed through the constraint, and the places where the text is complete with them."""
    params = rt.Sampling(max_tokens=30, temperature=1.0, seed=6, stop=(", ", "a"))
    constraint = Constraint(ConstraintKind.REGEX, "([a-f]{2,5}, )*[a-f]{2,5}")
    graph = RequestGraph((Text(0, None, ("The ",)), Generate(1, 0, "x", params, constraint)))
    whole = finished(runtime, graph, RunOptions())
    assert whole.stop_match in params.stop
    for count in range(len(whole.token_ids) + 1):
        options = RunOptions(continue_from={1: (whole.token_ids[:count],)})
        again = finished(runtime, graph, options)
        assert (again.text, again.token_ids, again.stop_match) == (whole.text, whole.token_ids, whole.stop_match)


def finished(runtime: rt.Runtime, graph: RequestGraph, options: RunOptions) -> Completion:
    events: queue.Queue[Event] = queue.Queue()
    runtime.submit(graph, events.put, options)
    while True:
        event = events.get(timeout=60)
        assert not isinstance(event, GraphFailed), event
        if isinstance(event, NodeFinished) and event.node_id == 1:
            return event.completions[0]


def test_stops_do_not_count_in_the_thought_before_a_value(runtime: rt.Runtime) -> None:
    for seed in range(8):
        options = {
            "regex": "[a-f]{1,3}(, [a-f]{1,3}){0,3}",
            "reasoning": 8,
            "max_tokens": 40,
            "temperature": 1.5,
            "seed": seed,
        }
        whole = generate.run("The ", options, runtime=runtime)
        stops = (",", "a", "e", " ")
        found = generate.run("The ", {**options, "stop": stops}, runtime=runtime)
        assert found.meta("x").reasoning == whole.meta("x").reasoning
        assert found["x"] == cut(
            whole["x"], lambda text: re.fullmatch("[a-f]{1,3}(, [a-f]{1,3}){0,3}", text) is not None, stops, ()
        )
