"""Parts are processes: one that fails or hangs costs its own limit, and its figures stay."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rtlang_bench.device.goals.processes import Part, read_figures, run_parts
from rtlang_kernels_bench.output import Output

FIGURE = (
    'import sys, time, json; open(sys.argv[2], \'w\').write(\'{"kind": "x", "value": 1}\\n{"cut\'); print(\'line\');'
)
HANGS = (
    f"{FIGURE} import subprocess; child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"
)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().split()[2] != "Z"
    except OSError:
        return False


def test_each_part_costs_its_limit_at_most(tmp_path: Path) -> None:
    told: list[str] = []
    after: list[list[str]] = []
    parts = [
        Part("hangs", 2.0, ("-c", HANGS), has_budget=False),
        Part("fails", 20.0, ("-c", f"{FIGURE} sys.exit(3)")),
        Part("fine", 20.0, ("-c", f"{FIGURE} print(sys.argv[1:])")),
        Part("late", 20.0, ("-c", FIGURE)),
    ]
    seconds = iter([0.0, 0.0, 5.0, 6.0, 590.0])
    started = time.monotonic()
    with Output(echo=told.append) as output:
        run_parts(
            parts,
            tmp_path,
            output,
            600.0,
            then=lambda: after.append(sorted(read_figures(tmp_path))),
            clock=lambda: next(seconds),
        )
    assert time.monotonic() - started < 40
    assert output.num_failed == 3
    failed = [line for line in told if line.startswith("FAILED")]
    assert failed == [
        "FAILED hangs: TimeoutError: killed after 2 s",
        "FAILED fails: RuntimeError: ended with status 3; its output is in fails.log",
        "FAILED late: not run: out of time",
    ]
    assert after == [["hangs"], ["fails", "hangs"], ["fails", "fine", "hangs"]]
    assert read_figures(tmp_path) == {name: [{"kind": "x", "value": 1}] for name in ("fails", "fine", "hangs")}
    figures = str(tmp_path / "fine.jsonl")
    assert (tmp_path / "fine.log").read_text().splitlines() == [
        "line",
        str(["--json", figures, "--budget-s", "17.0"]),
    ]
    if os.path.exists("/proc/self/stat"):
        child = int((tmp_path / "hangs.log").read_text().split()[-1])
        assert not is_running(child)
