"""Explains how a program executes: its graph and its graph breaks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from rtlang.contract.graph import RequestGraph
from rtlang.contract.params import SamplingParams
from rtlang.contract.target import Target
from rtlang.lang.execution.run import default_runtime
from rtlang.lang.program import Program
from rtlang.lang.recording import Break


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a program executes; `str()` gives a readable summary.

    Attributes:
        program: the name of the program.
        graph: the nodes as submitted, adjacent text folded.
        breaks: the places where the body waited for a value, in order.
        is_complete: False if recording stopped at the first break for lack of a runtime.
        error: the error that ended the run early, if any.
    """

    program: str
    graph: RequestGraph
    breaks: tuple[Break, ...]
    is_complete: bool
    error: BaseException | None = None

    def __str__(self) -> str:
        kinds = Counter(type(node).__name__.lower() for node in self.graph.nodes)
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
        submissions = len(self.breaks) + 1
        lines = [f"{self.program}: {len(self.graph.nodes)} nodes ({counted})"]
        if not self.breaks:
            lines.append("no graph break: submitted once, as one graph")
        elif self.is_complete:
            lines.append(f"{len(self.breaks)} graph break(s), at most {submissions} submissions:")
        else:
            lines.append("recorded up to the first graph break (no runtime to continue on):")
        lines.extend(f"  {each}" for each in self.breaks)
        if self.error is not None:
            lines.append(f"ended by {type(self.error).__name__}: {self.error}")
        return "\n".join(lines)


def explain(
    program: Program,
    *args: Any,
    runtime: Target | None = None,
    params: SamplingParams | None = None,
    **kwargs: Any,
) -> Explanation:
    """Explain how a program executes with these arguments, listing its graph breaks with file, line and reason.

    The code after a graph break depends on a value, so a program with breaks is run, on `runtime` or the default runtime. Without a
    runtime or without breaks it is only recorded.

    Raises:
        TraceError: the program is invalid.
        Exception: the body raised it while being recorded.
    """
    bound = program.bind(*args, **kwargs)
    recorded, breaks, error = bound.record(params)
    if not breaks:
        if error is not None:
            raise error
        return Explanation(program.name, recorded, (), is_complete=True)
    target = runtime if runtime is not None else default_runtime()
    if target is None:
        return Explanation(program.name, recorded, breaks, is_complete=False)
    result = bound.run(runtime=target, params=params, on_error="result")
    return Explanation(program.name, result.graph, result.breaks, is_complete=True, error=result.error)
