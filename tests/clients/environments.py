"""The environments of the clients, and a server for their programs.

    python -m tests.clients.environments [NAME ...]

runs the programs of all clients, or of those that are named, and prints a table; `clients_table` writes it into the documentation.
`pytest -m clients tests/clients` does the same as tests.
Environments are built on first use, in the folder RTLANG_CLIENTS_HOME or ~/.cache/rtlang/clients, from the package index that pip and npm
are configured for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
KEY = "key-of-the-clients"
DIALOGUE = PROGRAMS / "dialogue.yaml"
ALIAS = "gpt-4o-mini"
"""Another name of the served model, for clients that know models by their names."""
PASSED, FAILED = "passed", "FAILED"
BUILD_TIMEOUT_S, RUN_TIMEOUT_S, START_TIMEOUT_S = 1800, 600, 180


@dataclass(frozen=True, slots=True)
class Client:
    """A client library, its program, and what is installed for it.

    Attributes:
        packages: requirements, as pip takes them; none for Node, whose packages are in programs/node/package.json.
        bare: requirements that are installed without their own requirements.
        shows: the packages whose versions are printed, that of the client first.
        doors: the APIs that the program uses, as `DOORS` calls them.
        does: what the program does with them, for the table.
    """

    name: str
    program: str
    packages: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    doors: tuple[str, ...] = ("chat",)
    does: str = ""

    @property
    def is_node(self) -> bool:
        return self.program.endswith(".mjs")


# RuntimeEndpoint needs a few of SGLang's requirements only; the others are kernels for GPUs.
_OF_SGLANG = (
    "requests",
    "aiohttp",
    "numpy",
    "tqdm",
    "ipython",
    "setproctitle",
    "psutil",
    "pybase64",
    "pydantic",
    "orjson",
)
DOORS = ("chat", "completions", "responses", "messages", "generate", "batches", "ollama")
"""Names of APIs in tables: those of OpenAI, Anthropic, SGLang and Ollama."""
_OPENAI = "text, streams, structured output, tools, log-probabilities, errors"
_RESPONSES = "tools of all kinds, conversations, background, compaction, token counts, encrypted thoughts, errors"
CLIENTS = (
    Client("openai-2", "use_openai.py", ("openai>=2,<3",), (), ("openai",), DOORS[:3], _OPENAI),
    Client("openai-3", "use_openai.py", ("openai>=3,<4",), (), ("openai",), DOORS[:3], _OPENAI),
    Client("openai-2-responses", "use_responses.py", ("openai>=2,<3",), (), ("openai",), ("responses",), _RESPONSES),
    Client("openai-3-responses", "use_responses.py", ("openai>=3,<4",), (), ("openai",), ("responses",), _RESPONSES),
    Client(
        "openai-websocket",
        "use_websocket.py",
        ("openai[realtime]>=3.50",),
        shows=("openai", "websockets"),
        doors=("responses",),
        does="turns that continue each other without being stored, prepared prompts, lanes, tools, structured output, errors",
    ),
    Client("node-openai", "node/use_openai.mjs", (), (), ("openai",), DOORS[:3], f"{_OPENAI}, a tool runner"),
    Client(
        "node-websocket",
        "node/use_websocket.mjs",
        shows=("openai", "ws"),
        doors=("responses",),
        does="turns that continue each other without being stored, prepared prompts, a tool, structured output, errors",
    ),
    Client(
        "node-ai",
        "node/use_ai.mjs",
        shows=("ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible"),
        doors=("chat", "responses"),
        does="text, streams, structured output, tools",
    ),
    Client(
        "openai-agents",
        "use_agents.py",
        ("openai-agents",),
        shows=("openai-agents", "openai"),
        doors=("chat", "responses"),
        does="agents with tools, structured output, streams, handoffs; the Responses API also over WebSocket",
    ),
    Client(
        "pydantic-ai",
        "use_pydantic_ai.py",
        ("pydantic-ai-slim[openai,anthropic]",),
        shows=("pydantic-ai-slim", "openai", "anthropic"),
        doors=("chat", "responses", "messages"),
        does="agents with tools, three kinds of structured output, thoughts, streams",
    ),
    Client(
        "langgraph",
        "use_langgraph.py",
        ("langgraph", "langchain", "langchain-openai"),
        shows=("langgraph", "langchain-openai", "openai"),
        doors=("chat", "responses"),
        does="agents with tools, parallel calls, a second turn, structured output, streams",
    ),
    Client(
        "langchain-openai",
        "use_langchain.py",
        ("langchain-openai",),
        shows=("langchain-openai", "openai"),
        doors=DOORS[:3],
        does="text, batches, structured output, tools, streams",
    ),
    Client(
        "anthropic",
        "use_anthropic.py",
        ("anthropic>=2,<3", "pydantic"),
        shows=("anthropic",),
        doors=("messages",),
        does="text, streams, tools, thoughts, structured output, token counts, errors",
    ),
    Client(
        "node-anthropic",
        "node/use_anthropic.mjs",
        shows=("@anthropic-ai/sdk",),
        doors=("messages",),
        does="text, streams, a tool runner, thoughts, structured output, token counts, errors",
    ),
    Client(
        "batches",
        "use_batches.py",
        ("openai>=3,<4",),
        shows=("openai",),
        doors=("batches",),
        does="files, batches of chats, completions and responses, their results and errors",
    ),
    Client(
        "ollama",
        "use_ollama.py",
        ("ollama",),
        shows=("ollama",),
        doors=("ollama",),
        does="chats, texts, tools, thoughts, structured output, models",
    ),
    Client(
        "node-ollama",
        "node/use_ollama.mjs",
        shows=("ollama",),
        doors=("ollama",),
        does="chats, texts, tools, structured output, models",
    ),
    Client(
        "llama-index",
        "use_llamaindex.py",
        ("llama-index-llms-openai",),
        shows=("llama-index-llms-openai", "llama-index-core", "openai"),
        doors=("chat", "responses"),
        does="text, structured prediction, an agent with tools, streams",
    ),
    Client(
        "haystack",
        "use_haystack.py",
        ("haystack-ai",),
        shows=("haystack-ai", "openai"),
        doors=("chat", "responses"),
        does="generators, structured output, an agent with tools, streams",
    ),
    Client(
        "litellm",
        "use_litellm.py",
        ("litellm",),
        shows=("litellm", "openai"),
        doors=DOORS[:3],
        does="text, streams, structured output, tools",
    ),
    Client(
        "litellm-proxy",
        "use_litellm_proxy.py",
        ("litellm[proxy]", "anthropic"),
        shows=("litellm", "openai", "anthropic"),
        doors=("chat", "responses"),
        does="as a proxy for the `openai` and `anthropic` clients: text, streams, tools",
    ),
    Client(
        "huggingface-hub",
        "use_huggingface.py",
        ("huggingface_hub", "pydantic", "aiohttp"),
        shows=("huggingface_hub",),
        does="`InferenceClient`, synchronous and not: text, streams, structured output, tools, errors",
    ),
    Client("instructor", "use_instructor.py", ("instructor",), (), ("instructor", "openai"), does="structured output"),
    Client("outlines", "use_outlines.py", ("outlines", "openai"), (), ("outlines", "openai"), does="structured output"),
    Client("dspy", "use_dspy.py", ("dspy",), (), ("dspy", "litellm"), does="programs"),
    Client(
        "lm-eval",
        "use_lm_eval.py",
        ("lm-eval[api]",),
        shows=("lm_eval",),
        doors=("chat", "completions"),
        does="generation and log-likelihood tasks",
    ),
    Client(
        "sglang",
        "use_sglang.py",
        _OF_SGLANG,
        bare=("sglang==0.4.10.post2",),
        shows=("sglang",),
        doors=("generate",),
        does="programs with a `RuntimeEndpoint`",
    ),
)


def home() -> Path:
    """The folder of the environments."""
    return Path(os.environ.get("RTLANG_CLIENTS_HOME", Path.home() / ".cache" / "rtlang" / "clients"))


def environment(client: Client) -> Path:
    """The folder of a client's environment; built unless it is there.

    Raises:
        RuntimeError: it cannot be built; with the end of the output of the installer.
    """
    if client.is_node:
        manifest = (PROGRAMS / "node" / "package.json").read_bytes()
        folder = home() / f"node-{hashlib.sha256(manifest).hexdigest()[:12]}"
        if not (folder / "built").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_bytes(manifest)
            _run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder)
            (folder / "built").touch()
        return folder
    wanted = "\n".join((sys.version, *client.packages, "--", *client.bare))
    requires = client.packages, client.bare
    first = next(
        (each for each in CLIENTS if (each.packages, each.bare) == requires), client
    )  # others share its environment
    folder = home() / f"{first.name}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        if client.packages:
            _run([*pip, *client.packages])
        if client.bare:
            _run([*pip, "--no-deps", *client.bare])
        (folder / "built").touch()
    return folder


def versions(client: Client, folder: Path) -> str:
    """The versions of a client's packages, for people."""
    if client.is_node:
        script = "for (const name of process.argv.slice(1)) console.log(name, require(`./node_modules/${name}/package.json`).version)"
        command = ["node", "-e", script, "--", *client.shows]
    else:
        script = (
            "import sys\nfrom importlib.metadata import version\nfor name in sys.argv[1:]: print(name, version(name))"
        )
        command = [str(folder / "bin" / "python"), "-c", script, *client.shows]
    return ", ".join(_run(command, cwd=folder).split("\n")[: len(client.shows)])


def run_program(client: Client, folder: Path, url: str, scripted_url: str) -> None:
    """Run the program of a client against a server with a model and one with the script `DIALOGUE`.

    Raises:
        RuntimeError: the program fails; with the end of its output.
    """
    variables = {
        "RTLANG_CLIENTS_URL": url,
        "RTLANG_CLIENTS_SCRIPTED": scripted_url,
        "RTLANG_CLIENTS_KEY": KEY,
        "RTLANG_CLIENTS_ALIAS": ALIAS,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # litellm would fetch prices otherwise
        "HF_HUB_OFFLINE": "0" if client.name == "huggingface-hub" else "1",  # offline, it reaches no server at all
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "DSPY_CACHEDIR": str(folder / "cache"),
    }
    if client.is_node:
        program = folder / Path(client.program).name  # packages are found from the program's own folder
        shutil.copyfile(PROGRAMS / client.program, program)
        _run(["node", str(program)], variables, RUN_TIMEOUT_S, cwd=folder)
    else:
        _run([str(folder / "bin" / "python"), str(PROGRAMS / client.program)], variables, RUN_TIMEOUT_S, cwd=folder)


@contextlib.contextmanager
def running_servers() -> Iterator[tuple[str, str]]:
    """The addresses of a server with a model, and of one with the script `DIALOGUE`."""
    with running_server() as url, running_server(f"script:{DIALOGUE}") as scripted_url:
        yield url, scripted_url


@contextlib.contextmanager
def running_server(model: str = "rtlang:tiny") -> Iterator[str]:
    """`rtlang serve` in a process of its own, with a model and a key; yields its http address. `server.log` in `home` has its log."""
    paths = [ROOT, ROOT / "kernels", ROOT / "grammars"]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "RTLANG_API_KEY": KEY}
    command = [sys.executable, "-m", "rtlang", "serve", "--model", model, "--port", "0"]
    for name in (Path(model).name, ALIAS):
        command += ["--served-model-name", name]
    home().mkdir(parents=True, exist_ok=True)
    with (
        (home() / "server.log").open("a") as log,
        subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if line.startswith("serving ")), "")
            url = next((word for word in line.split() if word.startswith("ws://")), "").replace("ws", "http", 1)
            if not url:
                raise RuntimeError("the server did not start")
            with urllib.request.urlopen(f"{url}/ready", timeout=START_TIMEOUT_S):
                yield url
        finally:
            process.terminate()


def _run(
    command: list[str],
    variables: Mapping[str, str] | None = None,
    timeout: float = BUILD_TIMEOUT_S,
    *,
    cwd: Path = ROOT,
) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPENAI_", "VIRTUAL_"))}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=kept | dict(variables or {}),
        timeout=timeout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")
    return done.stdout


def run_clients(names: Sequence[str] = ()) -> dict[str, tuple[str, str]]:
    """Run the programs of all clients, or of those that are named, and print a line for each.

    Returns:
        The versions and the result, `PASSED` or `FAILED`, by the names of the clients.
    """
    results: dict[str, tuple[str, str]] = {}
    with running_servers() as urls:
        for client in [client for client in CLIENTS if not names or client.name in names]:
            started = time.monotonic()
            shown, problem = "", ""
            try:
                folder = environment(client)
                shown = versions(client, folder)
                run_program(client, folder, *urls)
            except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
                problem = f"\n{error}"
            results[client.name] = shown, FAILED if problem else PASSED
            seconds = time.monotonic() - started
            print(f"{client.name:18} {results[client.name][1]:7} {seconds:6.1f} s  {shown}{problem}", flush=True)
    return results


def num_failed(results: Mapping[str, tuple[str, str]]) -> int:
    """How many of these results are failures."""
    return sum(result == FAILED for _, result in results.values())


if __name__ == "__main__":
    sys.exit(num_failed(run_clients(sys.argv[1:])))
