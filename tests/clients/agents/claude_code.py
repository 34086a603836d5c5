"""Claude Code, through the Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.agents.harness import MODEL, Agent, Place
from tests.clients.agents.task import Edit, Read, Shell, Turn, Write
from tests.clients.environments import KEY

_TOOLS = ("Bash", "Read", "Edit", "Write")
_MODELS = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
)
_SWITCHES = ("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """Claude Code in its print mode."""

    name: str = "claude-code"
    package: str = "@anthropic-ai/claude-code"
    door: str = "POST /v1/messages"

    def calls(self, turn: Turn, repository: Path) -> list[dict[str, Any]]:
        """See `Agent`."""
        match turn:
            case Shell(command):
                return [{"name": "Bash", "arguments": {"command": command, "description": "The next step"}}]
            case Write(path, content):
                return [{"name": "Write", "arguments": {"file_path": str(repository / path), "content": content}}]
            case Edit(path, old, new):
                arguments = {"file_path": str(repository / path), "old_string": old, "new_string": new}
                return [{"name": "Edit", "arguments": arguments}]
            case Read(path):
                return [{"name": "Read", "arguments": {"file_path": str(repository / path)}}]

    def tools(self) -> list[str]:
        """See `Agent`."""
        return list(_TOOLS)

    def rules(self) -> list[dict[str, Any]]:
        """See `Agent`: a title is asked for without tools, as JSON of a schema."""
        title = json.dumps({"title": "Count words"})
        return [{"when": {"tools": [], "system": "title"}, "repeats": True, "replies": [title]}]

    def prepare(self, place: Place) -> None:
        """See `Agent`."""

    def command(self, place: Place, prompt: str) -> list[str]:
        """See `Agent`."""
        program = place.package / "node_modules" / self.package / "cli-wrapper.cjs"
        options = ["--output-format", "stream-json", "--verbose", "--allowedTools", ",".join(_TOOLS)]
        return ["node", str(program), "-p", prompt, *options]

    def variables(self, place: Place) -> Mapping[str, str]:
        """See `Agent`."""
        found = {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": KEY}
        return found | dict.fromkeys(_MODELS, MODEL) | dict.fromkeys(_SWITCHES, "1")

    def problems(self, output: str) -> list[str]:
        """See `Agent`: repeated requests, tools that were not permitted, and a result that is an error."""
        return [json.dumps(event)[:500] for event in _events(output) if _is_problem(event)]


def _events(output: str) -> Iterator[dict[str, Any]]:
    for line in output.split("\n"):
        if line.startswith("{"):
            yield json.loads(line)


def _is_problem(event: Mapping[str, Any]) -> bool:
    if event.get("subtype") == "api_retry" or event.get("error"):
        return True
    return event.get("type") == "result" and bool(event["is_error"] or event["permission_denials"])


AGENTS: tuple[Agent, ...] = (ClaudeCode(),)
