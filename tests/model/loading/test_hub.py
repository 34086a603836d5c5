"""Names of a model hub, against a small hub on loopback: what is fetched, what is cached, and what a refusal says."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rtlang.model.loading import loader
from rtlang.model.loading.hub import is_hub_name

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]
SCRIPT = """
import sys
from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.hub import hub_directory
try:
    print(*sorted(path.name for path in hub_directory(sys.argv[1]).iterdir()))
except ModelLoadError as error:
    print("refused:", error)
"""


class Hub(ThreadingHTTPServer):
    """Serves the files of one directory as the model `team/tiny`, and knows no other."""

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.directory = directory
        self.fetched: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def log_message(self, *_: object) -> None:
        """Nothing: the test's output is its own."""

    def _answer(self, *, has_body: bool) -> None:
        path = self.path.partition("?")[0]
        files = {item.name: item for item in self.server.directory.iterdir()}
        if path == f"/api/models/team/tiny/tree/{COMMIT}":
            tree = [
                {"type": "file", "path": name, "size": item.stat().st_size, "oid": _digest(item)}
                for name, item in files.items()
            ]
            self._send(json.dumps(tree).encode(), has_body, {})
        elif path.startswith("/api/models/team/tiny"):
            content = {"id": "team/tiny", "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            self._send(json.dumps(content).encode(), has_body, {})
        elif path.startswith(f"/team/tiny/resolve/{COMMIT}/"):
            item = files[path.rsplit("/", 1)[1]]
            if has_body:
                self.server.fetched.append(item.name)
            self._send(item.read_bytes(), has_body, {"ETag": f'"{_digest(item)}"', "X-Repo-Commit": COMMIT})
        else:
            self._send(b"{}", has_body, {"X-Error-Code": "RepoNotFound"}, 404)

    def _send(self, body: bytes, has_body: bool, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if has_body:
            self.wfile.write(body)


def _digest(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    directory = tmp_path / "hub"
    directory.mkdir()
    for name in (*FILES, "pytorch_model.bin", "modeling.py", "README.md"):
        (directory / name).write_text(f"content of {name}")
    server = Hub(directory)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def fetch(tmp_path: Path, name: str, url: str, *, is_offline: bool = False, timeout_s: int = 10) -> str:
    """In a process of its own, since the client reads its environment when it is imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    environment |= {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HF_HOME": str(tmp_path / "home"),
        "HF_ENDPOINT": url,
        "HF_HUB_OFFLINE": str(int(is_offline)),
        "HF_HUB_ETAG_TIMEOUT": str(timeout_s),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONWARNINGS": "ignore",
    }
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, name], check=True, env=environment, cwd=tmp_path, capture_output=True, text=True
    ).stdout.strip()


def test_a_name_is_fetched_once_without_pickles_and_code(hub: Hub, tmp_path: Path) -> None:
    assert fetch(tmp_path, "team/tiny", hub.url) == " ".join(FILES)
    assert sorted(hub.fetched) == FILES
    hub.fetched.clear()
    for url in (hub.url, "http://127.0.0.1:9"):  # the discard port: nothing listens there
        assert fetch(tmp_path, "team/tiny", url) == " ".join(FILES)
    assert hub.fetched == []


def test_refusals_say_what_a_hub_said_or_that_there_is_none(hub: Hub, tmp_path: Path) -> None:
    unknown = fetch(tmp_path, "team/other", hub.url)
    assert "refused: cannot load the model at 'team/other'" in unknown
    assert "the model hub refused the download" in unknown
    for text in (
        fetch(tmp_path, "team/tiny", hub.url, is_offline=True),
        fetch(tmp_path, "team/tiny", "http://127.0.0.1:9"),
    ):
        assert "no model hub is reachable" in text
        assert "pass its directory" in text


def test_a_hub_that_never_answers_or_cannot_be_asked_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = fetch(tmp_path, "team/tiny", f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=1)
    assert "no model hub is reachable (no answer)" in text
    assert "refused: cannot load the model at 'team/tiny'" in fetch(tmp_path, "team/tiny", "no address")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("team/tiny", True),
        ("team/tiny-2.5_b", True),
        ("tiny", False),
        ("/team/tiny", False),
        ("./team/tiny", False),
        ("../tiny", False),
        ("~/tiny", False),
        ("a/b/c", False),
        ("rtlang:tiny", False),
        ("team/", False),
    ],
)
def test_which_names_are_of_a_hub(model: str, expected: bool) -> None:
    assert is_hub_name(model) is expected


def test_a_directory_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team" / "tiny").mkdir(parents=True)
    assert not is_hub_name("team/tiny")


def test_the_loader_takes_names_of_a_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "hub_directory", lambda name: tmp_path / name.replace("/", "--"))
    assert loader.model_directory("team/tiny") == tmp_path / "team--tiny"
    assert loader.model_directory(str(tmp_path)) == tmp_path
