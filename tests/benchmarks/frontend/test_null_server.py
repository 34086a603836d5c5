"""The server before an engine without a model: what clients get through both doors, and its end."""

from __future__ import annotations

import json
import urllib.request

import rtlang
from rtlang.bench.server_process import ServerProcess
from rtlang_bench.frontend.null_engine import PIECES
from rtlang_bench.frontend.null_server import MODULE
from rtlang_bench.serve.streams import Recorder, generation


def test_both_doors_give_the_tokens_of_the_engine_without_a_model() -> None:
    text = "".join(PIECES[:5])
    with ServerProcess("--rate", "200", command=(MODULE,)) as server:
        body = json.dumps({"prompt": [1, 2, 3], "max_tokens": 5, "ignore_eos": True}).encode()
        request = urllib.request.Request(
            server.http_url + "/v1/completions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30.0) as answer:
            found = json.load(answer)
        assert (found["model"], found["choices"][0]["text"]) == ("null", text)
        assert found["usage"]["completion_tokens"] == 5
        with rtlang.connect(server.url) as remote:
            recorder = Recorder().submit(remote, generation("Once", max_tokens=5, ignore_eos=True))
            assert recorder.wait(30.0)
        assert (recorder.text, recorder.error) == (text, None)
    assert not server.is_running
