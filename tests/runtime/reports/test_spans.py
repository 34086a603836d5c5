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

import rtlang as rt
from rtlang.runtime.reports import spans


class Api:
    """The API with a provider of the test's own: the global one can be set only once."""

    def __init__(self, provider: TracerProvider) -> None:
        self.get_tracer = provider.get_tracer
        self.set_span_in_context = trace.set_span_in_context
        self.StatusCode = trace.StatusCode


@pytest.fixture(scope="module")
def exported() -> Iterator[tuple[rt.Runtime, InMemorySpanExporter]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtlang.runtime.runtime.runtime_spans", lambda: spans.Spans(Api(provider)))
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


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [each for each in exporter.get_finished_spans() if each.name == name]


def test_a_run_has_a_node_steps_and_a_compilation(exported: tuple[rt.Runtime, InMemorySpanExporter]) -> None:
    runtime, exporter = exported
    exporter.clear()
    before = time.time_ns()
    answer.run(runtime=runtime)
    after = time.time_ns()
    [run], [node], [compiled] = (named(exporter, f"rtlang.{name}") for name in ("run", "node", "compile"))
    assert node.parent is not None
    assert run.context is not None
    assert node.parent.span_id == run.context.span_id
    assert node.attributes is not None
    assert node.attributes["rtlang.completion_tokens"] > 0  # type: ignore[operator]
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
    [node] = named(exporter, "rtlang.node")
    assert node.status.status_code is trace.StatusCode.ERROR
    assert node.attributes is not None
    assert node.attributes["error.type"] == "constraint"


def test_without_the_package_there_are_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "find_spec", lambda name: None)
    assert spans.runtime_spans() is None
    assert "opentelemetry" in sys.modules  # the package is there: only its absence was pretended


def test_a_provider_that_records_nothing_costs_no_listener() -> None:
    found = spans.Spans(trace)

    def listen(event: object) -> None:
        pass

    assert found.listener(listen, 1) is listen
