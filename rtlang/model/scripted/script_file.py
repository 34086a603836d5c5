"""Reads a script from a YAML or JSON file. Every mistake names the file, the line, the field, the value and the allowed values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rtlang.contract.config import SCRIPT_SCHEME
from rtlang.contract.errors import ConfigError
from rtlang.model.scripted.script import (
    DEFAULT_FORMAT,
    DEFAULT_MODEL_LEN,
    FAILURES,
    Condition,
    Failure,
    Script,
    ScriptedReply,
    ScriptRule,
)
from rtlang_grammars.formats.catalogue import FORMATS, MARKS, format_named
from rtlang_grammars.formats.parsing import ToolCall
from rtlang_grammars.spec.errors import GrammarError

MAX_BYTES = 64 << 20
MAX_DELAY_S = 60.0
"""A step of the engine waits for the delays of its rows; a longer one would look like a stalled engine."""

_SCRIPT = ("format", "max_model_len", "first_token_s", "tokens_per_s", "rules")
_RULE = ("when", "captures", "replies", "repeats")
_WHEN = ("user", "system", "tools")
_REPLY = ("thought", "content", "calls", "error", "delay_s")
_CALL = ("name", "arguments", "id")
_ERROR = ("kind", "message")
_MAX_SHOWN = 100
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

KeyPath = tuple[str | int, ...]
"""Where a value stands in the file: names and indices."""


def script_path(model: str) -> Path | None:
    """The path of the script that `RuntimeConfig.model` names; None if it names a model."""
    return Path(model.removeprefix(SCRIPT_SCHEME)).expanduser() if model.startswith(SCRIPT_SCHEME) else None


def read_script(path: Path) -> Script:
    """Read a script.

    Raises:
        ConfigError: the file cannot be read, or something in it is not allowed.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError("script", str(path), f"expected a file of at most {MAX_BYTES >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError("script", str(path), f"expected a readable file in UTF-8: {error}") from None
    return script_of(text, path.name, is_json=path.suffix.lower() == ".json")


def script_of(text: str, name: str, *, is_json: bool = False) -> Script:
    """The script in the text of a file.

    Args:
        name: of the file, for errors.
    Raises:
        ConfigError: as `read_script`.
    """
    try:
        data = json.loads(text) if is_json else _LOADER(text).get_single_data()
    except json.JSONDecodeError as error:
        raise ConfigError("script", f"{name}:{error.lineno}", f"expected JSON: {error.msg}") from None
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise ConfigError("script", f"{name}:{line}", f"expected YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError("script", name, f"expected {'JSON' if is_json else 'YAML'}: {error}") from None
    return _Reader(text, name).script(data)


class _Reader:
    """Reads the data of one file."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._nodes: yaml.Node | None = None
        self._is_composed = False

    def script(self, data: Any) -> Script:
        given = self._map(data, (), _SCRIPT)
        rules = self._list(given.get("rules"), ("rules",))
        if not rules:
            raise self._error(("rules",), rules, "expected at least one rule")
        name = given.get("format", DEFAULT_FORMAT)
        self._check_format(name)
        rate = given.get("tokens_per_s")
        return Script(
            self._name,
            tuple(self._rule(rule, ("rules", index), name) for index, rule in enumerate(rules)),
            name,
            self._integer(given.get("max_model_len", DEFAULT_MODEL_LEN), ("max_model_len",)),
            self._seconds(given.get("first_token_s", 0.0), ("first_token_s",)),
            None if rate is None else self._number(rate, ("tokens_per_s",), 1 / MAX_DELAY_S, 1e6),
        )

    def _check_format(self, name: Any) -> None:
        allowed = f"expected one of {', '.join(FORMATS)}, alone or with + and one of {', '.join(MARKS)}"
        try:
            format_named(self._text_at(name, ("format",)))
        except GrammarError:
            raise self._error(("format",), name, allowed) from None

    def _rule(self, data: Any, path: KeyPath, tool_format: str) -> ScriptRule:
        given = self._map(data, path, _RULE)
        replies = self._list(given.get("replies"), (*path, "replies"))
        if not replies:
            raise self._error((*path, "replies"), replies, "expected at least one reply")
        captures = {
            str(name): self._pattern(pattern, (*path, "captures", name))
            for name, pattern in self._map(given.get("captures", {}), (*path, "captures"), None).items()
        }
        repeats = given.get("repeats", False)
        if not isinstance(repeats, bool):
            raise self._error((*path, "repeats"), repeats, "expected true or false")
        return ScriptRule(
            self._condition(given.get("when", {}), (*path, "when")),
            tuple(self._reply(reply, (*path, "replies", index), tool_format) for index, reply in enumerate(replies)),
            captures,
            repeats,
            self._place(path),
        )

    def _condition(self, data: Any, path: KeyPath) -> Condition:
        given = self._map(data, path, _WHEN)
        user, system = (
            None if given.get(name) is None else self._pattern(given[name], (*path, name))
            for name in ("user", "system")
        )
        tools = given.get("tools")
        if tools is not None:
            named = self._list(tools, (*path, "tools"))
            tools = tuple(self._text_at(each, (*path, "tools", index)) for index, each in enumerate(named))
        return Condition(user, system, tools)

    def _reply(self, data: Any, path: KeyPath, tool_format: str) -> ScriptedReply:
        if isinstance(data, str):
            return ScriptedReply(content=data, place=self._place(path))
        given = self._map(data, path, _REPLY)
        if not given.keys() - {"delay_s"}:
            raise self._error(path, data, f"expected text or one of {', '.join(_REPLY[:-1])}")
        thought = self._text_at(given.get("thought", ""), (*path, "thought"))
        if thought and format_named(tool_format).reasoning is None:
            raise self._error((*path, "thought"), thought, f"the format {tool_format} has no thoughts")
        calls = [
            self._call(call, (*path, "calls", index))
            for index, call in enumerate(self._list(given.get("calls", []), (*path, "calls")))
        ]
        if len(calls) > 1 and format_named(tool_format).between is None:
            raise self._error((*path, "calls"), data["calls"], f"the format {tool_format} has one call in a reply")
        found = format_named(tool_format)
        if calls and given.get("content") and found.content is not None and found.preamble is None:
            raise self._error(
                (*path, "content"), given["content"], f"the format {tool_format} has no content before calls"
            )
        delay = given.get("delay_s")
        return ScriptedReply(
            thought,
            self._text_at(given.get("content", ""), (*path, "content")),
            tuple(calls),
            self._failure(given.get("error"), (*path, "error")),
            None if delay is None else self._seconds(delay, (*path, "delay_s")),
            self._place(path),
        )

    def _call(self, data: Any, path: KeyPath) -> ToolCall:
        given = self._map(data, path, _CALL)
        arguments = self._map(given.get("arguments", {}), (*path, "arguments"), None)
        try:
            json.dumps(arguments, allow_nan=False)
        except (TypeError, ValueError) as error:  # YAML has dates, sets and bytes
            raise self._error((*path, "arguments"), arguments, f"expected plain JSON values: {error}") from None
        call_id = given.get("id")
        return ToolCall(
            self._text_at(given.get("name"), (*path, "name")),
            dict(arguments),
            None if call_id is None else self._text_at(call_id, (*path, "id")),
        )

    def _failure(self, data: Any, path: KeyPath) -> Failure | None:
        if data is None:
            return None
        if isinstance(data, str):
            data = {"kind": data}
        given = self._map(data, path, _ERROR)
        kind = given.get("kind", FAILURES[-1])
        if kind not in FAILURES:
            raise self._error((*path, "kind"), kind, f"expected one of {', '.join(FAILURES)}")
        return Failure(kind, self._text_at(given.get("message", "the script fails here"), (*path, "message")))

    # -- values

    def _map(self, value: Any, path: KeyPath, names: Sequence[str] | None) -> Mapping[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self._error(path, value, "expected a map of names" if names is None else f"expected {_listed(names)}")
        for name in value:
            if names is not None and name not in names:
                raise self._error((*path, name), value[name], f"unknown field; expected {_listed(names)}")
        return value

    def _list(self, value: Any, path: KeyPath) -> list[Any]:
        if not isinstance(value, list):
            raise self._error(path, value, "expected a list")
        return value

    def _text_at(self, value: Any, path: KeyPath) -> str:
        if not isinstance(value, str):
            raise self._error(path, value, "expected text; quote it")
        return value

    def _pattern(self, value: Any, path: KeyPath) -> re.Pattern[str]:
        try:
            return re.compile(self._text_at(value, path))
        except re.error as error:
            raise self._error(path, value, f"expected a regular expression: {error}") from None

    def _number(self, value: Any, path: KeyPath, least: float, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self._error(path, value, f"expected a number from {least:g} to {most:g}")
        return float(value)

    def _integer(self, value: Any, path: KeyPath) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 16 <= value <= 1 << 24:
            raise self._error(path, value, f"expected an integer from 16 to {1 << 24}")
        return value

    def _seconds(self, value: Any, path: KeyPath) -> float:
        return self._number(value, path, 0.0, MAX_DELAY_S)

    # -- places

    def _error(self, path: KeyPath, value: Any, allowed: str) -> ConfigError:
        shown = repr(value)
        shown = shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + "..."
        return ConfigError("script", self._place(path), f"{shown}: {allowed}")

    def _place(self, path: KeyPath) -> str:
        """The file, the line and the path of a value."""
        named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
        line = self._line(path)
        return f"{self._name}{f':{line}' if line else ''}{f': {named}' if named else ''}"

    def _line(self, path: KeyPath) -> int | None:
        """The line of a value, or of the nearest one around it; None if the file's nodes are not known."""
        if not self._is_composed:
            self._is_composed = True
            try:
                self._nodes = yaml.compose(self._text, _LOADER)
            except yaml.YAMLError:  # JSON that is no YAML, with tabs
                self._nodes = None
        node = self._nodes
        if node is None:
            return None
        line = node.start_mark.line + 1
        for part in path:
            found: tuple[yaml.Node, yaml.Node] | None = None
            if isinstance(node, yaml.MappingNode):
                found = next((each for each in node.value if each[0].value == part), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                found = node.value[part], node.value[part]
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        return line


def _listed(names: Sequence[str]) -> str:
    return f"a map with {', '.join(names)}"
