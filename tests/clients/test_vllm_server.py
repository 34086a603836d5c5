"""A `vllm` server under our backend: tool calls that are required, options for JSON, and what is refused.

The environment is the one of `test_vllm_parsers.py`, the model a random one made here. The first request compiles native code, which takes
a minute where it is not cached.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.clients.environments import ROOT, environment
from tests.clients.test_vllm_parsers import CLIENT
from tests.support.models.foreign_models import write_transformers_model

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "strict": True, "parameters": PARAMETERS}}
    for name in ("look", "find")
]
CHECKED = {"type": "json_schema", "json_schema": {"type": "string", "format": "regex"}}
"""A schema that needs a check of the value, which `vllm` does not run."""
SETTING = json.dumps({"backend": "rtlang", "disable_any_whitespace": True})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, home = tmp_path_factory.mktemp("server"), environment(CLIENT)
    model = write_transformers_model(folder / "model")
    (folder / "chat.jinja").write_text(TEMPLATE, encoding="utf-8")
    about = folder / "dist" / "rtlang_grammars-0.1.0.dist-info"  # as an installed distribution declares it
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rtlang-grammars\nVersion: 0.1.0\n")
    entry = "[vllm.general_plugins]\nrtlang_grammars = rtlang_grammars.plugs.vllm:register\n"
    (about / "entry_points.txt").write_text(entry)
    path = os.pathsep.join((str(folder / "dist"), str(ROOT / "grammars")))
    with served(home / "bin" / "python", model, folder, path) as found:
        yield found


@contextlib.contextmanager
def served(python: Path, model: Path, folder: Path, path: str) -> Iterator[str]:
    """The address of `vllm` with our backend; the process ends with the context."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(python),
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(model),
        "--served-model-name",
        "m",
    ]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "512", "--enforce-eager"]
    command += [
        "--max-num-seqs",
        "4",
        "--structured-outputs-config",
        SETTING,
        "--chat-template",
        str(folder / "chat.jinja"),
    ]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    more = {"PYTHONPATH": path, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | more, stdout=log, stderr=log, start_new_session=True)
        try:
            until = time.monotonic() + 240
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    break
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((folder / "log").read_text()[-3000:])
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1/chat/completions"
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its engine, which may outlive it
            process.wait()


def ask(url: str, **options: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "max_tokens": 300, "temperature": 1}
    request = urllib.request.Request(url, json.dumps(body | options).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        found: dict[str, Any] = json.load(answer)["choices"][0]
    return found


@pytest.mark.clients
def test_required_calls_are_valid(url: str) -> None:
    named = {"type": "function", "function": {"name": "find"}}
    for choice, seed in [("required", 1), ("required", 2), ("required", 3), (named, 1), (named, 2)]:
        answer = ask(url, tools=TOOLS, tool_choice=choice, seed=seed, parallel_tool_calls=False)
        (call,) = answer["message"]["tool_calls"]
        assert call["function"]["name"] in (("find",) if choice == named else ("find", "look"))
        jsonschema.validate(json.loads(call["function"]["arguments"]), PARAMETERS)


@pytest.mark.clients
def test_options_for_json_are_obeyed(url: str) -> None:
    schema = {key: value for key, value in PARAMETERS.items() if key != "additionalProperties"}
    for seed in range(3):
        options = {"json": schema, "disable_additional_properties": True}
        text = ask(url, structured_outputs=options, seed=seed)["message"]["content"]
        jsonschema.validate(json.loads(text), PARAMETERS)
        assert text == json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False) or "\\" in text


@pytest.mark.clients
def test_what_cannot_be_enforced_is_refused_with_its_name(url: str) -> None:
    for options, message in (
        ({"json": PARAMETERS, "whitespace_pattern": " +"}, "whitespace_pattern"),
        ({"json": {"properties": {"n": {"type": "string", "format": "regex"}}}}, "#/properties/n"),
        ({"structural_tag": json.dumps({"type": "structural_tag", "format": CHECKED})}, "format"),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(url, structured_outputs=options)
        assert caught.value.code == 400
        assert message in caught.value.read().decode()
