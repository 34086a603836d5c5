"""Recordings and journals of generations with checks, on a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

import rtlang as rt


class Pair(BaseModel):
    total: int = Field(ge=0, le=99)
    kind: str = Field(max_length=8)


class Checked:
    """A program whose check refuses the first attempts."""

    def __init__(self, refuses: int) -> None:
        self.refuses, self.asked = refuses, list[Pair]()

        @rt.program
        def ask(s: rt.State) -> Any:
            s += rt.user("q")
            s += rt.assistant(rt.gen("pair", type=Pair, max_tokens=60, check=self.check, repair=3, temperature=1.0))
            s += rt.user("so")
            s += rt.assistant(rt.gen("y", max_tokens=5))
            return s["pair"]

        self.program: Any = ask

    def check(self, pair: Pair) -> str | None:
        self.asked.append(pair)
        return "not yet" if len(self.asked) <= self.refuses else None


@pytest.fixture(scope="module")
def runtime() -> Any:
    with rt.Runtime("rtlang:tiny", num_threads=1) as found:
        yield found


def test_repairs_have_noise_of_their_own_and_repeat(runtime: Any) -> None:
    first = Checked(2).program.run(runtime=runtime, seed=7)
    attempts = first.meta("pair").attempts
    assert [each.message for each in attempts] == ["not yet", "not yet", None]
    assert first.value == attempts[2].value
    again = Checked(2).program.run_batch([{}, {}], runtime=runtime, seed=7)[0]
    assert again.meta("pair").attempts[0].text == attempts[0].text
    assert attempts[1].usage.cached_tokens > attempts[0].usage.prompt_tokens // 2


def test_a_recording_and_a_journal_have_all_attempts(runtime: Any, tmp_path: Path) -> None:
    program = Checked(2)
    with rt.record(tmp_path / "recording", runtime) as recorder:
        before = program.program.run(runtime=recorder, seed=7)
    with rt.replay(tmp_path / "recording") as replayed:
        after = program.program.run(runtime=replayed, seed=7)
    assert len(program.asked) == 3
    for name in ("pair", "y"):
        assert after[name] == before[name]
    assert [each.text for each in after.meta("pair").attempts] == [each.text for each in before.meta("pair").attempts]
    assert after.meta("pair").is_replayed
    for _ in range(2):
        with rt.journal(tmp_path / "journal", runtime) as durable:
            result = program.program.run(runtime=durable, seed=8, on_error="result")
    assert result.error is None
    assert len(program.asked) == 4
