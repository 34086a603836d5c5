"""The order in which generations become due, their prompts, and their times."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.bench.baselines.plain_programs import PlainPrograms


def generation(node_id: int, parent: int) -> dict[str, Any]:
    return {"id": node_id, "parent": parent, "max_tokens": 2, "schema": None}


def text(node_id: int, parent: int | None, *tokens: int) -> dict[str, Any]:
    return {"id": node_id, "parent": parent, "tokens": list(tokens)}


def programs(*nodes: list[dict[str, Any]], arrivals_s: tuple[float, ...] = ()) -> PlainPrograms:
    return PlainPrograms(
        nodes, arrivals_s, lambda text: [ord(each) for each in text], lambda ids: "".join(map(chr, ids))
    )


CHAIN = [text(-1, None, 1), text(0, -1, 5), generation(1, 0), text(2, 1, 6, 7), generation(3, 2), generation(4, 0)]


def test_a_generation_is_due_when_those_before_it_have_ended() -> None:
    running = programs(CHAIN)
    assert running.take_due(0.0) == [(0, 1), (0, 4)]
    assert running.take_due(9.0) == []
    assert running.start((0, 1)) == [1, 5]
    running.finish((0, 4), [8], 1.0)
    assert running.next_s is None
    running.finish((0, 1), [9, 9], 2.0)
    assert running.take_due(2.0) == [(0, 3)]
    assert running.start((0, 3)) == [1, 5, 9, 9, 6, 7]
    assert not running.is_done
    running.finish((0, 3), [2], 5.0)
    assert running.is_done
    assert running.num_prompt_tokens == 2 + 6


def test_those_that_wait_longest_come_first_and_only_as_many_as_asked_for() -> None:
    running = programs(
        [text(-1, None, 1), generation(0, -1)],
        [text(-1, None, 1), generation(0, -1), generation(1, -1)],
        arrivals_s=(2.0, 1.0),
    )
    assert running.take_due(0.5) == []
    assert running.next_s == 1.0
    assert running.take_due(3.0, 2) == [(1, 0), (1, 1)]
    assert running.take_due(3.0, 2) == [(0, 0)]


def test_a_tool_delays_what_reads_it_and_its_answer_is_text() -> None:
    tool = {"id": 2, "parent": None, "caller": 1, "delay_s": 0.5, "text": "ab"}
    reading = {"id": 3, "parent": 1, "parts": ["x", 2]}
    running = programs([text(-1, None, 1), text(0, -1, 5), generation(1, 0), tool, reading, generation(4, 3)])
    assert running.take_due(0.0) == [(0, 1)]
    running.finish((0, 1), [9], 2.0)
    assert running.next_s == 2.5
    assert running.take_due(2.4) == []
    assert running.take_due(2.5) == [(0, 4)]
    assert running.start((0, 4)) == [1, 5, 9, *b"xab"]


def test_texts_of_branches_are_merged_when_all_have_ended() -> None:
    merging = {"id": 3, "parent": 0, "parts": [1, ",", 2]}
    running = programs(
        [text(-1, None, 1), text(0, -1, 5), generation(1, 0), generation(2, 0), merging, generation(4, 3)]
    )
    assert running.take_due(0.0) == [(0, 1), (0, 2)]
    running.finish((0, 2), [*b"two"], 1.0)
    assert running.take_due(9.0) == []
    running.finish((0, 1), [*b"one"], 2.0)
    assert running.take_due(2.0) == [(0, 4)]
    assert running.start((0, 4)) == [1, 5, *b"one,two"]


def test_results_count_from_the_arrival_of_each_program() -> None:
    running = programs(
        [text(-1, None, 1), generation(0, -1)], [text(-1, None, 1), generation(0, -1)], arrivals_s=(0.0, 4.0)
    )
    for key, start in ((0, 0), 0.5), ((1, 0), 4.5):
        running.start(key)
        running.note_output(key, start)
        running.note_output(key, start + 0.25)
        running.finish(key, [7, 7], start + 0.25)
    assert running.results(5.0) == {
        "total_s": 5.0,
        "latencies_s": [pytest.approx(0.75), pytest.approx(0.75)],
        "times_s": [[0, 0, [0.5, 0.75]], [1, 0, [4.5, 4.75]]],
        "outputs": [[0, 0, [7, 7]], [1, 0, [7, 7]]],
        "num_prompt_tokens": 2,
    }
