"""OpenTelemetry spans of the embedded model, collected in memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes, http_attributes

import rtlang as rt
from rtlang.contract.accounts import tracing
from rtlang.contract.accounts.request_context import RequestContext
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Select, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang.runtime.reports import spans
from tests.support.programs.graph_ear import Ear


class Api:
    """The API with a provider of the test's own: the global one can be set only once."""

    def __init__(self, provider: TracerProvider) -> None:
        self.get_tracer = provider.get_tracer
        self.set_span_in_context = trace.set_span_in_context
        for name in ("StatusCode", "SpanContext", "TraceFlags", "TraceState", "NonRecordingSpan", "SpanKind"):
            setattr(self, name, getattr(trace, name))


@pytest.fixture(scope="module")
def exported() -> Iterator[tuple[rt.Runtime, InMemorySpanExporter]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtlang.runtime.runtime.runtime_spans", lambda model: spans.Spans(Api(provider), model))
        runtime = rt.Runtime()
    with runtime:
        yield runtime, exporter
    provider.shutdown()


@rt.program
def answer(s: rt.State) -> None:
    s += "A secret question: "
    s += rt.gen("word", regex="[a-z]{3,5}", max_tokens=9)


@rt.program
def broken(s: rt.State) -> None:
    s += "x"
    s += rt.gen("word", regex="(?P<a>x)(?P=a)", max_tokens=9)


@rt.program
def forked(s: rt.State) -> None:
    for index, fork in enumerate(s.fork(2)):
        fork += f"x{index} " + rt.gen("tip", 3)
    rt.repeat(lambda state: state.__iadd__("y" + rt.gen("turn", 2)) and None, at_most=2, state=s)


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [each for each in exporter.get_finished_spans() if each.name == name]


def test_a_run_has_a_node_steps_and_a_compilation(exported: tuple[rt.Runtime, InMemorySpanExporter]) -> None:
    runtime, exporter = exported
    exporter.clear()
    before = time.time_ns()
    answer.run(runtime=runtime)
    after = time.time_ns()
    [run], [compiled] = (named(exporter, f"rtlang.{name}") for name in ("run", "compile"))
    [node] = named(exporter, "text_completion rtlang:tiny")
    assert node.parent is not None
    assert run.context is not None
    assert node.parent.span_id == run.context.span_id
    assert node.attributes is not None
    assert node.attributes["gen_ai.usage.output_tokens"] > 0  # type: ignore[operator]
    assert node.attributes["gen_ai.usage.input_tokens"] > 0  # type: ignore[operator]
    expected = {
        "gen_ai.operation.name": "text_completion",
        "gen_ai.provider.name": "rtlang",
        "gen_ai.request.model": "rtlang:tiny",
        "gen_ai.response.model": "rtlang:tiny",
        "gen_ai.request.max_tokens": 9,
        "gen_ai.response.finish_reasons": ("stop",),
    }
    assert {name: node.attributes[name] for name in expected} == expected
    for span in (run, node, compiled, *named(exporter, "rtlang.step")):
        assert span.start_time is not None
        assert span.end_time is not None
        assert before - 1e9 <= span.start_time <= span.end_time <= after + 1e9
    assert named(exporter, "rtlang.step")
    assert "secret" not in "".join(each.to_json() for each in exporter.get_finished_spans())


def test_a_failure_is_an_error_with_its_code(exported: tuple[rt.Runtime, InMemorySpanExporter]) -> None:
    runtime, exporter = exported
    exporter.clear()
    broken.run(runtime=runtime, on_error="result")
    [node] = named(exporter, "text_completion rtlang:tiny")
    assert node.status.status_code is trace.StatusCode.ERROR
    assert node.attributes is not None
    assert node.attributes["error.type"] == "constraint"


def test_a_run_goes_on_with_the_trace_of_its_request(exported: tuple[rt.Runtime, InMemorySpanExporter]) -> None:
    runtime, exporter = exported
    exporter.clear()
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    context = RequestContext.of("r-1", "POST /v1/chat/completions", traceparent, "vendor=1")
    graph = RequestGraph((Text(0, None, ("a",)), Generate(1, 0, "x", SamplingParams(max_tokens=2, n=2, seed=3))))
    ear = Ear()
    runtime.submit(graph, ear, RunOptions(context=context))
    ear.end()
    [run], [node] = named(exporter, "rtlang.run"), named(exporter, "chat rtlang:tiny")
    assert run.parent is not None
    assert run.context is not None
    assert f"{run.parent.trace_id:032x}-{run.parent.span_id:016x}" == traceparent[3:52]
    assert run.parent.is_remote
    assert run.context.trace_state.get("vendor") == "1"
    assert node.context is not None
    assert node.context.trace_id == run.context.trace_id
    assert run.attributes is not None
    assert (run.attributes["rtlang.request_id"], run.attributes["rtlang.principal"]) == ("r-1", "local")
    assert node.attributes is not None
    assert (node.attributes["gen_ai.request.choice.count"], node.attributes["gen_ai.request.seed"]) == (2, 3)


def test_names_of_attributes_are_those_of_the_published_conventions(
    exported: tuple[rt.Runtime, InMemorySpanExporter],
) -> None:
    runtime, exporter = exported
    exporter.clear()
    params = SamplingParams(
        max_tokens=2, n=2, seed=3, top_k=5, temperature=1, frequency_penalty=0.1, presence_penalty=0.2
    )
    nodes = (Text(0, None, ("x",)), Generate(1, 0, "y", params), Select(2, 0, "z", ("a", "b")))
    ear, context = Ear(), RequestContext.of(None, "POST /v1/chat/completions")
    runtime.submit(RequestGraph(nodes), ear, RunOptions(context=context, seed=1))
    ear.end()
    published = {
        value
        for module in (gen_ai_attributes, http_attributes, error_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    used = {name for span in exporter.get_finished_spans() for name in span.attributes or {}}
    ours = {name for name in used if name.startswith("rtlang.")}
    assert len(used - ours) > 12
    assert used - ours - published == set()
    operations = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    found = {(span.attributes or {}).get("gen_ai.operation.name") for span in exporter.get_finished_spans()} - {None}
    assert found == {"chat", "text_completion"}
    assert found <= operations


def test_without_the_package_there_are_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    assert spans.runtime_spans() is None
    assert "opentelemetry" in sys.modules  # the package is there: only its absence was pretended


def test_a_provider_that_records_nothing_costs_no_listener() -> None:
    found = spans.Spans(trace)

    def listen(event: object) -> None:
        pass

    assert found.listener(listen, ()) is listen


def test_nodes_have_their_paths(exported: tuple[rt.Runtime, InMemorySpanExporter]) -> None:
    runtime, exporter = exported
    exporter.clear()
    result = forked.run(runtime=runtime)
    found = {(each.attributes or {}).get("rtlang.path") for each in exporter.get_finished_spans()}
    assert set(result.paths) <= found
    assert {"fork[1]/tip", "repeat[1]/turn"} <= found
