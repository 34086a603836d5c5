"""The JavaScript client under node: its state machine on scripted messages, and its shell against a server. Skipped without node."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

import rtlang as rt
from rtlang.client.client_protocol import ClientProtocol
from rtlang.client.remote_run import Answer
from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import GraphError
from rtlang.contract.events import Completion, NodeFailed, NodeFinished, Timing
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import RequestGraph, nodes_to_plain
from rtlang.contract.runs.run_options import RunOptions
from rtlang.protocol.event_codec import event_to_wire
from rtlang.serve.server import TokenizerInfo, running_server
from tests.serve.http.routes.test_cache import KEYS, CachedTarget
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.servers.cut_proxy import cut_proxy
from tests.support.servers.serving import serving

MODULE = Path(__file__).parents[2] / "rtlang" / "client" / "js" / "rtlang.js"
NODE = os.environ.get("RTLANG_NODE", shutil.which("node"))
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with rt.Runtime() as runtime, running_server(runtime, ServeConfig(port=0, api_key="secret")) as address:
        yield address


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A module that prints JSON. It may use `rtlang`, the client, and `args`."""
    assert NODE is not None
    found = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    major = int(found.strip().lstrip("v").split(".")[0])
    flags = [] if major >= 22 else ["--experimental-websocket", "--no-warnings"]
    source = f"import * as rtlang from {json.dumps(MODULE.as_uri())};\nconst args = process.argv.slice(1);\n{script}"
    command = [NODE, *flags, "--input-type=module", "-e", source, "--", *arguments]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(script: str, *arguments: str) -> Any:
    """The JSON that a module prints; arguments as of `start`."""
    return result_of(start(script, *arguments))


def result_of(process: subprocess.Popen[str]) -> Any:
    with process:
        try:
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    return json.loads(output)


MACHINE = """
const log = [];
const welcome = JSON.stringify({ t: "welcome", v: 1, epoch: "e", limits: {}, models: [], caps: ["credit"] });
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


LOOP = {
    "id": 10,
    "kind": "repeat",
    "at_most": 3,
    "stride": 2,
    "body": {"nodes": [{"id": 11, "kind": "generate", "params": {"n": 2}}, {"id": 12, "kind": "text"}], "end": 12},
}
BEST = {"id": 9, "kind": "generate", "params": {"best_of": 2}}
OTHER_SERVER = """
const other = (epoch) => p.receive(JSON.stringify({ t: "welcome", v: 1, epoch, limits: {}, models: [], caps: ["credit"] }));
const restart = (epoch) => { p.disconnected(new Error("gone")); p.connected(); sent(); other(epoch); log.push(sent()); };
say({ t: "ack", s: 1, rid: "r", epoch: "e", granted: 10 }); sent(); log.length = 0;
const delta = (n, i, o, ...ids) => say({ t: "delta", s: 1, n, i, o, d: "x", ids });
const end = { t: "event", s: 1, n: 1, e: "end", completions: [{ text: "x" }] };
"""


def test_another_server_goes_on_from_tokens_and_outcomes_as_python_has_them() -> None:
    """The oracle is the client for Python, on the same messages."""
    nodes = [{"id": 0, "parent": None, "kind": "text", "parts": ["x"]}]
    nodes += [{"id": n, "parent": 0, "kind": "generate", "name": f"n{n}", "params": {"n": n}} for n in (1, 2, 3)]
    deltas = [(1, 0, 5, 6), (2, 1, 7), (3, 2, 8), (2, 1, 9), (3, 0, 4)]
    client = ClientProtocol({"epoch": "e"}, 30.0)
    graph = RequestGraph.from_plain({"nodes": nodes, "inputs": []})
    owner: Any = client
    run_of = client.submit(owner, graph, lambda event: None, lambda: Answer(True), RunOptions(seed=5, credit=100))
    client.take({"t": "ack", "s": 1, "rid": "r", "epoch": "e", "granted": 100})
    offsets: Counter[tuple[int, int]] = Counter()
    messages: list[dict[str, Any]] = []
    for n, i, *ids in deltas:
        messages.append({"t": "delta", "s": 1, "n": n, "i": i, "o": offsets[n, i], "d": "x", "ids": ids})
        offsets[n, i] += 1
    done = NodeFinished(1, 1, "n1", (Completion("x", (5, 6), FinishReason.LENGTH),), Usage(1, 0, 2), Timing())
    messages += [event_to_wire(1, done), event_to_wire(1, NodeFailed(1, 2, None, GraphError(2, "x", "no")))]
    for message in messages:
        client.take(message)
    client.reconnected({"epoch": "another"})
    opening = msgpack.unpackb(client.take_output()[-1])
    found = run(
        """
const p = new rtlang.ClientProtocol({ resumeMs: 30000 });
const welcome = (epoch) => JSON.stringify({ t: "welcome", v: 1, epoch, limits: {}, models: [], caps: ["credit"] });
p.connected(); p.receive(welcome("e"));
const [nodes, messages] = JSON.parse(args[0]);
p.open("program", { graph: { nodes, inputs: [] }, inputs: {}, priority: 0, seed: 5, open: false }, { credit: 100 });
p.receive(JSON.stringify({ t: "ack", s: 1, rid: "r", epoch: "e", granted: 100 }));
for (const message of messages) p.receive(JSON.stringify(message));
p.disconnected(new Error("gone")); p.connected(); p.takeOutput(); p.receive(welcome("another"));
console.log(p.takeOutput().at(-1));
""",
        json.dumps([nodes_to_plain(graph.nodes), messages]),
    )
    assert len(opening["known"]) == 2
    assert opening["continue_from"] == [{"n": 3, "ids": [[4], [], [8]]}]
    assert run_of.num_granted == opening["credit"] == 94
    assert found == opening | {"idem": found["idem"]}


def test_a_generation_goes_on_at_another_server_with_its_seed_and_its_credit() -> None:
    first, again, third, repeated = run(
        MACHINE
        + "log.splice(0, 2);"
        + OTHER_SERVER.replace("log.length = 0", "")
        + """
delta(1, 0, 0, 5, 6); restart("second");
say({ t: "ack", s: 1, rid: "r2", epoch: "second", granted: 8 });
delta(1, 0, 0, 7); restart("third");
log.push(say(end), say({ t: "end", s: 1, reason: "stop" })); log.splice(3, 2, log[3]);
console.log(JSON.stringify(log));
"""
    )
    (opening,), (second,), (last,) = first, again, third
    assert 0 <= opening["body"]["seed"] < 2**53
    continued = {"continue_from": [{"n": 1, "ids": [[5, 6]]}], "credit": 8}
    assert second == opening | continued | {"idem": second["idem"]}
    continued = {"continue_from": [{"n": 1, "ids": [[5, 6, 7]]}], "credit": 7}
    assert last == opening | continued | {"idem": last["idem"]}
    assert len({opening["idem"], second["idem"], last["idem"]}) == 3
    assert repeated == ["event"]


def test_repeated_messages_are_dropped_their_tokens_granted_and_answered_calls_answered_again() -> None:
    log = run(
        MACHINE
        + OTHER_SERVER
        + """
const call = { t: "event", s: 1, n: 4, e: "call", function: "f", args: [] };
log.push(say(call)); p.resolve(stream, 4, 7); sent();
delta(1, 0, 0, 5, 6); say(end); delta(3, 0, 0, 1); restart("second");
say({ t: "ack", s: 1, rid: "r2", epoch: "second", granted: 7 }); sent();
log.push(say(call), sent(), delta(1, 0, 0, 5, 6), say(end), sent(), delta(3, 0, 0, 1), delta(3, 0, 1, 2), sent());
console.log(JSON.stringify(log));
"""
    )
    answer = {"t": "resolve", "s": 1, "n": 4, "value": 7}
    assert log[0] == ["event"]
    assert log[1][0]["known"] == [{"e": "end", "n": 1, "completions": [{"text": "x"}]}]
    assert "continue_from" not in log[1][0], "node 3 is not in the graph as a generation"
    assert (log[1][1:], log[1][0]["credit"]) == ([answer], 7)
    assert log[2:] == [
        [],
        [answer],
        [],
        [],
        [{"t": "credit", "s": 1, "n": 2}],
        [],
        ["delta"],
        [{"t": "credit", "s": 1, "n": 1}],
    ]


def test_extends_go_to_another_server_with_the_output_of_their_nodes() -> None:
    log = run(
        MACHINE
        + OTHER_SERVER
        + f"const loop = {json.dumps(LOOP)}, best = {json.dumps(BEST)};"
        + """
p.extend(stream, [loop]); p.extend(stream, [best]); p.extend(stream, [{ id: 30 }], { close: true }); sent();
say({ t: "ack", s: 1, q: 1 }); say({ t: "ack", s: 1, q: 2 });
delta(13, 1, 0, 8); delta(9, 0, 0, 3); say({ ...end, n: 11 }); say({ t: "event", s: 1, n: 40, e: "error", code: "dependency" });
restart("second");
say({ t: "ack", s: 1, rid: "r2", epoch: "second" });
p.disconnected(new Error("gone")); p.connected(); sent(); other("second"); log.push(sent());
say({ t: "ack", s: 1, rid: "r2", epoch: "second", from: 0, last_q: 1, refused: [], granted: 10 }); log.push(sent());
log.push(say({ t: "error", s: 1, q: 2, code: "graph", message: "no" }), sent());
console.log(JSON.stringify(log));
"""
    )
    (opening, loop, best, waiting), (attach,), repeated, refused, last = log
    assert opening["known"] == [{"e": "end", "n": 11, "completions": [{"text": "x"}]}]
    assert opening["continue_from"] == [{"n": 13, "ids": [[], [8]]}], "the second iteration of node 11"
    assert loop == {"t": "extend", "s": 1, "nodes": [LOOP], "q": 1}
    assert best == {"t": "extend", "s": 1, "nodes": [BEST], "q": 2}
    assert waiting == {"t": "extend", "s": 1, "nodes": [{"id": 30}], "q": 3, "close": True}
    assert (attach["t"], attach["q"]) == ("attach", 0)
    assert repeated[:2] == [best, waiting]
    assert refused == ["error"], "the graph cannot complete without nodes that the first server took"
    assert last == [{"t": "cancel", "s": 1}]


def test_a_forgotten_stream_and_a_busy_server_get_the_graph_again_under_another_id() -> None:
    log = run(
        """
let now = 1000;
const log = [];
const p = new rtlang.ClientProtocol({ resumeMs: 30000, now: () => now });
const say = (message) => p.receive(JSON.stringify(message)).map((n) => [n.type, n.afterMs ?? n.error?.code ?? null]);
const sent = () => p.takeOutput().map(JSON.parse);
const welcome = (epoch) => p.receive(JSON.stringify({ t: "welcome", v: 1, epoch, limits: {}, models: [], caps: ["credit"] }));
const again = (epoch) => { p.disconnected(new Error("gone")); p.connected(); sent(); welcome(epoch); };
p.connected(); welcome("e");
const body = { prompt: "a", budget: { seconds: 20 } };
const stream = p.open("generate", body, { credit: 10, deadlineMs: 60000 });
say({ t: "ack", s: 1, rid: "r", epoch: "e", granted: 10 });
say({ t: "delta", s: 1, n: 1, o: 0, d: "x", ids: [5, 6] });
again("e"); sent();
now += 4000;
log.push(say({ t: "error", s: 1, code: "gone", message: "gone", param: "rid" }), sent());
again("other"); sent();
log.push(say({ t: "error", s: 2, code: "overload", message: "busy", retry_after: 2 }));
p.grant(stream, 3);
now += 2000;
log.push(p.retry(stream).length, sent(), p.retry(stream).length, sent());
now += 29000;
log.push(say({ t: "error", s: 3, code: "overload", message: "busy" }));
const second = p.open("generate", { prompt: "b" });
say({ t: "ack", s: 4, rid: "q", epoch: "other" });
p.cancel(second); sent();
p.disconnected(new Error("gone")); p.connected(); sent();
log.push(p.receive(JSON.stringify({ t: "welcome", v: 1, epoch: "third" })).map((n) => n.error?.code ?? n.type), sent());
console.log(JSON.stringify(log));
"""
    )
    gone, (opening,), busy, none, (again,), still_none, nothing, failed, cancelled, silent = log
    assert gone == []
    assert (opening["t"], opening["s"], opening["credit"], opening["deadline_ms"]) == ("open", 2, 8, 56000)
    assert opening["body"]["budget"] == {"seconds": 16}
    assert opening["continue_from"] == [{"n": 1, "ids": [[5, 6]]}]
    assert busy == [["retry", 2000]]
    assert (none, still_none, nothing) == (0, 0, [])
    assert (again["s"], again["credit"], again["deadline_ms"]) == (3, 11, 54000)
    assert again["continue_from"] == opening["continue_from"]
    assert failed == [["error", "overload"]]
    assert (cancelled, silent) == (["welcome", "aborted"], [])


def test_a_server_of_another_model_is_refused_and_the_next_address_is_tried() -> None:
    script = """
const client = await rtlang.connect(JSON.parse(args[0]), { resumeMs: 60000 });
const stream = client.generate({ prompt: "Hi", params: { max_tokens: 2 } });
const texts = [];
try {
  for await (const delta of stream) { texts.push(delta.text); console.log(delta.text); }
} catch (error) { texts.push(error.message); }
console.log(JSON.stringify([texts, client.url]));
client.close();
"""
    ours, theirs = TokenizerInfo("m", identity="m@1"), TokenizerInfo("m", identity="m@2")
    first, second, third = ScriptedTarget(), ScriptedTarget(), ScriptedTarget()
    with (
        running_server(second, tokenizer_info=theirs) as other,
        running_server(third, tokenizer_info=ours) as same,
        running_server(first, tokenizer_info=ours) as url,
        cut_proxy(url) as proxy,
        start(script, json.dumps([proxy.url])) as alone,
        start(script, json.dumps(["ws://127.0.0.1:9", proxy.url, other, same])) as moving,
    ):
        first.wait_for(2)
        first.step("<0>")
        assert alone.stdout is not None
        assert moving.stdout is not None
        assert alone.stdout.readline() == moving.stdout.readline() == "<0>\n"
        proxy.lead_to(other)
        proxy.cut()
        texts, _ = json.loads(alone.communicate(timeout=60)[0])
        assert re.search("it serves m@2, and this connection began with m@1", texts[1])
        third.wait_for(1)
        third.step("<1>")
        third.step()
        output, errors = moving.communicate(timeout=60)
        assert output.splitlines()[0] == "<1>", errors
        texts, used = json.loads(output.splitlines()[1])
        assert texts == ["<0>", "<1>"]
        assert used.startswith(same)
        assert second.runs == []


def test_a_stream_goes_on_when_another_server_takes_the_place_of_its_own() -> None:
    script = """
const client = await rtlang.connect(args[0], { resumeMs: 20000 });
const stream = client.generate({ prompt: "Hi", params: { max_tokens: 6 } });
for await (const delta of stream) console.log(delta.text);
console.log((await stream.result).values.text);
client.close();
"""
    with serving() as first, serving() as second, cut_proxy(first.url) as proxy, start(script, proxy.url) as process:
        assert process.stdout is not None
        try:
            first.target.wait_for(1)
            for number in range(3):
                first.target.step(f"<{number}>")
                assert process.stdout.readline() == f"<{number}>\n"
            proxy.lead_to(second.url)
            proxy.cut()
            second.target.wait_for(1)
            for number in range(3, 7):  # the last one ends it
                second.target.step(f"<{number}>")
            rest, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert rest.split() == ["<3>", "<4>", "<5>", "<0><1><2><3><4><5>"], errors


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


def test_the_cache_is_asked_over_http() -> None:
    script = """
const client = await rtlang.connect(args[0], { key: "ana" });
const code = (promise) => promise.then(() => null, (error) => [error.code, error.status, error.param]);
const out = { found: await client.cache.explain({ prompt: "Fix: dog" }) };
out.grant = await client.cache.pin({ token_ids: [1, 2, 3, 4], ttl_s: 30, computes: false });
out.pins = await client.cache.pins();
out.ended = [await client.cache.unpin(out.grant.pin_id), await client.cache.unpin(out.grant.pin_id)];
out.nodes = (await client.cache.tree(2)).length;
out.wrong = await code(client.cache.explain({ prompt: "" }));
client.close();
out.gone = await code(new rtlang.Cache("ws://127.0.0.1:1/v1/stream", null).tree());
console.log(JSON.stringify(out));
"""
    with serving(CachedTarget(), keys=KEYS) as server:
        found = run(script, server.url)
    assert (found["found"]["num_cached_tokens"], found["found"]["divergence"]["stored_text"]) == (4, "cat of ana")
    assert (found["grant"]["num_granted_tokens"], found["grant"]["ttl_s"]) == (2, 30)
    assert found["pins"] == [found["grant"]]
    assert (found["ended"], found["nodes"]) == ([True, False], 2)
    assert found["wrong"] == ["parameter", 400, "prompt"]
    assert found["gone"][0] == "connection"
