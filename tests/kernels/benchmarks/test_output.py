"""Output is in the files at once, and failures are reported without ending the run."""

from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from rtlang_kernels_bench.output import GRACE_S, HANG_STATUS, Output, watchdog


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


def test_a_failed_part_is_reported_and_the_rest_continues() -> None:
    said: list[str] = []
    with Output(echo=said.append) as output:
        with output.part("first"):
            raise ArithmeticError("wrong\nby far")
        with output.part("second"):
            output.write("fine")
        output.figure({"nobody": "reads it"})
        with pytest.raises(KeyboardInterrupt), output.part("third"):
            raise KeyboardInterrupt
    assert said == ["FAILED first: ArithmeticError: wrong by far", "fine"]
    assert output.num_failed == 1


def test_a_hanging_run_is_ended_with_its_output_intact(tmp_path: Path) -> None:
    text, left = tmp_path / "text", []
    with Output(text, echo=lambda line: None) as output:
        output.write("begun")
        with suppress(KeyboardInterrupt), watchdog(output, 480.0, left.append) as timer:
            assert timer.daemon
            assert timer.is_alive()
            assert timer.interval == 480.0 + GRACE_S
            assert left == []
            timer.function()  # as the timer does
            raise KeyboardInterrupt
        timer.join(60)
        assert not timer.is_alive()  # no effect once the run is over
    assert left == [HANG_STATUS]
    assert text.read_text().splitlines()[0] == "begun"
    assert "hangs: exceeded its budget of 480 s" in text.read_text()


def test_a_hanging_output_does_not_keep_the_process_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    is_read, left = threading.Event(), []
    monkeypatch.setattr("rtlang_kernels_bench.output.REPORT_S", 0.01)

    def stuck(line: str) -> None:
        is_read.wait(60)

    with Output(echo=stuck) as output, watchdog(output, 480.0, left.append) as timer:
        timer.function()
        assert left == [HANG_STATUS]
        is_read.set()


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="a file of Linux that is always full")
NO_SPACE = "OSError: [Errno 28] No space left on device"


def gone(line: str) -> None:
    raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@needs_full
@pytest.mark.parametrize("is_text", [True, False], ids=["text", "figures"])
def test_a_full_disk_is_reported_once_and_the_run_continues(is_text: bool, tmp_path: Path) -> None:
    said: list[str] = []
    fine = tmp_path / "fine"
    with Output(FULL if is_text else fine, fine if is_text else FULL, echo=said.append) as output:
        for number in range(2):
            with output.part("a part"):
                output.write(f"line {number}")
                output.figure({"us": number})
    assert sorted(said) == [f"FAILED writing to {FULL}: {NO_SPACE}", "line 0", "line 1"]
    assert output.num_failed == 1
    wanted = ['{"us": 0}', '{"us": 1}'] if is_text else said
    assert fine.read_text().splitlines() == wanted


def test_a_closed_pipe_does_not_end_the_run(tmp_path: Path) -> None:
    with Output(tmp_path / "text", echo=gone) as output, output.part("a part"):
        output.write("one")
        output.write("two")
    told = "FAILED writing to standard output: BrokenPipeError: [Errno 32] Broken pipe"
    assert (tmp_path / "text").read_text().splitlines() == [told, "one", "two"]
    assert output.num_failed == 1


def test_the_run_ends_when_no_destination_is_left() -> None:
    with pytest.raises(BrokenPipeError), Output(echo=gone) as output, output.part("a part"):
        output.write("a line")


def test_lines_may_go_to_a_pipe_or_nowhere() -> None:
    with Output(os.devnull, os.devnull, echo=lambda line: None) as output:
        output.write("a line")
        output.figure({"us": 1})
    assert output.num_failed == 0


def test_lines_and_figures_cannot_share_a_file(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(tmp_path / "text")
    with pytest.raises(ValueError, match="two different files"):
        Output(tmp_path / "text", tmp_path / "again")


def test_an_unwritable_file_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Output(tmp_path / "missing" / "text")
    with pytest.raises(OSError):  # leaves no file open: that would be a warning, and warnings are errors
        Output(tmp_path / "text", tmp_path / "missing" / "figures")
