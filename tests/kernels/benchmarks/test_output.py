"""Everything that a benchmark says is in its files at once, and what fails is noted without ending the run."""

from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from rtlang_kernels_bench.output import GRACE_S, HANGS, Output, watchdog


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


def test_an_output_that_hangs_does_not_keep_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    is_read, left = threading.Event(), []
    monkeypatch.setattr("rtlang_kernels_bench.output.TELLING_S", 0.01)

    def stuck(line: str) -> None:
        is_read.wait(60)

    with Output(say=stuck) as output, watchdog(output, 480.0, left.append) as timer:
        timer.function()
        assert left == [HANGS]
        is_read.set()


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="a file of Linux that is always full")
NO_SPACE = "OSError: [Errno 28] No space left on device"


def gone(line: str) -> None:
    raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@needs_full
@pytest.mark.parametrize("is_text", [True, False], ids=["text", "figures"])
def test_a_full_disk_is_told_once_and_the_run_goes_on(is_text: bool, tmp_path: Path) -> None:
    said: list[str] = []
    fine = tmp_path / "fine"
    with Output(FULL if is_text else fine, fine if is_text else FULL, say=said.append) as output:
        for number in range(2):
            with output.part("a part"):
                output.write(f"line {number}")
                output.figure({"us": number})
    assert sorted(said) == [f"FAILED writing to {FULL}: {NO_SPACE}", "line 0", "line 1"]
    assert output.num_failed == 1
    wanted = ['{"us": 0}', '{"us": 1}'] if is_text else said
    assert fine.read_text().splitlines() == wanted


def test_a_reader_who_leaves_does_not_end_the_run(tmp_path: Path) -> None:
    with Output(tmp_path / "text", say=gone) as output, output.part("a part"):
        output.write("one")
        output.write("two")
    told = "FAILED writing to standard output: BrokenPipeError: [Errno 32] Broken pipe"
    assert (tmp_path / "text").read_text().splitlines() == [told, "one", "two"]
    assert output.num_failed == 1


def test_where_nobody_takes_a_line_the_run_ends() -> None:
    with pytest.raises(BrokenPipeError), Output(say=gone) as output, output.part("a part"):
        output.write("a line")


def test_lines_may_go_to_a_pipe_or_to_nowhere() -> None:
    with Output(os.devnull, os.devnull, say=lambda line: None) as output:
        output.write("a line")
        output.figure({"us": 1})
    assert output.num_failed == 0


def test_lines_and_figures_do_not_share_a_file(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(tmp_path / "text")
    with pytest.raises(ValueError, match="cannot go to one file"):
        Output(tmp_path / "text", tmp_path / "again")


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Output(tmp_path / "missing" / "text")
    with pytest.raises(OSError):  # and leaves no file open, which would be a warning, and an error here
        Output(tmp_path / "text", tmp_path / "missing" / "figures")
