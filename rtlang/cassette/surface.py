"""`rt.record` and `rt.replay`."""

from __future__ import annotations

import os

from rtlang.cassette.recorder import Recorder, Replay
from rtlang.contract.target import Target
from rtlang.lang.execution.run import default_runtime, resolve_runtime, set_default_runtime


def record(path: str | os.PathLike[str], runtime: Target | None = None) -> Recorder:
    """A runtime that runs on `runtime` (default: the default runtime), and keeps the outcome of every node in the file `path`.

    Outcomes that the file already has are read instead of computed, so an interrupted batch continues where it stopped:

        with rt.record("run.cassette", runtime):
            results = extract.run_batch(rows)

    Generations that sample without a seed get theirs from the recording. Errors that follow from the program are recorded; overloads,
    deadlines and lost connections are not.

    Raises:
        CassetteError: another process records to the file, or it is damaged. TraceError: there is no runtime.
    """
    return Recorder(path, resolve_runtime(runtime), _swap_default)


def replay(path: str | os.PathLike[str]) -> Replay:
    """A runtime that answers from the file `path`, which `record` made, without a model.

    Raises:
        CassetteError: the file does not exist or is damaged.
    """
    return Replay(path, _swap_default)


def _swap_default(runtime: Target | None) -> Target | None:
    before = default_runtime()
    set_default_runtime(runtime)
    return before
