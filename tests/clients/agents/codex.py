"""The Codex CLI: over WebSocket with the tools of a model that it knows, and over HTTP with the tools of one that it does not."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.agents.harness import KNOWN_MODEL, MODEL, Agent, Place
from tests.clients.agents.task import Edit, Read, Shell, Turn, Write
from tests.clients.environments import KEY

_KEY_VARIABLE = "RTLANG_KEY"
_EXPECTED = f"Model metadata for `{MODEL}` not found."


@dataclass(frozen=True, slots=True)
class Codex:
    """Codex with one transport.

    Attributes:
        model: a model that Codex knows gets `apply_patch`, a custom tool with a grammar; others get commands, and a namespace of tools.
    """

    name: str
    model: str
    door: str
    package: str = "@openai/codex"

    def calls(self, turn: Turn, repository: Path) -> list[dict[str, Any]]:
        """See `Agent`."""
        match turn:
            case Shell(command):
                return [_command(command)]
            case Write(path, content):
                if self.model == KNOWN_MODEL and content.endswith("\n"):  # patches have whole lines, and one at least
                    return [_patch(f"*** Add File: {path}", *(f"+{line}" for line in content[:-1].split("\n")))]
                folder = shlex.quote(str(Path(path).parent))
                return [_command(f"mkdir -p {folder} && printf %s {shlex.quote(content)} > {shlex.quote(path)}")]
            case Edit(path, old, new):
                if self.model == KNOWN_MODEL:
                    removed, added = (
                        [f"{sign}{line}" for line in text.split("\n")]
                        for sign, text in zip("-+", (old, new), strict=True)
                    )
                    return [_patch(f"*** Update File: {path}", "@@", *removed, *added)]
                code = f"from pathlib import Path; p = Path({path!r}); p.write_text(p.read_text().replace({old!r}, {new!r}))"
                return [_command(f"python3 -X utf8 -c {shlex.quote(code)}")]
            case Read(path):
                return [_command(f"cat {shlex.quote(path)}")]

    def tools(self) -> list[str]:
        """See `Agent`."""
        return ["exec_command", *(["apply_patch"] if self.model == KNOWN_MODEL else [])]

    def rules(self) -> list[dict[str, Any]]:
        """See `Agent`: the task is all that it asks for."""
        return []

    def prepare(self, place: Place) -> None:
        """See `Agent`."""
        top = {
            "model": self.model,
            "model_provider": "rtlang",
            "approval_policy": "never",
            "sandbox_mode": "danger-full-access",  # the namespace and the scratch folder are the sandbox
            "check_for_update_on_startup": False,
        }
        provider = {
            "name": "rtlang",
            "base_url": f"{place.url}/v1",
            "env_key": _KEY_VARIABLE,
            "wire_api": "responses",
            "supports_websockets": self.door.startswith("WS"),
        }
        sections = {"": top, "analytics": {"enabled": False}, "model_providers.rtlang": provider}
        lines = []
        for section, values in sections.items():
            lines += [f"[{section}]"] if section else []
            lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        folder = place.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text("\n".join(lines), encoding="utf-8")

    def command(self, place: Place, prompt: str) -> list[str]:
        """See `Agent`."""
        program = place.package / "node_modules" / ".bin" / "codex"
        return [str(program), "exec", "--json", prompt]

    def variables(self, place: Place) -> Mapping[str, str]:
        """See `Agent`."""
        return {_KEY_VARIABLE: KEY, "CODEX_HOME": str(place.home / ".codex")}

    def problems(self, output: str) -> list[str]:
        """See `Agent`: errors, also of its transport, and turns that fail."""
        found = []
        for line in output.split("\n"):
            if line.startswith("{"):
                event = json.loads(line)
                item = event.get("item", {})
                is_error = event["type"] in ("error", "turn.failed") or item.get("type") == "error"
                if is_error and not item.get("message", "").startswith(_EXPECTED):
                    found.append(line)
        return found


def _command(command: str) -> dict[str, Any]:
    return {"name": "exec_command", "arguments": {"cmd": command, "login": False, "yield_time_ms": 30_000}}


def _patch(*lines: str) -> dict[str, Any]:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))
    return {"name": "apply_patch", "arguments": {"input": text}}


AGENTS: tuple[Agent, ...] = (
    Codex("codex-websocket", KNOWN_MODEL, "WS /v1/responses"),
    Codex("codex-http", MODEL, "POST /v1/responses"),
)
