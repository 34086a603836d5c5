"""Everything that a benchmark says is in its files at once, and what fails is noted without ending the run."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from rtlang_kernels.bench_output import GRACE_S, HANGS, Output, watchdog


def test_lines_are_in_the_files_before_the_run_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, figures = tmp_path / "text", tmp_path / "figures"
    with Output(text, figures) as output:
        assert (text.read_text(), figures.read_text()) == ("", "")
        output.write("one")
        output.figure({"us": 1.5, "name": "one"})
        assert text.read_text() == "one\n"
        assert json.loads(figures.read_text()) == {"us": 1.5, "name": "one"}
        output.write("two")
        output.figure({"us": 2})
        assert text.read_text() == "one\ntwo\n"
        assert [json.loads(line)["us"] for line in figures.read_text().splitlines()] == [1.5, 2]
    assert capsys.readouterr().out == "one\ntwo\n"
    assert output.num_failed == 0


def test_a_part_that_raises_is_noted_and_the_rest_goes_on() -> None:
    said: list[str] = []
    with Output(say=said.append) as output:
        with output.part("first"):
            raise ArithmeticError("wrong\nby far")
        with output.part("second"):
            output.write("fine")
        output.figure({"nobody": "reads it"})
        with pytest.raises(KeyboardInterrupt), output.part("third"):
            raise KeyboardInterrupt
    assert said == ["FAILED first: ArithmeticError: wrong by far", "fine"]
    assert output.num_failed == 1


def test_a_run_that_hangs_is_ended_with_all_that_it_said(tmp_path: Path) -> None:
    text, left = tmp_path / "text", []
    with Output(text, say=lambda line: None) as output:
        output.write("begun")
        with suppress(KeyboardInterrupt), watchdog(output, 480.0, left.append) as timer:
            assert timer.daemon
            assert timer.is_alive()
            assert timer.interval == 480.0 + GRACE_S
            assert left == []
            timer.function()  # as the timer would
            raise KeyboardInterrupt
        timer.join(60)
        assert not timer.is_alive()  # it ends nothing once the run is over
    assert left == [HANGS]
    assert text.read_text().splitlines()[0] == "begun"
    assert "it hangs: 480 s" in text.read_text()


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Output(tmp_path / "missing" / "text")
    with pytest.raises(OSError):  # and leaves no file open, which would be a warning, and an error here
        Output(tmp_path / "text", tmp_path / "missing" / "figures")
