"""What becomes of a program: its graph, and where it breaks."""

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
    """How a program is carried out; `str()` of it is for people.

    Attributes:
        program: its name.
        graph: the nodes as submitted, adjacent text folded.
        breaks: where the body had to wait for a value, in order.
        is_complete: False where recording stopped at the first break because there was no runtime to go on with.
        error: what ended the run early, if anything did.
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
            lines.append("recorded up to the first graph break (no runtime to go on with):")
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
    """Say how a program is carried out with these arguments, and list its graph breaks with file, line and reason.

    What lies behind a graph break depends on the value, so a program with breaks is run, on `runtime` or the default one. Without
    any, and where there is no break, it is only recorded.

    Raises:
        TraceError: the program is wrong, apart from breaks. Whatever else its body raises while it is only recorded.
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
