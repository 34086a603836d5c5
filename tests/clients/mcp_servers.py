"""MCP servers from the npm registry: their tools, in requests to `rtlang serve` and under the grammars of all tool formats.

    python -m tests.clients.mcp_servers [--seeds N] [NAME ...]

asks all servers, or those that are named, for their tools, sends the tools of each to a server with the tiny model, with every tool choice,
and prints a table; the exit status is the number of failures. It needs node, npm and, to keep the servers from the network, `unshare`.
Packages are installed on first use, in the folder of the other clients (`environments.home`). `pytest -m clients tests/clients` does the
same as tests.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

import jsonschema
import openai

from rtlang_grammars import CompletionSearch, RtlangBackend, TokenBudget, Vocabulary
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.parsing import parse_output
from rtlang_grammars.formats.tool_grammar import tool_grammar
from tests.clients.environments import KEY, ROOT, _run, home, running_server
from tests.support.grammars.vocabularies import random_text

CONTEXT = 1 << 16
VOCABULARY = Vocabulary((*(bytes([each]) for each in range(256)), b"<end>"), frozenset([256]), frozenset(), 257)
SEARCH = CompletionSearch(VOCABULARY)
PROTOCOL = "2025-06-18"


@dataclass(frozen=True, slots=True)
class Server:
    """An MCP server that speaks over stdio.

    Attributes:
        program: in node_modules/.bin.
        options: of its command line; "FOLDER" stands for a folder that it may read.
        settings: environment variables without which it does not start; keys that no service knows.
    """

    name: str
    package: str
    program: str
    options: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


SERVERS = (
    Server("everything", "@modelcontextprotocol/server-everything", "mcp-server-everything"),
    Server("filesystem", "@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", ("FOLDER",)),
    Server("memory", "@modelcontextprotocol/server-memory", "mcp-server-memory"),
    Server("sequential-thinking", "@modelcontextprotocol/server-sequential-thinking", "mcp-server-sequential-thinking"),
    Server("playwright", "@playwright/mcp", "playwright-mcp", ("--headless",)),
    Server("chrome-devtools", "chrome-devtools-mcp", "chrome-devtools-mcp"),
    Server("firecrawl", "firecrawl-mcp", "firecrawl-mcp", settings=(("FIRECRAWL_API_KEY", "fc-0"),)),
    Server("notion", "@notionhq/notion-mcp-server", "notion-mcp-server", settings=(("NOTION_TOKEN", "ntn_0"),)),
)


def installed(server: Server) -> Path:
    """The folder in which a server is installed; installs it unless it is there.

    Raises:
        RuntimeError: npm fails; with the end of its output.
    """
    folder = home() / f"mcp-{server.name}-{hashlib.sha256(server.package.encode()).hexdigest()[:12]}"
    if not (folder / "built").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        _run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", server.package], cwd=folder)
        (folder / "built").touch()
    return folder


def started_by(server: Server) -> tuple[list[str], dict[str, str], Path]:
    """The command of a server without a network, its environment, and its folder.

    Raises:
        RuntimeError: it cannot be installed.
    """
    folder = installed(server)
    (folder / "files").mkdir(exist_ok=True)
    options = [str(folder / "files") if option == "FOLDER" else option for option in server.options]
    command = ["unshare", "--map-root-user", "--net", str(folder / "node_modules" / ".bin" / server.program), *options]
    return command, {"PATH": os.environ["PATH"], "HOME": str(folder), **dict(server.settings)}, folder


def tools_of(server: Server) -> list[dict[str, Any]]:
    """The tools of a server in the form of the OpenAI API.

    Raises:
        RuntimeError: it cannot be installed, or does not answer.
    """
    command, variables, folder = started_by(server)
    with subprocess.Popen(
        command, cwd=folder, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            return list(_listed(process.stdin, process.stdout))
        finally:
            process.kill()


def _listed(to: IO[bytes], answers: IO[bytes]) -> Iterator[dict[str, Any]]:
    info = {"name": "rtlang", "version": "0"}
    _asked(to, answers, 1, "initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info})
    _send(to, {"method": "notifications/initialized"})
    number, cursor = 2, None
    while number == 2 or cursor is not None:
        page = _asked(to, answers, number, "tools/list", {} if cursor is None else {"cursor": cursor})
        for tool in page["tools"]:
            function = {"name": tool["name"], "description": tool.get("description", "")}
            yield {"type": "function", "function": {**function, "parameters": tool["inputSchema"]}}
        number, cursor = number + 1, page.get("nextCursor")


def _send(to: IO[bytes], message: dict[str, Any]) -> None:
    to.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    to.flush()


def _asked(to: IO[bytes], answers: IO[bytes], number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    _send(to, {"id": number, "method": method, "params": params})
    for line in answers:
        message = json.loads(line) if line.startswith(b"{") else {}
        if message.get("id") == number and "method" not in message:
            if "result" not in message:
                raise RuntimeError(f"{method}: {message.get('error')}")
            result: dict[str, Any] = message["result"]
            return result
        if "id" in message and "method" in message:  # a request of the server, such as for the client's folders
            _send(to, {"id": message["id"], "error": {"code": -32601, "message": "not supported"}})
    raise RuntimeError(f"{method}: the server ended")


@dataclass
class Outcome:
    """What became of requests with the tools of one server."""

    num_requests: int = 0
    num_calls: int = 0
    called: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def check(self, tools: list[dict[str, Any]], name: str, arguments: str) -> None:
        """Note a call, whose arguments are JSON text."""
        self.num_calls += 1
        self.called.add(name)
        schema = next((tool["function"]["parameters"] for tool in tools if tool["function"]["name"] == name), None)
        if schema is None:
            self.faults.append(f"{name}: there is no such tool")
            return
        try:
            validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
            validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(arguments))
        except (ValueError, jsonschema.ValidationError) as error:
            self.faults.append(f"{name}: {str(error)[:200]}: {arguments[:200]}")


def sent(url: str, tools: list[dict[str, Any]], seeds: Iterable[int], max_tokens: int = 600) -> Outcome:
    """Send requests with some tools: with the choices auto and required, with and without a stream, and with each tool named."""
    outcome = Outcome()
    names = [tool["function"]["name"] for tool in tools]
    named = [{"type": "function", "function": {"name": name}} for name in names]
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        for seed in seeds:
            for choice in ("auto", "required", *named):
                options: Any = {"tools": tools, "tool_choice": choice, "seed": seed, "max_tokens": max_tokens}
                outcome.num_requests += 1
                try:
                    answer = client.chat.completions.create(
                        model="default", messages=[{"role": "user", "content": "hi"}], **options
                    )
                except openai.APIStatusError as error:
                    outcome.faults.append(f"{choice}: {error.status_code}: {error.message[:300]}")
                    continue
                calls = answer.choices[0].message.tool_calls or []
                if not calls and choice != "auto":
                    outcome.faults.append(f"{choice}: no call: {answer.choices[0].message}")
                for call in calls:
                    assert call.type == "function"
                    outcome.check(tools, call.function.name, call.function.arguments)
    return outcome


@cache
def backend() -> RtlangBackend:
    """A backend of which each token is a byte."""
    return RtlangBackend.create(VOCABULARY, allow_checked=True)


def walked(name: str, tools: list[dict[str, Any]], seed: int, num_bytes: int = 120) -> Outcome:
    """Compile the tools for a format, all and each, and read calls that masks and the shortest ends give."""
    outcome, rng = Outcome(), random.Random(f"{name} {seed}")
    choices: list[Any] = ["auto", "required", *({"name": tool["function"]["name"]} for tool in tools)]
    for choice in choices:
        outcome.num_requests += 1
        try:
            grammar = backend().compile(tool_grammar(name, tools, tool_choice=choice, reasoning="forbidden"))
        except ValueError as error:
            outcome.faults.append(f"{name} {choice}: {error}")
            continue
        path = SEARCH.find(grammar.matcher(), 1 << 16)
        assert path is not None, f"{name} {choice}: no short text was found"
        max_tokens = len(path.data) + num_bytes
        text = random_text(VOCABULARY, grammar.matcher(), TokenBudget(SEARCH, path), max_tokens, rng, end_chance=0.1)
        if grammar.value_check is not None and grammar.value_check.error_in(text) is not None:
            continue
        try:
            calls = parse_output(name, text, tools).calls
        except ValueError as error:
            outcome.faults.append(f"{name} {choice}: {error}: {text[:300]}")
            continue
        for call in calls:
            outcome.check(tools, call.name, json.dumps(call.arguments))
    return outcome


@contextlib.contextmanager
def long_model() -> Iterator[str]:
    """The folder of the tiny model with a context that takes the tools of any server. What it says there makes no sense."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (ROOT / "rtlang" / "tiny").iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": CONTEXT}))
        yield folder


def missing() -> str | None:
    """What is not installed here and is needed; None if nothing is."""
    return next((each for each in ("node", "npm", "unshare") if shutil.which(each) is None), None)


def main(arguments: list[str]) -> int:
    """Send the tools of servers and print a table; the exit status is the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*(each.name for each in SERVERS), []])
    parser.add_argument("--seeds", type=int, default=1, help="number of requests of each kind")
    given = parser.parse_args(arguments)
    faults: list[str] = []
    with long_model() as model, running_server(model) as url:
        for server in SERVERS:
            if given.names and server.name not in given.names:
                continue
            tools = tools_of(server)
            by_server = sent(url, tools, range(given.seeds))
            by_format = [walked(name, tools, seed) for name in FORMATS for seed in range(given.seeds)]
            found = [fault for each in (by_server, *by_format) for fault in each.faults]
            faults += [f"{server.name}: {fault}" for fault in found]
            print(
                f"{server.name:20} {len(tools):4} tools, {by_server.num_requests:4} requests, {by_server.num_calls:4} calls of "
                f"{len(by_server.called):3} tools; {len(FORMATS)} formats, {sum(each.num_requests for each in by_format):5} "
                f"grammars, {sum(each.num_calls for each in by_format):5} calls; {len(found)} faults",
                flush=True,
            )
    print("\n".join(faults))
    return len(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
