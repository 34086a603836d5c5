"""The account of a graph whose engines end: what was computed counts once for each time that it was."""

from __future__ import annotations

import time
from typing import Any

from rtlang.contract.events import NodeFinished, PromptComputed, TextDelta, Timing
from rtlang.contract.params import Usage
from rtlang.fleet.engines.run_account import RunAccount


def ended(node_id: int) -> NodeFinished:
    return NodeFinished(1, node_id, None, (), Usage(), Timing())


def opened() -> RunAccount:
    account = RunAccount(time.monotonic())
    account.note_opened()
    return account


def stay(output: int, steps: float, *reasons: str) -> dict[str, Any]:
    counts = {reason: reasons.count(reason) for reason in reasons}
    return {
        "tokens": {"output": output},
        "work": {"steps": steps},
        "waits": {"row": 0.5},
        "finish_reasons": counts,
        "first_token_s": 9.0,
    }


def test_an_account_that_comes_with_the_last_event_is_the_whole_one() -> None:
    account = opened()
    account.note(TextDelta(1, 1, 0, "a", (5, 6)))
    account.note(ended(1), stay(2, 1.0, "stop"))
    found = account.closed(stay(7, 3.0, "stop", "length"))
    assert found.tokens == {"output": 7}
    assert found.work == {"steps": 3.0}
    assert found.finish_reasons == {"stop": 1, "length": 1}
    assert found.first_token_s is not None
    assert found.first_token_s < 9.0, "from the beginning of the run"
    assert found.moves == []


def test_parts_of_engines_that_died_are_added_as_far_as_they_are_known() -> None:
    account = opened()
    account.note(TextDelta(1, 1, 0, "a", (5, 6)))
    account.note(ended(1), stay(2, 1.0, "stop"))
    account.note(PromptComputed(1, 2, 100, 40))
    account.note(TextDelta(1, 2, 0, "b", (7, 8, 9)))
    account.note_left("a has ended")
    account.note_opened()
    account.note(ended(1), stay(0, 0.0))
    account.note(TextDelta(1, 2, 0, "c", (10,)))
    account.note_left("b has ended")
    account.note_opened()
    found = account.closed(stay(4, 2.0, "length"))
    assert found.tokens == {"prompt": 100, "cached": 40, "output": 2 + 3 + 1 + 4}
    assert found.work == {"steps": 3.0}
    assert found.waits["row"] == 3 * 0.5
    assert found.finish_reasons == {"stop": 1, "length": 1}
    assert [reason for _, reason in found.moves] == ["a has ended", "b has ended"]


def test_a_graph_that_fails_without_its_engine_has_the_part_that_is_known() -> None:
    account = opened()
    account.note(ended(1), stay(2, 1.0, "stop"))
    account.note(TextDelta(1, 2, 0, "b", (7,)))
    account.note_left("a has ended")
    found = account.closed(None)
    assert found.tokens == {"output": 3}
    assert found.finish_reasons == {"stop": 1}
    assert found.waits["engine"] > 0
