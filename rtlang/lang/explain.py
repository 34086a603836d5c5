"""Explains how a program executes: its graph, its graph breaks, and the savings of the passes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from rtlang.compiler.context import Context, Savings
from rtlang.compiler.nodes import estimated_prompt_tokens, generated_tokens
from rtlang.compiler.pipeline import PASSES, Passes, chosen_passes, compile_graph
from rtlang.contract.errors import TraceError
from rtlang.contract.events import CallRequested, DraftUse, Event, GraphFinished, NodeFinished
from rtlang.contract.graph.host_calls import answer_call
from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.pictures.labels import printable
from rtlang.contract.pictures.page import fragment, graph_fragment, graph_page
from rtlang.contract.process.coroutines import run_coroutine
from rtlang.contract.request_graph import Generate, Node, Part, RequestGraph
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions, abilities_of
from rtlang.contract.service.target import ForwardedRun, GraphRun, Listener, Target
from rtlang.contract.service.text_service import count_tokens
from rtlang.lang.execution.program_run import ProgramRun
from rtlang.lang.execution.run import default_runtime
from rtlang.lang.lazy_values.values import user_location
from rtlang.lang.output_types.tool_calls import runs_tools
from rtlang.lang.program import Program
from rtlang.lang.recordings.recording import Break, Recording
from rtlang.lang.sessions.program_options import given_options
from rtlang.lang.views.notebook import with_cell_names


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a program executes; `str()` gives a readable summary.

    Attributes:
        program: the name of the program.
        graph: the nodes as submitted, after the passes.
        breaks: the places where the body waited for values, in order. Values that coroutines wait for at the same time, at one place and
            for one reason, are one break.
        num_submissions: how often the program sent nodes.
        is_complete: False if recording stopped at the first break for lack of a runtime, or the run at a function that was not called.
        not_called: names of the functions that `rt.call` would have called.
        error: the error that ended the run early, if any.
        passes: the passes that were used, in order.
        savings: the effect of each pass.
        estimated_prompt_tokens: tokens of all prompts, from the lengths of their texts, each prompt counted as a whole.
        max_generated_tokens: tokens that may be generated.
        usage: the tokens of the run; None if the program did not run.
        distortion: the probability that masks of constraints removed, in nats, by the names of generations that asked for it, summed over
            the completions of a name; empty if the program did not run.
        drafts: draft tokens by the names of generations and by source, all completions of a name added up; empty if there were none, or
            the program did not run.
    """

    program: str
    graph: RequestGraph
    breaks: tuple[Break, ...]
    is_complete: bool
    error: BaseException | None = None
    passes: tuple[str, ...] = PASSES
    savings: Savings = field(default_factory=Savings)
    usage: Usage | None = None
    distortion: dict[str, float] = field(default_factory=dict)
    drafts: dict[str, tuple[DraftUse, ...]] = field(default_factory=dict)
    num_submissions: int = 1
    not_called: tuple[str, ...] = ()

    @property
    def num_saved_steps(self) -> int:
        """Steps of sequences that drafts saved."""
        return sum(each.num_accepted for of_name in self.drafts.values() for each in of_name)

    @property
    def estimated_prompt_tokens(self) -> int:
        """See the class."""
        return estimated_prompt_tokens(self.graph)

    @property
    def max_generated_tokens(self) -> int:
        """See the class."""
        return sum(map(generated_tokens, self.graph.nodes))

    def to_html(self) -> str:
        """A self-contained HTML page with a picture of the graph."""
        return graph_page(self.graph.nodes, self.program)

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:
        """The summary for IPython."""
        printer.text(with_cell_names(str(self)))

    def _repr_html_(self) -> str:
        """The summary and the picture of the graph for a notebook."""
        first, *lines = with_cell_names(str(self)).split("\n")
        rows = "".join(f"<div>{escape(printable(line))}</div>" for line in lines)
        words = f'<div class="rt-head">{escape(printable(first))}</div><div class="rt-lines">{rows}</div>'
        return fragment(words) + graph_fragment(self.graph.nodes)

    def __str__(self) -> str:
        kinds = Counter(type(node).__name__.lower() for node in self.graph.nodes)
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
        lines = [f"{self.program}: {len(self.graph.nodes)} nodes ({counted})"]
        if not self.breaks:
            lines.append("no graph break: submitted once, as one graph")
        elif self.is_complete or self.not_called:
            lines.append(f"{len(self.breaks)} graph break(s), {self.num_submissions} submission(s):")
        else:
            lines.append("recorded up to the first graph break (no runtime to continue on):")
        lines.extend(f"  {each}" for each in self.breaks)
        if self.not_called:
            names = ", ".join(self.not_called)
            lines.append(
                f"not called: {names} (rt.explain runs no functions unless run_tools=True; what depends on them failed)"
            )
        lines.append("passes:" if self.passes else "passes: none")
        lines.extend(f"  {line}" for line in self.savings.lines(self.passes))
        lines.append(
            f"estimated: about {self.estimated_prompt_tokens} prompt tokens, at most {self.max_generated_tokens} generated"
        )
        if self.usage is not None:
            lines.append(
                f"measured: {self.usage.prompt_tokens} prompt tokens, {self.usage.cached_tokens} of them cached, "
                f"{self.usage.completion_tokens} generated"
            )
        if self.distortion:
            parts = ", ".join(f"{name} {nats:.2f}" for name, nats in self.distortion.items())
            lines.append(f"removed by masks, in nats: {parts}")
        if self.drafts:
            lines.append(f"drafts: {self.num_saved_steps} steps saved")
            lines.extend(f"  {name}: {_draft_line(uses)}" for name, uses in self.drafts.items())
        if self.error is not None:
            lines.append(f"ended by {type(self.error).__name__}: {self.error}")
        return "\n".join(lines)


def explain(
    program: Program[..., Any],
    *args: Any,
    runtime: Target | None = None,
    params: SamplingParams | None = None,
    passes: Passes | None = None,
    outputs: Collection[str] | None = None,
    run_tools: bool = False,
    **kwargs: Any,
) -> Explanation:
    """Explain how a program executes with these arguments: its graph breaks with file, line and reason, and the savings of each pass.

    The body runs once. The code after a graph break depends on a value, so a program with breaks runs on `runtime` or the default runtime.
    Without a runtime or without breaks it is only recorded. Tools and functions of `rt.call` are not called; functions that the body
    calls by itself are.

    Args:
        passes, outputs: as for `Program.run`.
        run_tools: call tools and functions of `rt.call`, as a run does. Without, what depends on them is not explained.
    Raises:
        TraceError: the program is invalid. ParameterError: an option is invalid.
        Exception: the body raised it while being recorded.
    """
    given = {"runtime": runtime, "params": params, "passes": passes, "outputs": outputs}
    body, own = program._with_own(args, kwargs, given)
    options = program._made(given_options(given, own))
    target = options.runtime if options.runtime is not None else default_runtime()
    rehearsal = _Rehearsal(target, run_tools=run_tools)
    run = ProgramRun(body, rehearsal, replace(options, run=RunOptions(budget=options.run.budget)))
    rehearsal.recording = run.session.recording
    if body.is_async:
        run_coroutine(lambda: _executed(run, run_tools))
    else:
        token = runs_tools.set(run_tools)
        try:
            run.execute()
        finally:
            runs_tools.reset(token)
    run.raise_error(even_exceptions=not rehearsal.has_broken)
    session, recording = run.session, run.session.recording
    chosen = chosen_passes(options.passes)
    used = tuple(name for name in PASSES if name in chosen)
    graph, savings = RequestGraph(tuple(session.submitted), recording.inputs), session.savings
    breaks = _merged(recording.breaks, rehearsal.num_breaks)
    if not rehearsal.has_broken:
        return Explanation(program.name, graph, breaks, True, None, used, savings)
    if target is None:
        context = Context(keep=recording.branch_points, ended=recording.ended, is_open=True)
        graph, savings = compile_graph(rehearsal.graph, chosen, context)
        return Explanation(program.name, graph, breaks, False, None, used, savings)
    session.wait_final()
    result = run.result()
    return Explanation(
        program.name,
        result.graph,
        breaks,
        not rehearsal.not_called,
        result.error,
        used,
        session.savings,
        result.usage,
        _distortion(recording),
        _drafts(recording),
        rehearsal.num_submissions,
        tuple(dict.fromkeys(rehearsal.not_called)),
    )


async def _executed(run: ProgramRun, run_tools: bool) -> None:
    runs_tools.set(run_tools)  # in the context of this coroutine
    await run.execute_async()


def _merged(breaks: Sequence[Break], num_at_submission: Sequence[int]) -> tuple[Break, ...]:
    """The breaks, where those at one place between two submissions are one: coroutines wait for their values at the same time.

    Args:
        num_at_submission: the number of breaks at each submission, its own included.
    """
    starts = {number - 1 for number in num_at_submission}
    groups: list[dict[tuple[str, str], list[str]]] = []
    for number, each in enumerate(breaks):
        if number in starts or not groups:
            groups.append({})
        groups[-1].setdefault((each.location, each.reason), []).append(each.what)
    return tuple(
        Break(location, _listed(whats), reason) for group in groups for (location, reason), whats in group.items()
    )


def _listed(whats: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(whats))
    if len(distinct) == 1:
        return distinct[0] if len(whats) == 1 else f"{distinct[0]} ({len(whats)} times)"
    shown = ", ".join(distinct[:3])
    return f"{shown} and {len(distinct) - 3} others" if len(distinct) > 3 else shown


def _draft_line(uses: Sequence[DraftUse]) -> str:
    num_drafted, num_accepted = sum(each.num_drafted for each in uses), sum(each.num_accepted for each in uses)
    parts = ", ".join(f"{each.source} {each.num_accepted} of {each.num_drafted}" for each in uses)
    return f"{num_accepted} of {num_drafted} draft tokens accepted ({parts})"


def _drafts(recording: Recording) -> dict[str, tuple[DraftUse, ...]]:
    """The draft tokens of finished generations by their names."""
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for node_id, node in recording.nodes.outer.items():
        outcome = recording.driver.outcome(node_id) if isinstance(node, Generate) else None
        for each in outcome.drafts if isinstance(outcome, NodeFinished) else ():
            of_name = counts.setdefault(recording.nodes.name_of(node_id), {})
            drafted, accepted = of_name.get(each.source, (0, 0))
            of_name[each.source] = drafted + each.num_drafted, accepted + each.num_accepted
    return {
        name: tuple(DraftUse(source, *count) for source, count in sorted(of_name.items()))
        for name, of_name in counts.items()
    }


def _distortion(recording: Recording) -> dict[str, float]:
    """The nats that masks removed, by the names of finished generations."""
    found: dict[str, float] = {}
    for node_id, node in recording.nodes.outer.items():
        outcome = recording.driver.outcome(node_id) if isinstance(node, Generate) else None
        if isinstance(outcome, NodeFinished):
            steps = [step for each in outcome.completions for step in each.distortion or ()]
            if steps:
                name = recording.nodes.name_of(node_id)
                found[name] = found.get(name, 0.0) + sum(nats for nats, _ in steps)
    return found


class _Rehearsal:
    """A target that runs a program on another target from its first graph break on. A program without breaks is not run.

    Attributes:
        has_broken: whether there was a break.
        graph: the nodes before it.
        recording: the recording of the program.
        num_breaks: the number of breaks at each submission.
        not_called: names of the functions that were not called.
    """

    recording: Recording

    def __init__(self, target: Target | None, *, run_tools: bool) -> None:
        self._target, self._run_tools = target, run_tools
        self.has_broken = False
        self.graph = RequestGraph()
        self.num_breaks: list[int] = []
        self.not_called: list[str] = []

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self._target is None or self._target.is_alive

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        if self._target is None:
            raise TraceError(
                "the format of tool calls depends on the model: explain the program with runtime=..., or pass format=...",
                user_location(),
            )
        return self._target.tool_format

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`. Without another target nothing runs, whatever the options are."""
        return ALL_ABILITIES if self._target is None else abilities_of(self._target)

    @property
    def model_identity(self) -> str | None:
        """That of the other target: a history has the same tokens."""
        return getattr(self._target, "model_identity", None)

    def count_tokens(self, parts: Sequence[Part]) -> int:
        """See `rtlang.contract.service.text_service.count_tokens`."""
        return count_tokens(self._target, parts)

    def submit(
        self,
        graph: RequestGraph,
        listener: Listener,
        options: RunOptions = DEFAULT_OPTIONS,
    ) -> GraphRun:
        """See `Target.submit`."""
        if not options.is_open:
            graph.validate()
            listener(GraphFinished(0, {}, Usage()))
            return _NotRun()
        self.has_broken, self.graph = True, graph
        if self._target is None:
            raise TraceError("there is no runtime to continue on")
        self.note_submission()
        run = _ExplainedRun(self)

        def listen(event: Event) -> None:
            if isinstance(event, CallRequested) and not self._run_tools:
                self.not_called.append(event.function)
                answer_call(event, None, run.when_submitted, unknown=f"rt.explain does not call {event.function}")
            else:
                listener(event)

        run.begin(self._target.submit(graph, listen, options=options))
        return run

    @property
    def num_submissions(self) -> int:
        """How often nodes were sent."""
        return len(self.num_breaks)

    def note_submission(self) -> None:
        """Nodes are sent."""
        self.num_breaks.append(len(self.recording.breaks))

    def close(self) -> None:
        """Does nothing: the other target belongs to the caller."""


class _ExplainedRun(ForwardedRun):
    """A run that counts the submissions of its nodes."""

    def __init__(self, rehearsal: _Rehearsal) -> None:
        self._rehearsal, self._is_submitted = rehearsal, threading.Event()

    def begin(self, run: GraphRun) -> None:
        """The graph was submitted."""
        self.run = run
        self._is_submitted.set()

    def when_submitted(self) -> GraphRun:
        """The run, for events that come before `submit` has returned."""
        self._is_submitted.wait()
        return self.run

    def extend(self, nodes: Sequence[Node]) -> None:
        self._rehearsal.note_submission()
        self.run.extend(nodes)


class _NotRun:
    graph_id = 0

    def extend(self, nodes: Sequence[Node]) -> None:
        raise AssertionError("a graph that was submitted whole is not extended")

    def resolve(self, node_id: int, value: Any) -> None:
        pass

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        pass

    def grant(self, num_tokens: int) -> None:
        pass

    def close(self) -> None:
        pass

    def cancel(self) -> None:
        pass
