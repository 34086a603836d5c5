"""Describes the end of an engine by its exit code, its record of work, and the kernel's count of processes killed for lack of memory."""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rtlang.contract.process.current_work import WorkSample
from rtlang.fleet.engines.work_record import WorkRecord
from rtlang.fleet.messages.graph_ids import stream_id_of

CONNECTION_LOST = -1000
"""Exit code of an engine that only its connection tells about: no process and no signal has it."""
NO_CRASH = (None, 0, -signal.SIGKILL, CONNECTION_LOST)
"""Exit codes that are no crash: unknown, an engine that left because its connection was cut, or one that was killed from outside."""
_OOM_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EngineEnd:
    """The end of an engine.

    Attributes:
        has_crashed: whether it failed by itself or ran out of memory; False if its connection was cut, it was killed or suspended from
            outside, or nobody knows.
        event: what happened, for clients: without internal text.
        function: where its thread was; empty if that is not known.
        at_work: the stream ids of graphs of which one was worked on; None if that is not known.
        held_by: the stream id of the graph whose work held its thread until it was killed for that.
    """

    has_crashed: bool = False
    event: str = "could not be started"
    function: str = ""
    at_work: frozenset[int] | None = None
    held_by: int | None = None

    def __str__(self) -> str:
        return f"{self.event} in {self.function}" if self.function else self.event


def end_of(
    code: int | None,
    record: WorkRecord | None,
    *,
    is_silent: bool,
    num_oom_kills: int,
    was_suspended: bool = False,
) -> EngineEnd:
    """Describe the end of an engine's process.

    Args:
        code: its exit code; None if it has none yet.
        is_silent: whether it was killed because it gave no sign of life.
        num_oom_kills: processes that the kernel killed for memory while it ran.
        was_suspended: whether it gave no sign of life because somebody suspended it: no graph is to blame.
    """
    if was_suspended:
        return EngineEnd(event="was suspended, and gave no sign of life")
    ran_out = code == -signal.SIGKILL and num_oom_kills > 0 and not is_silent
    end = EngineEnd(is_silent or ran_out or code not in NO_CRASH, _event(code, is_silent=is_silent, ran_out=ran_out))
    if record is None:
        return end
    stack = record.stack()
    return replace(end, function=stack[0] if stack else "", at_work=streams_of(record.sample(), record.crashed_thread))


def streams_of(sample: WorkSample, thread: int | None = None) -> frozenset[int]:
    """The stream ids of the graphs that were at work; those of the engine's own are left out.

    Args:
        thread: the thread that ended the process; None if that is not known.
    """
    graph_ids = sample.at_work if thread is None else sample.at_work_in(thread)
    found = map(stream_id_of, graph_ids)
    return frozenset(stream_id for stream_id in found if stream_id is not None)


def count_oom_kills() -> int:
    """Processes that the kernel has killed for want of memory since it started; 0 where it does not say."""
    with suppress(OSError):
        found = _OOM_KILLS.search(Path("/proc/vmstat").read_text())
        return 0 if found is None else int(found[1])
    return 0


def is_suspended(pid: int | None) -> bool:
    """Whether somebody has suspended a process of this machine, as with SIGSTOP; False where that is not known."""
    with suppress(OSError):
        _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return fields.split()[:1] == ["T"]
    return False


def _event(code: int | None, *, is_silent: bool, ran_out: bool) -> str:
    if is_silent:
        return "gave no sign of life"
    if ran_out:
        return "ran out of memory"
    if code == CONNECTION_LOST:
        return "cannot be reached any more"
    if code is None or code >= 0:
        return "has ended" if code is None else f"ended with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
