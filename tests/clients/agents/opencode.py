"""opencode, through the AI SDK's providers for chat completions, the Responses API and the Messages API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.agents.harness import MODEL, Agent, Place
from tests.clients.agents.task import Edit, Read, Shell, Turn, Write
from tests.clients.environments import KEY

_PROVIDER = "rtlang"


@dataclass(frozen=True, slots=True)
class Opencode:
    """opencode with one of its providers, `npm`."""

    name: str
    npm: str
    door: str
    package: str = "opencode-ai"

    def calls(self, turn: Turn, repository: Path) -> list[dict[str, Any]]:
        """See `Agent`."""
        match turn:
            case Shell(command):
                return [{"name": "bash", "arguments": {"command": command}}]
            case Write(path, content):
                return [{"name": "write", "arguments": {"content": content, "filePath": str(repository / path)}}]
            case Edit(path, old, new):
                arguments = {"filePath": str(repository / path), "oldString": old, "newString": new}
                return [{"name": "edit", "arguments": arguments}]
            case Read(path):
                return [{"name": "read", "arguments": {"filePath": str(repository / path)}}]

    def tools(self) -> list[str]:
        """See `Agent`."""
        return ["bash", "edit"]

    def rules(self) -> list[dict[str, Any]]:
        """See `Agent`: titles are asked for without tools."""
        return [{"when": {"tools": []}, "repeats": True, "replies": ["Counting words"]}]

    def prepare(self, place: Place) -> None:
        """See `Agent`."""
        model = f"{_PROVIDER}/{MODEL}"
        provider = {
            "npm": self.npm,
            "options": {"baseURL": f"{place.url}/v1", "apiKey": KEY},
            "models": {MODEL: {"limit": {"context": 200_000, "output": 16_000}}},
        }
        settings = {
            "model": model,
            "small_model": model,
            "autoupdate": False,
            "share": "disabled",
            "permission": {"*": "allow"},
            "provider": {_PROVIDER: provider},
        }
        folder = place.home / "config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")

    def command(self, place: Place, prompt: str) -> list[str]:
        """See `Agent`."""
        program = place.package / "node_modules" / ".bin" / "opencode"
        return [str(program), "run", "--format", "json", "--print-logs", "--log-level", "WARN", prompt]

    def variables(self, place: Place) -> Mapping[str, str]:
        """See `Agent`."""
        switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in switches}

    def problems(self, output: str) -> list[str]:
        """See `Agent`: events of errors, and logged errors."""
        found = []
        for line in output.split("\n"):
            if "level=ERROR" in line:
                found.append(line)
            if line.startswith("{") and (event := json.loads(line))["type"] == "error":
                found.append(json.dumps(event))
        return found


AGENTS: tuple[Agent, ...] = (
    Opencode("opencode-chat", "@ai-sdk/openai-compatible", "POST /v1/chat/completions"),
    Opencode("opencode-responses", "@ai-sdk/openai", "POST /v1/responses"),
    Opencode("opencode-messages", "@ai-sdk/anthropic", "POST /v1/messages"),
)
