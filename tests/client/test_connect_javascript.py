"""The JavaScript client under node: its state machine on scripted messages, and its shell against a server. Skipped without node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server

MODULE = Path(__file__).parents[2] / "rtlang" / "client" / "js" / "rtlang.js"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with rt.Runtime() as runtime, running_server(runtime, ServeConfig(port=0, api_key="secret")) as address:
        yield address


def run(script: str, *arguments: str) -> Any:
    """The JSON that a module prints. It may use `rtlang`, the client, and `args`."""
    assert NODE is not None
    found = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    major = int(found.strip().lstrip("v").split(".")[0])
    flags = [] if major >= 22 else ["--experimental-websocket", "--no-warnings"]
    source = f"import * as rtlang from {json.dumps(MODULE.as_uri())};\nconst args = process.argv.slice(1);\n{script}"
    command = [NODE, *flags, "--input-type=module", "-e", source, "--", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MACHINE = """
const log = [];
const welcome = JSON.stringify({ t: "welcome", v: 1, epoch: "e", limits: {}, models: [], caps: [] });
const say = (message) => p.receive(JSON.stringify(message)).map((n) => n.type);
const sent = () => p.takeOutput().map((text) => JSON.parse(text));
const p = new rtlang.ClientProtocol({ resumeMs: 30000 });
p.connected();
const stream = p.open("generate", { prompt: "x" }, { credit: 10 });
log.push(sent(), p.receive(welcome).map((n) => n.type), sent());
"""


def test_a_resumed_stream_is_attached_behind_its_last_message_with_lost_grants_repeated() -> None:
    log = run(
        MACHINE
        + """
say({ t: "ack", s: 1, rid: "r", epoch: "e", granted: 10 });
say([{ t: "delta", s: 1, n: 1, o: 0, d: "a", ids: [5, 6] }, { t: "delta", s: 1, n: 1, o: 1, d: "b", ids: [7] }].slice(0, 1)[0]);
p.grant(stream, 4); log.push(sent());
p.disconnected(new Error("gone"));
p.grant(stream, 3); log.push(sent());
p.connected(); sent(); p.receive(welcome); log.push(sent());
say({ t: "ack", s: 1, rid: "r", epoch: "e", from: 1, last_q: 0, refused: [], granted: 10 });
log.push(sent());
log.push(say({ t: "delta", s: 1, n: 1, o: 1, d: "b", ids: [7] }), say({ t: "end", s: 1, reason: "stop" }));
console.log(JSON.stringify(log));
"""
    )
    hello, greeted, opened, granted, offline, attach, repaired, delta, end = log
    assert [each["t"] for each in hello] == ["hello"]
    assert greeted == ["welcome"]
    (opening,) = opened
    assert (opening["t"], opening["credit"], opening["detach_ms"]) == ("open", 10, 30000)
    assert len(opening["idem"]) == 32
    assert granted == [{"t": "credit", "s": 1, "n": 4}]
    assert offline == []
    assert attach == [{"t": "attach", "s": 1, "rid": "r", "epoch": "e", "from": 1, "q": 0}]
    assert repaired == [{"t": "credit", "s": 1, "n": 7}]
    assert (delta, end) == (["delta"], ["end"])


def test_an_open_without_an_answer_is_repeated_as_it_was_and_unanswered_extends_follow() -> None:
    log = run(
        MACHINE
        + """
p.extend(stream, [{ id: 2 }]); p.extend(stream, [{ id: 3 }], { close: true }); sent();
p.disconnected(new Error("gone"));
p.connected(); sent(); p.receive(welcome); log.push(sent());
say({ t: "ack", s: 1, rid: "r", epoch: "e" }); log.push(say({ t: "ack", s: 1, q: 1 }));
p.disconnected(new Error("gone"));
p.connected(); sent(); p.receive(welcome); log.push(sent());
log.push(say({ t: "ack", s: 1, rid: "r", epoch: "e", from: 0, last_q: 2, refused: [2], granted: 10 }), sent());
log.push(say({ t: "error", s: 1, q: 2, code: "graph", message: "no" }));
console.log(JSON.stringify(log));
"""
    )
    first = log[2][0]
    assert log[3] == [
        first,
        *({"t": "extend", "s": 1, "nodes": [{"id": n + 1}], "q": n} | extra for n, extra in EXTRAS),
    ]
    assert log[4:] == [
        ["extend"],
        [{"t": "attach", "s": 1, "rid": "r", "epoch": "e", "from": 0, "q": 1}],
        [],
        [],
        ["extend"],
    ]


EXTRAS: list[tuple[int, dict[str, bool]]] = [(1, {}), (2, {"close": True})]


def test_a_gap_in_the_offsets_is_an_error() -> None:
    assert (
        run(
            MACHINE
            + """
let code = null;
try { say({ t: "delta", s: 1, n: 1, o: 1, d: "b" }); } catch (error) { code = error.code; }
console.log(JSON.stringify(code));
"""
        )
        == "protocol"
    )


def test_generations_programs_and_errors_over_a_socket(url: str) -> None:
    found = run(
        """
const client = await rtlang.connect(args[0], { key: "secret", window: 4 });
const params = { max_tokens: 11, ignore_eos: true };
const stream = client.generate({ prompt: "Once upon a time", params });
let text = "", tokens = 0;
for await (const delta of stream) { text += delta.text; tokens += delta.ids.length; }
const end = await stream.result;
const unread = await client.generate({ prompt: "Once upon a time", params }).result;
const nodes = [
  { id: 0, kind: "call", function: "twice", args: [{ value: 4 }], name: "eight" },
  { id: 1, parent: null, kind: "text", parts: ["Number ", { ref: 0 }] },
  { id: 2, parent: 1, kind: "generate", name: "rest", params: { max_tokens: 3 } },
];
const program = await client.program({ graph: { nodes, inputs: [] } }, { calls: { twice: (x) => 2 * x } }).result;
const left = client.generate({ prompt: "x", params: { max_tokens: 500, ignore_eos: true } });
for await (const delta of left) break;
const code = (promise) => promise.then(() => null, (error) => error.code);
const out = {
  text, tokens, whole: end.values.text, unread: unread.values.text, eight: program.values.eight,
  left: await code(left.result), unknown: await code(client.generate({ prompt: "x", max_tokens: 3 }).result),
  models: client.models.length,
};
client.close();
out.key = await code(rtlang.connect(args[0], { key: "wrong" }));
console.log(JSON.stringify(out));
""",
        url,
    )
    assert found["text"] == found["whole"] == found["unread"] != ""
    assert found["tokens"] == 11
    assert found["eight"] == 8
    assert (found["left"], found["unknown"], found["key"]) == ("aborted", "graph", "protocol")
