"""Choices by measurement, and their file: with measured times given, so that no clock decides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rtlang_kernels.host import tuning as tuning_module
from rtlang_kernels.host.processor import Processor
from rtlang_kernels.host.tuning import Tuning, cache_dir, machine_digest

MACHINE = Processor("one", "x", 2)
NAMES = ("a", "b", "c")


def given(seconds: dict[str, float], calls: list[str] | None = None) -> Callable[[str], float]:
    def measure(candidate: str) -> float:
        if calls is not None:
            calls.append(candidate)
        return seconds[candidate]

    return measure


def refused(candidate: str) -> float:
    raise AssertionError(f"{candidate} was measured again")


def test_the_fastest_is_chosen_and_known_to_the_next_process(tmp_path: Path) -> None:
    calls: list[str] = []
    first = Tuning(tmp_path, MACHINE)
    assert first.choose("kernel", "8 rows", NAMES, given({"a": 3.0, "b": 1.0, "c": 2.0}, calls)) == "b"
    assert calls[:6] == [*NAMES, *NAMES]  # in turns
    assert first.choose("kernel", "8 rows", NAMES, refused) == "b"
    second = Tuning(tmp_path, MACHINE)
    assert second.choices() == ()
    assert second.choose("kernel", "8 rows", NAMES, refused) == "b"
    assert second.choices() == first.choices()
    assert second.choices()[0].seconds == {"a": 3.0, "b": 1.0, "c": 2.0}
    assert Tuning(tmp_path, MACHINE).choose("kernel", "9 rows", NAMES, given(dict.fromkeys(NAMES, 1.0))) == "a"


def test_an_earlier_candidate_wins_unless_another_is_clearly_faster(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path, MACHINE)
    assert tuning.choose("k", "1", NAMES, given({"a": 1.0, "b": 0.98, "c": 1.02})) == "a"
    assert tuning.choose("k", "2", NAMES, given({"a": 1.0, "b": 0.96, "c": 0.95})) == "b"


def test_a_choice_among_other_candidates_is_measured_again(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path, MACHINE)
    assert tuning.choose("k", "1", NAMES, given({"a": 3.0, "b": 1.0, "c": 2.0})) == "b"
    assert tuning.choose("k", "1", ("a", "c"), given({"a": 3.0, "c": 2.0})) == "c"


def test_other_machines_and_sources_have_choices_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Processor("one", "x", 2, has_avx512=True)
    assert machine_digest(MACHINE) == machine_digest(Processor("one", "x", 2))
    assert len({machine_digest(machine) for machine in (MACHINE, other, Processor("two", "x", 2))}) == 3
    Tuning(tmp_path, MACHINE).choose("k", "1", NAMES, given({"a": 3.0, "b": 1.0, "c": 2.0}))
    assert Tuning(tmp_path, other).choose("k", "1", NAMES, given(dict.fromkeys(NAMES, 1.0))) == "a"
    before = machine_digest(MACHINE)
    (tmp_path / "changed.py").write_text("")
    monkeypatch.setattr(tuning_module, "_SOURCES", tmp_path)
    assert machine_digest(MACHINE) != before


def test_measuring_ends_with_the_budget_and_the_first_candidate_is_taken_unsaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_module, "BUDGET_S", 0.0)
    late = Tuning(tmp_path, MACHINE)
    assert late.choose("k", "1", NAMES, given({"a": 3.0, "b": 1.0, "c": 2.0})) == "a"
    assert late.choices()[0].seconds == {}
    assert late.value("ns", "1", lambda: 2.0) is None
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    assert Tuning(tmp_path, MACHINE).choose("k", "1", NAMES, given({"a": 3.0, "b": 1.0, "c": 2.0})) == "b"


def test_a_figure_is_kept(tmp_path: Path) -> None:
    assert Tuning(tmp_path, MACHINE).value("ns a score", "14/2", lambda: 2e-9) == 2e-9
    assert Tuning(tmp_path, MACHINE).value("ns a score", "14/2", lambda: 5.0) == 2e-9


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "null",
        "[" * 100_000,
        '[{"name": "k"}]',
        '[{"name": "k", "shape": "1", "chosen": "b", "seconds": {"b": "fast"}}]',
        '[{"name": "k", "shape": "1", "chosen": "b", "seconds": {"a": 1.0}}]',
        '[{"name": "k", "shape": "1", "chosen": "b", "seconds": {"b": NaN}}]',
        '[{"name": "k", "shape": ["1"], "chosen": "b", "seconds": {"b": 1.0}}]',
    ],
    ids=lambda text: text[:40],
)
def test_a_damaged_file_is_ignored_and_replaced(text: str, tmp_path: Path) -> None:
    path = tmp_path / f"{machine_digest(MACHINE)}.json"
    path.write_text(text)
    assert Tuning(tmp_path, MACHINE).choose("k", "1", NAMES, given({"a": 1.0, "b": 2.0, "c": 0.5})) == "c"
    assert json.loads(path.read_text())[0]["chosen"] == "c"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_directory_that_cannot_be_written_costs_nothing_but_the_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tuning = Tuning(tmp_path / "file" / "below", MACHINE)
    assert tuning.choose("k", "1", NAMES, given({"a": 1.0, "b": 2.0, "c": 0.5})) == "c"
    assert tuning.choose("k", "1", NAMES, refused) == "c"


def test_choices_of_two_processes_are_merged(tmp_path: Path) -> None:
    one, two = Tuning(tmp_path, MACHINE), Tuning(tmp_path, MACHINE)
    one.choose("k", "1", NAMES, given({"a": 1.0, "b": 2.0, "c": 0.5}))
    two.choose("k", "2", NAMES, given({"a": 1.0, "b": 0.5, "c": 2.0}))
    third = Tuning(tmp_path, MACHINE)
    assert [third.choose("k", shape, NAMES, refused) for shape in ("1", "2")] == ["c", "b"]


def test_what_needs_no_measurement_is_listed_and_not_kept(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path, MACHINE)
    tuning.note("linear layers", "bfloat16", "vdpbf16ps")
    assert [(choice.name, choice.chosen, choice.seconds) for choice in tuning.choices()] == [
        ("linear layers", "vdpbf16ps", {})
    ]
    assert not list(tmp_path.iterdir())


def test_the_cache_directory_follows_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTLANG_CACHE_DIR", str(tmp_path))
    assert cache_dir() == tmp_path / "kernels"
    monkeypatch.delenv("RTLANG_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_dir() == tmp_path / "x" / "rtlang" / "kernels"


def test_it_needs_no_torch() -> None:
    code = "import sys, rtlang_kernels.host.tuning; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, timeout=60, check=True)
