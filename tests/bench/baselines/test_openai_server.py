"""A server as the baseline: our own serves the same model, so the answers are known."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import rtlang as rt
from rtlang.bench.baselines.openai_server import OpenAiServer
from rtlang.bench.measure import run_on_target
from rtlang.bench.workloads.requests import json_constraint
from rtlang.bench.workloads.workload import Workload, tool_call
from rtlang.contract.errors import RtlangError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, Ref, RequestGraph, Text
from rtlang.serve.server import TokenizerInfo, running_server
from tests.support.engine.encoders import Letters


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny", dtype="float32", num_threads=1, num_pages=512) as opened:
        yield opened


def generate(node_id: int, parent: int, num_tokens: int) -> Generate:
    params = SamplingParams(max_tokens=num_tokens, min_tokens=num_tokens, ignore_eos=True)
    return Generate(node_id, parent, f"out{node_id}", params)


GRAPHS = (
    RequestGraph((Text(0, None, ("Anna lives in ",)), generate(1, 0, 6), Text(2, 1, (" and ",)), generate(3, 2, 4))),
    RequestGraph(
        (
            Text(0, None, ("One, two, ",)),
            generate(1, 0, 5),
            generate(2, 0, 3),
            tool_call(3, 2, 0.001, "three"),
            Text(4, 1, (" and ", Ref(3), Ref(2))),
            generate(5, 4, 3),
        )
    ),
    RequestGraph(
        (Text(0, None, ("A house: ",)), Generate(1, 0, "x", SamplingParams(max_tokens=80), json_constraint(0)))
    ),
)


def test_the_answers_are_those_of_the_server(runtime: rt.Runtime) -> None:
    with running_server(runtime, rt.ServeConfig(port=0), TokenizerInfo("models/rtlang:tiny", 2048, 1024)) as url:
        server = OpenAiServer(f"http{url.removeprefix('ws').partition('/v1')[0]}/v1")
        try:
            measured = server.run(Workload("w", "", GRAPHS, arrivals_s=(0.0, 0.001, 0.002)), runtime.tokenizer)
        finally:
            server.close()
    ours = run_on_target(runtime, GRAPHS)
    assert measured.outputs.keys() == ours.outputs.keys()
    for key, token_ids in ours.outputs.items():
        assert len(measured.outputs[key]) >= len(token_ids)
    texts = {key: runtime.tokenizer.decode(token_ids) for key, token_ids in ours.outputs.items()}
    assert runtime.tokenizer.decode(measured.outputs[1, 1]) == texts[1, 1]
    assert len(measured.latencies_s) == len(measured.first_token_s) == len(GRAPHS)
    assert 0 < min(measured.first_token_s) <= measured.total_s
    assert measured.output_times_s.keys() == ours.outputs.keys()


class Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"data": [{"id": "m"}]}' if self.path.endswith("/v1/models") else b'{"data": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"no room")

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_what_the_server_refuses_is_told() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{other.server_address[1]}"
        try:
            server = OpenAiServer(f"{url}/v1")
            assert server.model == "m"
            with pytest.raises(RtlangError, match="400 no room"):
                server.run(Workload("w", "", GRAPHS[:1]), Letters())
            server.close()
            with pytest.raises(RtlangError, match="lists no model"):
                OpenAiServer(f"{url}/v2")
        finally:
            other.shutdown()
            thread.join()


def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(RtlangError, match="expected http://HOST:PORT/v1"):
        OpenAiServer("ftp://x")
    with pytest.raises(RtlangError, match=r"baseline = http://127\.0\.0\.1:9"):
        OpenAiServer("http://127.0.0.1:9/v1", timeout_s=2.0)
