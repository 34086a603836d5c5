"""The live page over a real socket: what it may load, who gets snapshots, and the logic of its scripts in Node."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from rtlang.contract.errors import EngineDeadError
from rtlang.contract.service.snapshot import Prefix, WatchedSession, read_snapshot
from rtlang.serve.http.routes import live_view as routes_live_view
from rtlang.serve.http.routes.live_view import live_page
from rtlang.serve.network.key_table import entry_of
from tests.support.programs.scripted_target import ScriptedTarget
from tests.support.programs.snapshots import WatchedFleet, WatchedTarget
from tests.support.servers.html_check import read_html
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving

KEY = "secret"


@pytest.fixture(scope="module")
def target() -> WatchedTarget:
    return WatchedTarget()


@pytest.fixture(scope="module")
def client(target: WatchedTarget) -> Iterator[HttpClient]:
    with serving(target, api_key=KEY) as server:
        yield HttpClient(server.url, KEY)


def policy() -> dict[str, list[str]]:
    parts = (part.split() for part in live_page()[1]["content-security-policy"].split(";"))
    return {name: values for name, *values in parts}


# -- the page


def test_the_page_is_served_without_a_key_and_with_its_headers(client: HttpClient) -> None:
    answer = HttpClient(f"ws://{client.address}").get("/")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.body.decode() == live_page()[0]
    for name, value in live_page()[1].items():
        assert answer.headers[name] == value


def test_the_javascript_client_is_served_without_a_key(client: HttpClient) -> None:
    answer = HttpClient(f"ws://{client.address}").get("/rtlang.js")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert b"export async function connect(" in answer.body


def test_the_policy_allows_the_inline_parts_by_hash_and_this_server_only() -> None:
    found = policy()
    assert found["default-src"] == found["base-uri"] == found["form-action"] == found["frame-ancestors"] == ["'none'"]
    assert found["connect-src"] == ["'self'"]
    page = read_html(live_page()[0])
    for tag, name in (("script", "script-src"), ("style", "style-src")):
        texts = [element.text for element in page.all(tag)]
        hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts]
        assert hashes
        assert found[name] == (["'self'", *hashes] if tag == "script" else hashes)


def test_the_page_has_nothing_that_its_policy_forbids() -> None:
    """No resources of others, no handlers and styles in attributes, no markup from texts."""
    text = live_page()[0]
    page = read_html(text)  # refuses what is fetched, and handlers
    for element in page.all():
        assert not element.attributes.keys() & {"style", "srcset", "action", "formaction", "ping"}, element
    scripts = "".join(element.text for element in page.all("script"))
    for forbidden in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        'setAttribute("style"',
    ):
        assert forbidden not in scripts
    assert "url(" not in text
    assert "@import" not in text
    assert not re.search(r"https?://|wss?://", text)


def test_the_key_never_gets_into_an_address() -> None:
    scripts = "".join(element.text for element in read_html(live_page()[0]).all("script"))
    addresses = re.findall(r"new URL\(([^)]*)\)", scripts)
    assert len(addresses) >= 4
    assert all("key" not in address for address in addresses)
    assert "searchParams" not in scripts
    assert "localStorage" not in scripts


def test_every_control_has_a_name_and_the_page_both_schemes() -> None:
    text = live_page()[0]
    page = read_html(text)
    [html] = page.all("html")
    assert html.attributes["lang"] == "en"
    for label in page.all("label"):
        assert len([each for tag in ("input", "textarea", "select") for each in label.all(tag)]) == 1
        assert label.words.strip()
    controls = [each for tag in ("input", "textarea", "select") for each in page.all(tag)]
    assert len(controls) == len(page.all("label"))
    assert all(button.words.strip() and button.attributes.get("type") for button in page.all("button"))
    ids = {element.attributes["id"] for element in page.all() if "id" in element.attributes}
    assert {
        element.attributes["aria-labelledby"] for element in page.all() if "aria-labelledby" in element.attributes
    } <= ids
    assert set(re.findall(r'\$\("([a-z_-]+)"\)', text)) <= ids
    assert "prefers-color-scheme: dark" in text
    assert "prefers-reduced-motion" in text
    assert page.all("meta")[2].attributes == {"name": "color-scheme", "content": "light dark"}


def test_both_schemes_have_every_color_with_enough_contrast() -> None:
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", part))
        for part in re.findall(r":root \{(.*?)\}", live_page()[0], re.DOTALL)
    )
    assert light.keys() == dark.keys()
    panel = ("text", "muted", "lost", "held")
    pairs = [(name, "panel") for name in panel] + [("text", name) for name in ("page", "mark", "field")]
    pairs += [(f"on-{name}", name) for name in ("shared", "single", "stored", "accent")]
    for colors in (light, dark):
        for above, below in pairs:
            assert contrast(colors[above], colors[below]) >= 4.5, (above, below)


def contrast(one: str, other: str) -> float:
    """The contrast of two colors by WCAG 2."""

    def luminance(color: str) -> float:
        digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_logic_of_the_page_in_node(tmp_path: Path) -> None:
    logic = read_html(live_page()[0]).all("script")[0].text
    (tmp_path / "logic.js").write_text(f"{logic}\nmodule.exports = rtlangPage;\n", encoding="utf-8")
    tests = Path(__file__).with_name("live_page_test.js")
    done = subprocess.run(
        ["node", str(tests), str(tmp_path / "logic.js")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"\d+ tests passed\n", done.stdout)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_scripts_of_the_page_are_valid(tmp_path: Path) -> None:
    for number, script in enumerate(read_html(live_page()[0]).all("script")):
        path = tmp_path / f"{number}.js"
        path.write_text(script.text, encoding="utf-8")
        subprocess.run(["node", "--check", str(path)], check=True, timeout=60)


# -- snapshots


def test_a_snapshot_is_behind_the_key(client: HttpClient, target: WatchedTarget) -> None:
    for path in ("/v1/engine/snapshot", "/v1/engine/snapshot/stream"):
        assert HttpClient(f"ws://{client.address}").get(path).status == 401
    answer = client.get("/v1/engine/snapshot")
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    assert read_snapshot(answer.json) == target.present


def test_sessions_are_listed_for_those_who_may_see_them(client: HttpClient, target: WatchedTarget) -> None:
    assert HttpClient(f"ws://{client.address}").get("/v1/sessions").status == 401
    assert target.present is not None
    session = WatchedSession(3, None, "team", "calling", 4, 1, 90, 60, 45, "evicted", 7.5, True)
    target.present = replace(target.present, sessions=(session,))
    listed = json.loads(client.get("/v1/sessions").body)
    while not listed["data"]:  # a sample may be used again for a tenth of a second
        listed = json.loads(client.get("/v1/sessions").body)
    assert (listed["object"], listed["data"][0]["num_cached_tokens"], listed["data"][0]["state"]) == (
        "list",
        45,
        "calling",
    )


def test_a_stream_sends_snapshots_until_the_client_leaves(client: HttpClient, target: WatchedTarget) -> None:
    connection = http.client.HTTPConnection(client.address, timeout=20)
    connection.request("GET", "/v1/engine/snapshot/stream?interval_ms=100", headers=client.headers)
    response = connection.getresponse()
    assert (response.status, response.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
    assert response.readline() == b"event: snapshot\n"
    line = response.readline()
    assert line.startswith(b"data: ")
    assert read_snapshot(json.loads(line[6:])) == target.present
    connection.close()


@pytest.mark.parametrize("value", ["0", "99", "10001", "-1", "1e3", "", "100.5", "9" * 5000, "१२३४"])
def test_an_interval_out_of_range_is_refused_by_name(client: HttpClient, value: str) -> None:
    answer = client.get(f"/v1/engine/snapshot/stream?interval_ms={quote(value)}")
    assert answer.status == 400
    assert answer.json["error"]["param"] == "interval_ms"
    assert "from 100 to 10000" in answer.json["error"]["message"]
    assert len(answer.body) < 400


@pytest.mark.parametrize("limit", ["MAX_WATCHERS", "MAX_WATCHERS_EACH"])
def test_watchers_are_limited_and_a_place_is_free_again(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(routes_live_view, limit, 1)
    watcher = http.client.HTTPConnection(client.address, timeout=20)
    watcher.request("GET", "/v1/engine/snapshot/stream", headers=client.headers)
    assert watcher.getresponse().readline() == b"event: snapshot\n"
    assert client.get("/v1/engine/snapshot/stream").status == 429
    assert client.get("/v1/engine/snapshot").status == 200
    watcher.close()
    for _ in range(100):
        again = http.client.HTTPConnection(client.address, timeout=20)
        again.request("GET", "/v1/engine/snapshot/stream", headers=client.headers)
        status = again.getresponse().status
        again.close()
        if status == 200:
            break
    assert status == 200


def test_each_key_gets_what_its_principal_may_see() -> None:
    target = WatchedTarget()
    assert target.present is not None
    prefixes = tuple(
        Prefix(number, None, 16, 1, 1, False, 0, 1, f"text of {name}", name)
        for number, name in enumerate(("ana", "bob", ""))
    )
    target.present = replace(target.present, prefixes=prefixes)
    keys = "".join(entry_of(name, key) for name, key in (("ana", "a" * 32), ("bob", "b" * 32)))
    with serving(target, api_key="operator", keys=keys) as server:
        for key, text in (("a" * 32, "text of ana"), ("b" * 32, "text of bob"), ("operator", "text of ")):
            answer = HttpClient(server.url, key).get("/v1/engine/snapshot")
            assert [each["text"] for each in answer.json["prefixes"]] == [text]


def test_a_stream_ends_when_its_key_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(entry_of("ana", "a" * 32) + entry_of("bob", "b" * 32))
    with serving(WatchedTarget(), keys_file=str(path)) as server:
        client = HttpClient(server.url, "a" * 32)
        connection = http.client.HTTPConnection(client.address, timeout=20)
        connection.request("GET", "/v1/engine/snapshot/stream?interval_ms=100", headers=client.headers)
        response = connection.getresponse()
        assert response.readline() == b"event: snapshot\n"
        path.write_text(entry_of("bob", "b" * 32))
        assert b"".join(response).count(b"data: ") == 1, "the stream ends"
        connection.close()
        assert client.get("/v1/engine/snapshot").status == 401


def test_a_server_without_an_engine_says_so() -> None:
    with serving(ScriptedTarget()) as server:
        for path in ("/v1/engine/snapshot", "/v1/engine/snapshot/stream"):
            answer = HttpClient(server.url).get(path)
            assert (answer.status, answer.json["error"]["code"]) == (404, "not_found")


def test_a_server_whose_engine_is_started_again_says_so() -> None:
    target = WatchedTarget()
    target.present = None
    with serving(target) as server:
        for path in ("/v1/engine/snapshot", "/v1/engine/snapshot/stream"):
            answer = HttpClient(server.url).get(path)
            assert (answer.status, answer.json["error"]["code"]) == (503, "engine_dead")


def test_a_stream_ends_with_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    target = WatchedTarget()
    with serving(target) as server:
        client = HttpClient(server.url)
        connection = http.client.HTTPConnection(client.address, timeout=20)
        connection.request("GET", "/v1/engine/snapshot/stream?interval_ms=100")
        response = connection.getresponse()
        assert response.readline() == b"event: snapshot\n"
        target.error = EngineDeadError("private reason")
        rest = b"".join(response)
        assert b"private" not in rest
        connection.close()
    assert "private" not in caplog.text, "watchers do not fill the log"


def test_an_engine_that_has_stopped_is_a_503_without_internal_text() -> None:
    target = WatchedTarget()
    target.error = EngineDeadError("the engine has stopped: private reason")
    with serving(target) as server:
        for path in ("/v1/engine/snapshot", "/v1/engine/snapshot/stream"):
            answer = HttpClient(server.url).get(path)
            assert answer.status == 503
            assert b"private" not in answer.body


# -- the replicas of a fleet


def test_a_replica_is_watched_by_its_name() -> None:
    with serving(WatchedFleet("a", "b/2")) as server:
        client = HttpClient(server.url)
        shown = {
            query: client.get(f"/v1/engine/snapshot{query}").json["model"]
            for query in ("", "?replica=b%2F2", "?replica=a")
        }
        assert shown == {"": "a", "?replica=b%2F2": "b/2", "?replica=a": "a"}
        for path in ("/v1/engine/snapshot?replica=c", "/v1/engine/snapshot/stream?replica=c"):
            answer = client.get(path)
            assert (answer.status, answer.json["error"]["param"]) == (404, "replica")
            assert answer.json["error"]["message"] == "replica = 'c': expected one of a, b/2, old"
        assert client.get("/v1/engine/snapshot?replica=old").status == 503, "it is not ready"


def test_a_server_with_one_engine_has_no_replica(client: HttpClient) -> None:
    answer = client.get("/v1/engine/snapshot?replica=a")
    assert (answer.status, answer.json["error"]["message"]) == (404, "replica = 'a': this server runs no fleet")


def test_a_stream_names_the_replicas_whenever_they_change() -> None:
    target = WatchedFleet("a", "b")
    with serving(target) as server:
        connection = http.client.HTTPConnection(HttpClient(server.url).address, timeout=20)
        connection.request("GET", "/v1/engine/snapshot/stream?interval_ms=100&replica=b")
        response = connection.getresponse()
        lines = [response.readline() for _ in range(5)]
        assert lines[:4] == [b"event: replicas\n", b'data: ["a", "b", "old"]\n', b"\n", b"event: snapshot\n"]
        assert json.loads(lines[4][6:])["model"] == "b"
        response.readline()
        target.leaving = ()
        assert [response.readline() for _ in range(2)] == [b"event: replicas\n", b'data: ["a", "b"]\n']
        connection.close()
