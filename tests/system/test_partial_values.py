"""Partial values, reasoning, healing and distortion over a socket: as with the same model in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server


class Fact(BaseModel):
    name: str = Field(max_length=6)
    counts: list[int] = Field(max_length=3)


@rt.program
def ask(s: Any) -> None:
    s += "The fact at http:" + rt.gen("link", 4, token_healing=True, seed=1)
    s += "\n" + rt.gen("fact", 60, schema=Fact, reasoning=24, distortion=True, temperature=1.0, seed=2)


@pytest.fixture(scope="module")
def tiny() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny", dtype="float32") as runtime:
        yield runtime


@rt.program
def rated(s: Any) -> None:
    s += "Rate it: " + rt.gen("stars", choices=["1", "2"], distortion=True, n=2) + rt.gen("why", 4)
    s += f"{s['why']} again: " + rt.gen("again", choices=["1", "2"], distortion=True)


def test_explain_tells_what_masks_removed_in_a_run(tiny: rt.Runtime) -> None:
    found, result = rt.explain(rated, runtime=tiny), rated.run(runtime=tiny)
    assert set(found.distortion) == {"stars", "again"}
    assert found.distortion["stars"] == pytest.approx(sum(each.distortion.total for each in result.meta("stars")))
    assert found.distortion["again"] == pytest.approx(result.meta("again").distortion.total)
    assert f"stars {found.distortion['stars']:.2f}" in str(found)


def seen(runtime: Any) -> tuple[Any, ...]:
    final: dict[Any, Any] = {}
    thought = ""
    with ask.stream(runtime=runtime) as events:
        for event in events:
            match event:
                case rt.PartialEvent(name="fact"):
                    final |= event.final
                case rt.ReasoningEvent(name="fact", text=text):
                    thought += text
                case rt.EndEvent(result=result):
                    found = result
    meta = found.meta("fact")
    return found["link"], found["fact"], final, thought, meta.reasoning, meta.reasoning_tokens, meta.distortion


def test_a_server_gives_the_same_as_a_runtime_in_this_process(tiny: rt.Runtime) -> None:
    link, fact, final, thought, reasoning, reasoning_tokens, distortion = local = seen(tiny)
    assert link.startswith("//")
    assert final[()] == fact
    assert final["name",] == fact.name
    assert [final["counts", index] for index in range(len(fact.counts))] == fact.counts
    assert reasoning in thought
    assert 0 < reasoning_tokens <= 24
    assert distortion.total == pytest.approx(sum(distortion.by_field.values()))
    with running_server(tiny, ServeConfig(port=0)) as url, rt.connect(url) as there:
        assert seen(there) == local
