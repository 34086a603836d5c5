"""`rt.record`, `rt.replay` and `rt.journal`."""

from __future__ import annotations

import os
from collections.abc import Callable

from rtlang.cassette.journal import Journal, OnChange
from rtlang.cassette.journal_file import JournalFile
from rtlang.cassette.recorder import Recorder, Replay
from rtlang.contract.service.target import Target
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


def journal(
    path: str | os.PathLike[str],
    runtime: Target | Callable[[], Target] | None = None,
    *,
    program: str | None = None,
    arguments: str | None = None,
    seed: int | None = None,
    on_change: OnChange = "error",
    wait_s: float | None = None,
) -> Journal:
    """A runtime that runs one program on `runtime` (default: the default runtime), and records it in the file `path`.

    Run again after its process has died, the program continues after the text that it has generated:

        with rt.journal("run.journal", runtime):
            result = report.run(topic)

    Outcomes of nodes and of effects are taken from the file. They are found by paths, so the program may make nodes and read values in
    another order. A function with a recorded outcome is not called again; the policy of a call (`rt.call(on_unknown=...)`) decides where a
    process died between its beginning and its outcome. A finished journal is read without the runtime.

    Args:
        runtime: may also be a function that makes it, which is called if the journal is not finished.
        program, arguments: texts that identify the run. A journal with other ones is refused.
        seed: the seed of the run; random if it is not given.
        on_change: "error": where the program does something else than before, its run ends with JournalError. "recompute": nodes that are
            equal, with all that they build on, keep their outcomes, and the others are computed. An effect with a recorded beginning and
            other arguments is always an error.
        wait_s: seconds that a question of `rt.ask` is waited for; None for any time. Then the run ends with UnansweredError.
    Raises:
        JournalError: another process writes to the file, or it is damaged, or of another program. TraceError: there is no runtime.
    """
    file = JournalFile(path)
    try:
        made = Journal(
            file,
            _swap_default,
            program=program,
            arguments=arguments,
            seed=seed,
            on_change=on_change,
            wait_s=wait_s,
        )
        if made.needs_runtime:
            makes = None if hasattr(runtime, "submit") else runtime
            made.runtime = resolve_runtime(makes() if callable(makes) else runtime)  # type: ignore[arg-type]
        return made
    except BaseException:
        file.close()
        raise


def _swap_default(runtime: Target | None) -> Target | None:
    before = default_runtime()
    set_default_runtime(runtime)
    return before
