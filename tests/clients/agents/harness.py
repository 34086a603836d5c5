"""Runs an agent's command line against a server with a scripted model, which makes it carry out the recorded task.

    python -m tests.clients.agents.harness [NAME ...]

does so with all agents, or those that are named, and prints a table. Server and agent run in a network namespace that has only loopback,
in a scratch home and a scratch repository; the packages come from npm on first use, into the folder of the other clients
(`environments.home`). `pytest -m clients tests/clients/agents` does the same as tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from tests.clients.agents.task import LAST_WORDS, PROMPT, TURNS, Turn, carry_out, files_of, new_repository, subjects_of
from tests.clients.environments import KEY, ROOT, _run, home

MODEL, KNOWN_MODEL = "scripted", "gpt-5.5"
"""Names of the model: one that no agent knows, and one for which Codex has its full set of tools."""
START_TIMEOUT_S, RUN_TIMEOUT_S = 180, 900
_UP = 0x1  # IFF_UP
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914  # SIOCGIFFLAGS, SIOCSIFFLAGS
_FIELDS = re.compile(r'(\S+?)=("[^"]*"|\S+)')


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent runs.

    Attributes:
        package: the folder of its npm packages.
        repository: its working directory.
        home: an empty folder for everything that it keeps.
        url: of the server, with http.
    """

    package: Path
    repository: Path
    home: Path
    url: str


class Agent(Protocol):
    """One client and its doors. A module `tests.clients.agents.NAME` has one as AGENTS, a tuple.

    Attributes:
        name: of the agent and the door, for tables.
        package: from npm.
        door: the path that its requests go to, as request logs show it.
    """

    name: str
    package: str
    door: str

    def calls(self, turn: Turn, repository: Path) -> list[dict[str, Any]]:
        """The tool calls of a turn: maps with name and arguments, as scripts have them."""

    def tools(self) -> list[str]:
        """Names of tools that tell the requests of the task from side requests."""

    def rules(self) -> list[dict[str, Any]]:
        """Rules of the script for side requests, such as titles."""

    def prepare(self, place: Place) -> None:
        """Write the agent's settings."""

    def command(self, place: Place, prompt: str) -> list[str]:
        """The command line that works without a terminal and asks nobody."""

    def variables(self, place: Place) -> Mapping[str, str]:
        """Environment variables, besides HOME and PATH."""

    def problems(self, output: str) -> list[str]:
        """The errors that the agent's own output reports."""


@dataclass(frozen=True, slots=True)
class Request:
    """A line of the server's log."""

    door: str
    status: int
    code: str
    num_prompt: int
    num_cached: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        version: of the package.
        exit_status: of the agent; None if it ran out of time.
        requests: that the server answered, in order.
        problems: of the protocol: requests that failed, and what the agent reports.
        differences: between the files and commits of the repository and the recorded ones.
        output: the end of the agent's output.
    """

    agent: str
    version: str
    exit_status: int | None
    requests: tuple[Request, ...]
    problems: tuple[str, ...]
    differences: tuple[str, ...]
    seconds: float
    output: str = field(repr=False, default="")

    @property
    def is_right(self) -> bool:
        """Whether the task was carried out without an error."""
        return self.exit_status == 0 and not self.problems and not self.differences

    @property
    def cached_share(self) -> float:
        """The share of prompt tokens that the cache had."""
        return sum(each.num_cached for each in self.requests) / max(1, sum(each.num_prompt for each in self.requests))


def script_of(agent: Agent, repository: Path, turns: Sequence[Turn] = TURNS) -> dict[str, Any]:
    """The script that makes an agent do the turns."""
    replies: list[Any] = [{"calls": agent.calls(turn, repository)} for turn in turns]
    replies[0]["content"] = "I begin with a look at the repository."
    task = {"when": {"user": re.escape(PROMPT), "tools": agent.tools()}, "replies": [*replies, LAST_WORDS]}
    return {"rules": [task, *agent.rules()]}


def agents(names: Sequence[str] = ()) -> list[Agent]:
    """The agents whose name begins with one of the names; all by default."""
    folder = Path(__file__).parent
    known = {"__init__", "harness", "task"}
    found: list[Agent] = []
    for path in sorted(folder.glob("*.py")):
        if path.stem not in known and not path.stem.startswith("test_"):
            found += importlib.import_module(f"tests.clients.agents.{path.stem}").AGENTS
    return [each for each in found if not names or any(each.name.startswith(name) for name in names)]


def installed(package: str) -> Path:
    """The folder with an npm package; installed unless it is there.

    Raises:
        RuntimeError: it cannot be installed; with the end of npm's output.
    """
    folder = home() / f"agent-{hashlib.sha256(package.encode()).hexdigest()[:12]}"
    if not (folder / "built").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        _run(["npm", "install", "--no-audit", "--no-fund", "--foreground-scripts", package], cwd=folder)
        (folder / "built").touch()
    return folder


def version_of(package: str, folder: Path) -> str:
    """The version of an installed package."""
    manifest = folder / "node_modules" / package / "package.json"
    return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])


def missing() -> str | None:
    """The first program that is needed and not there; None if all are."""
    return next((name for name in ("npm", "node", "git", "bash", "unshare") if shutil.which(name) is None), None)


def run(agent: Agent) -> Outcome:
    """Carry out the task with an agent, in a network namespace of its own.

    Raises:
        RuntimeError: the package cannot be installed, or the run inside the namespace fails.
    """
    installed(agent.package)
    command = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    command += [sys.executable, "-m", "tests.clients.agents.harness", "--inside", agent.name]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_TIMEOUT_S + START_TIMEOUT_S + 60, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{agent.name}: {done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    plain = json.loads(done.stdout.splitlines()[-1])
    return Outcome(
        plain["agent"],
        plain["version"],
        plain["exit_status"],
        tuple(Request(*each) for each in plain["requests"]),
        tuple(plain["problems"]),
        tuple(plain["differences"]),
        plain["seconds"],
        plain["output"],
    )


# -- inside the namespace


def run_inside(agent: Agent) -> Outcome:
    """Carry out the task here; the caller has put this process into its namespace."""
    _raise_loopback()
    with tempfile.TemporaryDirectory(prefix="rtlang-agent-") as scratch:
        folder = Path(scratch)
        recorded, repository = folder / "recorded", folder / "repository"
        new_repository(recorded)
        carry_out(TURNS, recorded)
        new_repository(repository)
        script = folder / "script.json"
        script.write_text(json.dumps(script_of(agent, repository)), encoding="utf-8")
        log = folder / "server.log"
        package = installed(agent.package)
        with _server(script, log) as url:
            place = Place(package, repository, folder / "home", url)
            place.home.mkdir()
            agent.prepare(place)
            started = time.monotonic()
            exit_status, output = _carried_out(agent, place, folder / "output.txt")
            seconds = time.monotonic() - started
        requests = requests_of(log.read_text(encoding="utf-8"))
        outcome = Outcome(
            agent.name,
            version_of(agent.package, package),
            exit_status,
            tuple(requests),
            (),
            tuple(_differences(recorded, repository)),
            round(seconds, 1),
            output[-6000:],
        )
        return replace(outcome, problems=tuple(_problems(agent, outcome, output)))


def requests_of(log: str) -> list[Request]:
    """The requests in a server's log."""
    found = []
    for line in log.splitlines():
        if " rtlang.requests: " not in line:
            continue
        fields = {name: value.strip('"') for name, value in _FIELDS.findall(line)}
        tokens = (int(fields.get(f"tokens.{name}", 0)) for name in ("prompt", "cached"))
        found.append(Request(fields.get("door", ""), int(fields.get("status", 0)), fields.get("code", ""), *tokens))
    return found


def _problems(agent: Agent, outcome: Outcome, output: str) -> Iterator[str]:
    for number, request in enumerate(outcome.requests):
        if request.status >= 400 or request.code:
            yield f"request {number}, {request.door}: status {request.status}, {request.code}"
    num_turns = sum(request.door == agent.door for request in outcome.requests)
    if num_turns <= len(TURNS):
        yield f"{num_turns} requests to {agent.door}, expected at least {len(TURNS) + 1}"
    if LAST_WORDS not in output:
        yield "the agent does not show the last words of the model"
    yield from agent.problems(output)


def _differences(recorded: Path, repository: Path) -> Iterator[str]:
    expected, found = files_of(recorded), files_of(repository)
    for path in sorted(expected.keys() | found.keys()):
        if expected.get(path) != found.get(path):
            yield f"{path}: expected {expected.get(path, b'no file')[:200]!r}, found {found.get(path, b'no file')[:200]!r}"
    if subjects_of(recorded) != subjects_of(repository):
        yield f"commits: expected {subjects_of(recorded)}, found {subjects_of(repository)}"


@contextlib.contextmanager
def _server(script: Path, log: Path) -> Iterator[str]:
    paths = [ROOT, ROOT / "kernels", ROOT / "grammars"]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "RTLANG_API_KEY": KEY}
    command = [
        sys.executable,
        "-m",
        "rtlang",
        "serve",
        "--script",
        str(script),
        "--served-model-name",
        MODEL,
        "--served-model-name",
        KNOWN_MODEL,
        "--port",
        "0",
    ]
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if line.startswith("serving ")), "")
            url = next((word for word in line.split() if word.startswith("ws://")), "").replace("ws", "http", 1)
            if not url:
                raise RuntimeError(f"the server did not start: {log.read_text(encoding='utf-8')[-2000:]}")
            with urllib.request.urlopen(f"{url}/ready", timeout=START_TIMEOUT_S):
                yield url
        finally:
            process.terminate()


def _carried_out(agent: Agent, place: Place, out: Path) -> tuple[int | None, str]:
    """The exit status of the agent, None if it ran out of time, and its output."""
    variables = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    variables |= {"HOME": str(place.home), "TERM": "dumb", "CI": "1", "NO_COLOR": "1"}
    variables |= {"XDG_CONFIG_HOME": str(place.home / "config"), "XDG_DATA_HOME": str(place.home / "data")}
    variables |= {"XDG_CACHE_HOME": str(place.home / "cache"), "XDG_STATE_HOME": str(place.home / "state")}
    with out.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            agent.command(place, PROMPT),
            cwd=place.repository,
            env=variables | dict(agent.variables(place)),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_status: int | None = process.wait(RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            exit_status = None
        with contextlib.suppress(ProcessLookupError):  # whatever it started ends with it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return exit_status, out.read_text(encoding="utf-8", errors="replace")


def _raise_loopback() -> None:
    """Set the loopback interface of this namespace up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0).ljust(40, b"\0")
        (flags,) = struct.unpack_from("h", fcntl.ioctl(control, _GET_FLAGS, request), 16)
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _UP).ljust(40, b"\0"))


def _plain(outcome: Outcome) -> dict[str, Any]:
    names = ("agent", "version", "exit_status", "problems", "differences", "seconds", "output")
    requests = [[each.door, each.status, each.code, each.num_prompt, each.num_cached] for each in outcome.requests]
    return {name: getattr(outcome, name) for name in names} | {"requests": requests}


def main(arguments: list[str]) -> int:
    """Run agents and print a table; the exit status is the number of failures."""
    if arguments[:1] == ["--inside"]:
        (agent,) = (each for each in agents() if each.name == arguments[1])
        print(json.dumps(_plain(run_inside(agent))))
        return 0
    num_failed = 0
    for agent in agents(arguments):
        outcome = run(agent)
        num_failed += not outcome.is_right
        result = "passed" if outcome.is_right else "FAILED"
        shown = f"{outcome.agent} {outcome.version}"
        print(
            f"{shown:40} {result} {outcome.seconds:6.1f} s, {len(outcome.requests)} requests, "
            f"{outcome.cached_share:.1%} of prompt tokens cached",
            flush=True,
        )
        if not outcome.is_right:
            print(
                "\n".join(
                    (f"exit status {outcome.exit_status}", *outcome.problems, *outcome.differences, outcome.output)
                )
            )
    return num_failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
