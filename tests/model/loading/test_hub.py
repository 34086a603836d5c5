"""Names of a model hub, against a small hub on loopback and its real client: what is downloaded, cached and refused."""

from __future__ import annotations

import functools
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
from safetensors.torch import load_file, save_file

from rtlang.model import loader
from tests.support.models.gguf_models import CASES, make_model, write_model
from tests.support.models.quantized_checkpoints import quantized_pair
from tests.support.models.tiny_models import make_checkpoint

MAIN, OTHER = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"
SMALL = ["chat_template.jinja", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = "model.safetensors.index.json"
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
DIRECTORY = """
import sys
from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.hub import download_weights, hub_directory
from rtlang.model.loading.model_names import HubName
try:
    name = HubName.parse(sys.argv[1])
    directory = hub_directory(name)
    download_weights(name, directory)
    print(*sorted(path.name for path in directory.iterdir()))
except ModelLoadError as error:
    print("refused:", error)
"""
FILE = """
import sys
from rtlang.contract.errors import ModelLoadError
from rtlang.model.loading.hub import hub_file
from rtlang.model.loading.model_names import HubName
try:
    print(hub_file(HubName.parse(sys.argv[1])).read_text())
except ModelLoadError as error:
    print("refused:", error)
"""
LOAD = """
import sys
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang.model.loader import load_model
try:
    settings = dict(pair.split("=") for pair in sys.argv[2:])
    decoder, config, _ = load_model(RuntimeConfig(model=sys.argv[1], dtype="float32", **settings))
    print("loaded", config.num_layers)
except RtlangError as error:
    print("refused:", error)
"""
PREPARED = """
import json, os, sys, traceback
import rtlang.model.loader, rtlang.model.loading.hub
assert not {"huggingface_hub", "transformers"} & sys.modules.keys(), "they read the environment"
for line in sys.stdin:
    environment, folder, script, arguments = json.loads(line)
    if not (child := os.fork()):
        try:
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(folder)
            sys.argv = ["-c", *arguments]
            with open("said", "w") as sys.stdout:
                exec(script, {"__name__": "__main__"})
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Runs scripts in processes that it forks, each with its environment; what needs no environment is imported once."""


class Hub(ThreadingHTTPServer):
    """Serves folders as revisions of the model `team/tiny`; its files, but not their list, need a token if it is gated."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folders = {MAIN: folder}
        self.commits = {"main": MAIN, MAIN: MAIN}
        self.fetched: list[str] = []
        self.is_gated = False

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
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            name, action, revision = "/".join(parts[2:4]), (parts[4:5] or [""])[0], "/".join(parts[5:]) or "main"
        else:
            name, action, revision = "/".join(parts[:2]), (parts[2:3] or [""])[0], (parts[3:4] or [""])[0]
        revision = revision.replace("%2F", "/")
        if name != "team/tiny":
            return self._send(b"{}", has_body, {"X-Error-Code": "RepoNotFound"}, 404)
        if revision not in self.server.commits:
            return self._send(b"{}", has_body, {"X-Error-Code": "RevisionNotFound"}, 404)
        commit = self.server.commits[revision]
        folder = self.server.folders[commit]
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        if action == "tree":
            tree = [
                {"type": "file", "path": each, "size": path.stat().st_size, "oid": _digest(path)}
                for each, path in files.items()
            ]
            return self._send(json.dumps(tree).encode(), has_body, {})
        if action in ("", "revision"):
            content = {"id": name, "sha": commit, "siblings": [{"rfilename": each} for each in files]}
            return self._send(json.dumps(content).encode(), has_body, {})
        if self.server.is_gated:
            return self._send(b"{}", has_body, {"X-Error-Code": "GatedRepo"}, 403)
        if "/".join(parts[4:]) not in files:
            return self._send(b"{}", has_body, {"X-Error-Code": "EntryNotFound"}, 404)
        path = files["/".join(parts[4:])]
        if has_body:
            self.server.fetched.append("/".join(parts[4:]))
        return self._send(path.read_bytes(), has_body, {"ETag": f'"{_digest(path)}"', "X-Repo-Commit": commit})

    def _send(self, body: bytes, has_body: bool, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if has_body:
            self.wfile.write(body)


def _digest(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


def write_published(folder: Path, *, model_type: str = "llama") -> Path:
    """A checkpoint as it is published: two shards, the same weights once more in other layouts, and other precisions in subfolders."""
    path = make_checkpoint(folder, model_type)
    tensors = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    weight_map = {name: SHARDS[index % 2] for index, name in enumerate(sorted(tensors))}
    for shard in SHARDS:
        save_file({name: tensors[name] for name in tensors if weight_map[name] == shard}, path / shard)
    (path / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    for name in SMALL:
        if not (path / name).exists():
            (path / name).write_text("{}" if name.endswith(".json") else TEMPLATE)
    for name in (
        "consolidated.safetensors",
        "consolidated.safetensors.index.json",
        "pytorch_model.bin",
        "pytorch_model.bin.index.json",
        "modeling.py",
        "README.md",
        "tiny-q4.gguf",
        "onnx/model.onnx",
        "onnx/config.json",
        "original/consolidated.00.pth",
        "original/params.json",
        "fp16/model.safetensors",
    ):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(f"content of {name}")
    return path


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    server = Hub(write_published(tmp_path / "hub"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@functools.cache
def prepared() -> subprocess.Popen[str]:
    """A process of `PREPARED`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", PREPARED]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    if prepared.cache_info().currsize:
        with prepared():
            prepared.cache_clear()


def fetch(
    tmp_path: Path,
    name: str,
    url: str,
    *settings: str,
    script: str = DIRECTORY,
    offline: bool = False,
    timeout_s: int = 10,
) -> str:
    """In a process of its own, since the client reads its environment when it is imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    environment |= {
        "HF_HOME": str(tmp_path / "home"),
        "HF_ENDPOINT": url,
        "HF_HUB_OFFLINE": str(int(offline)),
        "HF_HUB_ETAG_TIMEOUT": str(timeout_s),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    process = prepared()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([environment, str(tmp_path), script, [name, *settings]]) + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "0\n"
    return (tmp_path / "said").read_text().strip()


def test_the_files_of_the_index_are_downloaded_once_and_no_others(hub: Hub, tmp_path: Path) -> None:
    wanted = sorted([*SMALL, *SHARDS, INDEX])
    assert fetch(tmp_path, "team/tiny", hub.url) == " ".join(wanted)
    assert sorted(hub.fetched) == wanted
    first_shard = min(hub.fetched.index(shard) for shard in SHARDS)
    assert sorted(hub.fetched[:first_shard]) == sorted([*SMALL, INDEX])  # what the model is judged by
    hub.fetched.clear()
    for url in (hub.url, "http://127.0.0.1:9"):  # the discard port: nothing listens there
        assert fetch(tmp_path, "team/tiny", url) == " ".join(wanted)
    assert fetch(tmp_path, "team/tiny", hub.url, offline=True) == " ".join(wanted)
    assert hub.fetched == []


def test_a_model_in_one_file_needs_no_index(hub: Hub, tmp_path: Path) -> None:
    make_checkpoint(hub.folders[MAIN], "llama")  # beside the other files
    for name in (INDEX, *SHARDS):
        (hub.folders[MAIN] / name).unlink(missing_ok=True)
    assert fetch(tmp_path, "team/tiny", hub.url) == " ".join(sorted([*SMALL, "model.safetensors"]))


def test_an_interrupted_download_goes_on_with_what_is_missing(hub: Hub, tmp_path: Path) -> None:
    fetch(tmp_path, "team/tiny", hub.url)
    (missing,) = (tmp_path / "home").rglob(f"snapshots/{MAIN}/{SHARDS[1]}")
    missing.resolve().unlink()
    missing.unlink(missing_ok=True)
    hub.fetched.clear()
    for url, offline in ((hub.url, True), ("http://127.0.0.1:9", False)):
        assert "does not contain the whole model" in fetch(tmp_path, "team/tiny", url, offline=offline)
    assert SHARDS[1] in fetch(tmp_path, "team/tiny", hub.url)
    assert hub.fetched == [SHARDS[1]]


def test_a_repository_that_lacks_a_shard_is_refused_before_the_others_are_downloaded(hub: Hub, tmp_path: Path) -> None:
    (hub.folders[MAIN] / SHARDS[1]).unlink()
    assert f"1 of 2 shards are missing: {SHARDS[1]}" in fetch(tmp_path, "team/tiny", hub.url)
    assert not set(hub.fetched) & set(SHARDS)


def test_a_revision_is_a_branch_a_tag_or_a_commit(hub: Hub, tmp_path: Path) -> None:
    folder = write_published(tmp_path / "other", model_type="qwen3")
    hub.folders[OTHER] = folder
    hub.commits |= dict.fromkeys(("v1.0", "refs/pr/3", OTHER), OTHER)
    for revision in ("v1.0", "refs/pr/3", OTHER):
        assert SHARDS[0] in fetch(tmp_path, f"team/tiny@{revision}", hub.url)
    assert hub.fetched.count("config.json") == 1  # of one commit
    assert SHARDS[0] in fetch(tmp_path, "team/tiny", hub.url)
    assert hub.fetched.count("config.json") == 2
    assert SHARDS[0] in fetch(tmp_path, "team/tiny@v1.0", hub.url, offline=True)
    unknown = fetch(tmp_path, "team/tiny@v2.0", hub.url)
    assert "cannot load the model at 'team/tiny@v2.0'" in unknown
    assert "the model hub has no revision 'v2.0' of 'team/tiny': expected a branch, tag or commit" in unknown


@pytest.mark.parametrize(
    ("change", "settings", "expected"),
    [
        ({"model_type": "rwkv", "architectures": ["RwkvForCausalLM"]}, (), "model type 'rwkv'"),
        ({"model_type": "unheard_of", "architectures": ["UnheardOfForCausalLM"]}, (), "unheard_of"),
        ({"quantization_config": {"quant_method": "hqq"}}, (), "hqq"),
        ({"model_type": "stablelm"}, ("decoder=native",), "decoder"),
        ({"intermediate_size": 1 << 36}, (), "of memory"),
    ],
    ids=["unsupported", "unknown", "quantized", "decoder", "too large"],
)
def test_an_unsupported_model_is_refused_before_its_weights_are_downloaded(
    change: dict[str, object], settings: tuple[str, ...], expected: str, hub: Hub, tmp_path: Path
) -> None:
    path = hub.folders[MAIN] / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    text = fetch(tmp_path, "team/tiny", hub.url, *settings, script=LOAD)
    assert text.startswith("refused:")
    assert expected in text
    assert "config.json" in hub.fetched
    assert not [name for name in hub.fetched if name.endswith(".safetensors")]


def test_a_damaged_tokenizer_is_refused_before_weights_are_downloaded(hub: Hub, tmp_path: Path) -> None:
    (hub.folders[MAIN] / "tokenizer.json").write_text('{"model": {}}')
    text = fetch(tmp_path, "team/tiny", hub.url, script=LOAD)
    assert text.startswith("refused:")
    assert "tokenizer.json" in text
    assert not [name for name in hub.fetched if name.endswith(".safetensors")]


@pytest.mark.parametrize("decoder", ["native", "transformers"])
def test_a_model_of_a_hub_loads_with_both_decoders(decoder: str, hub: Hub, tmp_path: Path) -> None:
    assert fetch(tmp_path, "team/tiny", hub.url, f"decoder={decoder}", script=LOAD) == "loaded 2"
    assert sorted(name for name in hub.fetched if name.endswith(".safetensors")) == SHARDS


def test_quantized_weights_load_by_revision(hub: Hub, tmp_path: Path) -> None:
    coded, _ = quantized_pair(tmp_path / "coded", "int4")
    hub.folders[OTHER] = coded
    hub.commits |= {"v1.0": OTHER, OTHER: OTHER}
    assert fetch(tmp_path, "team/tiny@v1.0", hub.url, script=LOAD) == "loaded 2"
    assert "model.safetensors" in hub.fetched
    case, file = CASES["llama"], "q4/tiny-q8.gguf"
    (coded / file).parent.mkdir()
    write_model(coded / file, case, make_model(case), "Q8_0")
    hub.fetched.clear()
    assert fetch(tmp_path, f"team/tiny:{file}@v1.0", hub.url, script=LOAD) == "loaded 2"
    assert hub.fetched == [file]
    assert f"has no file {file}" in fetch(tmp_path, f"team/tiny:{file}", hub.url, script=FILE)


def test_dummy_weights_download_none(hub: Hub, tmp_path: Path) -> None:
    assert fetch(tmp_path, "team/tiny", hub.url, "weights=dummy", script=LOAD) == "loaded 2"
    assert sorted(hub.fetched) == sorted([*SMALL, INDEX])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"config.json": "{}", "model-q4.gguf": "", "model-q8.gguf": ""}, "GGUF (model-q4.gguf and 1 more)"),
        ({"model-q4.gguf": ""}, "GGUF (model-q4.gguf)"),
        ({"config.json": "{}", "pytorch_model.bin": ""}, "pickled (pytorch_model.bin)"),
        (
            {"params.json": "{}", "consolidated.safetensors": "", "tekken.json": "{}"},
            "the layout of the model's authors",
        ),
        (
            {"adapter_config.json": '{"base_model_name_or_path": "team/base"}', "adapter_model.safetensors": ""},
            "an adapter (LoRA) of 'team/base'",
        ),
        (
            {"config.json": "{}", "onnx/model.onnx": "", "onnx/config.json": "{}"},
            "the format of ONNX (onnx/model.onnx)",
        ),
        ({"model_index.json": "{}", "unet/model.safetensors": ""}, "a pipeline of diffusers"),
    ],
    ids=["gguf", "gguf only", "pickles", "authors", "adapter", "onnx", "diffusers"],
)
def test_repositories_without_safetensors_are_refused_by_their_list_of_files(
    files: dict[str, str], expected: str, hub: Hub, tmp_path: Path
) -> None:
    folder = hub.folders[MAIN] = tmp_path / "repository"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    text = fetch(tmp_path, "team/tiny", hub.url)
    assert text.startswith("refused: cannot load the model at 'team/tiny'")
    assert expected in text
    assert set(hub.fetched) <= {"config.json", "adapter_config.json"}


def test_a_gguf_file_is_downloaded_with_its_other_parts_only(hub: Hub, tmp_path: Path) -> None:
    folder = hub.folders[MAIN] = tmp_path / "repository"
    parts = [f"q4/tiny-0000{number}-of-00002.gguf" for number in (1, 2)]
    for name in (*parts, "tiny-q8.gguf", "config.json", "mmproj.gguf"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    assert fetch(tmp_path, f"team/tiny:{parts[1]}", hub.url, script=FILE) == parts[1]
    assert sorted(hub.fetched) == parts
    hub.fetched.clear()
    assert fetch(tmp_path, "team/tiny/tiny-q8.gguf@main", hub.url, script=FILE) == "tiny-q8.gguf"
    assert hub.fetched == ["tiny-q8.gguf"]
    assert fetch(tmp_path, f"team/tiny:{parts[0]}", hub.url, script=FILE, offline=True) == parts[0]
    missing = fetch(tmp_path, "team/tiny:tiny-q5.gguf", hub.url, script=FILE)
    assert "refused: cannot load the model at 'team/tiny:tiny-q5.gguf'" in missing
    assert f"the repository has no file tiny-q5.gguf; its GGUF files: {parts[0]}, tiny-q8.gguf" in missing
    assert "no model hub is reachable" in fetch(tmp_path, "team/tiny:other.gguf", hub.url, script=FILE, offline=True)


def test_refusals_say_what_a_hub_said_or_that_there_is_none(hub: Hub, tmp_path: Path) -> None:
    unknown = fetch(tmp_path, "team/other", hub.url)
    assert "refused: cannot load the model at 'team/other'" in unknown
    assert "the model hub refused the download: it has no model 'team/other', or a private one" in unknown
    for text in (
        fetch(tmp_path, "team/tiny", hub.url, offline=True),
        fetch(tmp_path, "team/tiny", "http://127.0.0.1:9"),
    ):
        assert "no model hub is reachable" in text
        assert "pass its directory" in text
    hub.is_gated = True
    assert "access to this model has to be granted on its page; then set HF_TOKEN" in fetch(
        tmp_path, "team/tiny", hub.url
    )


def test_a_hub_that_never_answers_or_cannot_be_asked_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = fetch(tmp_path, "team/tiny", f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=1)
    assert "no model hub is reachable (no answer)" in text
    assert "refused: cannot load the model at 'team/tiny'" in fetch(tmp_path, "team/tiny", "no address")


def test_the_loader_takes_names_of_a_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "hub_directory", lambda name: tmp_path / name.repository.replace("/", "--"))
    assert loader.model_directory("team/tiny@v1") == tmp_path / "team--tiny"
    assert loader.model_directory(str(tmp_path)) == tmp_path
