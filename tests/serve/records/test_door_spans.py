"""One trace over two processes: the span at the door is the parent of the engine's, and goes on when the engine dies."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.fleet.engines.engine_target import EngineTarget
from rtlang.fleet.engines.launcher import ProcessLauncher
from rtlang.serve.records.door_spans import DoorSpans
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.servers.http_client import HttpClient
from tests.support.servers.wire_client import WireClient
from tests.support.waiting import wait_until

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
EXPORTS_TO_A_FILE = """
import os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

class File(SpanExporter):
    def export(self, spans):
        with open(os.environ["SPANS_FILE"], "a") as file:
            for span in spans:
                file.write(span.to_json(indent=None) + "\\n")
        return SpanExportResult.SUCCESS

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(File()))
trace.set_tracer_provider(provider)
"""


class Api:
    """The API with a provider of the test's own: the global one can be set only once."""

    def __init__(self, provider: TracerProvider) -> None:
        self.get_tracer = provider.get_tracer

    def __getattr__(self, name: str) -> Any:
        return getattr(trace, name)


class Traced:
    """A server with an engine in a child process; both export their spans."""

    def __init__(self, url: str, target: EngineTarget, doors: InMemorySpanExporter, file: Path) -> None:
        self.url, self.target, self._doors, self._file = url, target, doors, file

    def engine_spans(self, trace_id: str) -> list[dict[str, Any]]:
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []
        spans = [json.loads(line) for line in lines]
        return [span for span in spans if span["context"]["trace_id"] == f"0x{trace_id}"]

    def door(self, request_id: str) -> Any:
        def found() -> list[Any]:
            spans = self._doors.get_finished_spans()
            return [span for span in spans if (span.attributes or {}).get("rtlang.request_id") == request_id]

        wait_until(lambda: bool(found()))
        [span] = found()
        return span


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    folder = tmp_path_factory.mktemp("spans")
    (folder / "sitecustomize.py").write_text(EXPORTS_TO_A_FILE, encoding="utf-8")
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    launcher = ProcessLauncher(environment={"PYTHONPATH": paths, "SPANS_FILE": str(folder / "spans.jsonl")})
    doors, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(doors))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DoorSpans, "of_process", lambda: DoorSpans(Api(provider)))
        with (
            EngineTarget([launcher], RuntimeConfig(dtype="float32", num_pages=300)) as target,
            running_server(target, ServeConfig(port=0), TokenizerInfo("tiny"), metrics=target.metrics) as url,
        ):
            yield Traced(url, target, doors, folder / "spans.jsonl")


def test_the_engine_continues_the_trace_of_the_door_which_continues_the_client_s(traced: Traced) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 3}
    given = {"traceparent": PARENT, "X-Request-Id": "t-1"}
    assert HttpClient(traced.url).post("/v1/chat/completions", body, **given).status == 200
    door = traced.door("t-1")
    assert f"{door.context.trace_id:032x}" == PARENT[3:35]
    assert f"{door.parent.span_id:016x}" == PARENT[36:52]
    assert door.kind is trace.SpanKind.SERVER
    assert door.name == "POST /v1/chat/completions"
    assert door.attributes["http.response.status_code"] == 200
    wait_until(lambda: len(traced.engine_spans(PARENT[3:35])) >= 2)
    by_name = {span["name"]: span for span in traced.engine_spans(PARENT[3:35])}
    run, node = by_name["rtlang.run"], by_name["chat rtlang:tiny"]
    assert run["parent_id"] == f"0x{door.context.span_id:016x}"
    assert run["attributes"]["rtlang.request_id"] == "t-1"
    assert node["parent_id"] == run["context"]["span_id"]
    assert node["attributes"]["gen_ai.usage.output_tokens"] > 0


def test_a_graph_that_moves_stays_in_its_trace_and_says_why(traced: Traced) -> None:
    with WireClient(traced.url) as client:
        client.greet()
        params = {"max_tokens": 30, "ignore_eos": True}
        context = {"request_id": "t-2", "traceparent": PARENT.replace("4bf9", "5bf9")}
        client.send(t="open", s=1, kind="generate", body={"prompt": "x", "params": params}, credit=5, context=context)
        assert client.receive()["request_id"] == "t-2"
        assert client.receive()["t"] == "delta"
        [link] = traced.target._links.values()
        pid = link.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        client.send(t="credit", s=1, n=100)
        wait_until(lambda: link.is_ready and link.pid != pid, 120.0)  # another process has started
        assert client.receive_end(1)[-1]["t"] == "end"
    door = traced.door("t-2")
    [moved] = door.events
    assert (moved.name, moved.attributes["rtlang.reason"]) == ("rtlang.moved", "engine has ended")
    wait_until(lambda: len(traced.engine_spans("5bf9" + PARENT[7:35])) >= 2)
    [run] = [span for span in traced.engine_spans("5bf9" + PARENT[7:35]) if span["name"] == "rtlang.run"]
    assert run["parent_id"] == f"0x{door.context.span_id:016x}"
