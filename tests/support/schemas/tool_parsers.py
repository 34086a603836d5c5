"""Small parsers of the tool-call formats, written from their descriptions with `json`, `ast` and `re`, for whole texts of one message.

They share nothing with the library, know no schemas, and read values without quotes as text. Each returns the content and the calls.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any

Parsed = tuple[str, list[tuple[str, Any]]]
_DECODER = json.JSONDecoder()
_NAMES = {"true": True, "false": False, "null": None}


def _value_at(text: str, at: int) -> tuple[Any, int]:
    at += len(text[at:]) - len(text[at:].lstrip())
    return _DECODER.raw_decode(text, at)


def _without_reasoning(text: str, begin: str, end: str) -> str:
    text = text.lstrip("\n")
    if text.startswith(begin):
        assert end in text, text
        return text.partition(end)[2]
    return text


def _objects(text: str, begin: str, end: str, keys: tuple[str, str]) -> Parsed:
    """Objects, each between two texts, at the end of the message."""
    content, found, rest = text.partition(begin)
    calls, at = [], len(content) + len(found)
    while found:
        value, at = _value_at(text, at)
        assert value.keys() == set(keys), value
        calls.append((value[keys[0]], value[keys[1]]))
        rest = text[at:].lstrip()
        assert rest.startswith(end), rest
        rest = rest[len(end) :]
        if not rest.strip():
            break
        assert rest.lstrip().startswith(begin), rest
        at = text.index(begin, len(text) - len(rest)) + len(begin)
    return content, calls


def _array(text: str, begin: str, end: str, keys: tuple[str, str], more: frozenset[str] = frozenset()) -> Parsed:
    content, found, rest = text.partition(begin)
    if not found:
        return content, []
    value, at = _value_at(rest, 0)
    assert rest[at:].strip() == end, rest[at:]
    assert isinstance(value, list)
    assert value
    assert all(set(keys) <= each.keys() <= {*keys, *more} for each in value), value
    return content, [(each[keys[0]], each[keys[1]]) for each in value]


def _hermes(text: str) -> Parsed:
    return _objects(
        _without_reasoning(text, "<think>", "</think>"), "<tool_call>", "</tool_call>", ("name", "arguments")
    )


def _qwen_coder(text: str) -> Parsed:
    text = _without_reasoning(text, "<think>", "</think>")
    content, found, rest = text.partition("<tool_call>")
    calls = []
    for block in re.split(r"</tool_call>\s*<tool_call>", found + rest) if found else ():
        inner = block.removeprefix("<tool_call>").removesuffix("</tool_call>").strip()
        whole = re.fullmatch(r"<function=([^>]+)>\n(.*)</function>", inner, re.DOTALL)
        assert whole, inner
        parameter = r"<parameter=([^>]+)>\n(.*?)\n</parameter>\n"
        assert re.fullmatch(f"(?:{parameter})*", whole[2], re.DOTALL), whole[2]
        calls.append((whole[1], dict(re.findall(parameter, whole[2], re.DOTALL))))
    return content, calls


def _llama_3(text: str) -> Parsed:
    begin = re.search(r'<\|python_tag\|>|\{"name": "', text)
    if begin is None:
        return text, []
    calls, at = [], begin.end() if begin[0].startswith("<") else begin.start()
    while True:
        value, at = _value_at(text, at)
        assert value.keys() == {"name", "parameters"}
        calls.append((value["name"], value["parameters"]))
        if not text[at:]:
            return text[: begin.start()], calls
        assert text[at:].startswith("; ")
        at += 2


def _llama_4(text: str) -> Parsed:
    for begin in re.finditer(r"(?:<\|python_start\|>)?\[\w+(?:\.\w+)*\(", text):
        code = text[begin.start() :]
        if code.startswith("<|python_start|>"):
            assert code.endswith("<|python_end|>")
            code = code.removeprefix("<|python_start|>").removesuffix("<|python_end|>")
        try:
            tree = ast.parse(code, mode="eval").body
        except SyntaxError:  # content that looks like a call
            continue
        assert isinstance(tree, ast.List)
        calls = []
        for call in tree.elts:
            assert isinstance(call, ast.Call)
            assert not call.args
            calls.append((ast.unparse(call.func), {str(k.arg): _python(k.value) for k in call.keywords}))
        return text[: begin.start()], calls
    return text, []


def _python(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _NAMES[node.id]
    if isinstance(node, ast.List):
        return [_python(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        return {ast.literal_eval(k): _python(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
    return ast.literal_eval(node)


def _mistral(text: str) -> Parsed:
    return _array(text, "[TOOL_CALLS]", "", ("name", "arguments"), frozenset({"id"}))


def _mistral_args(text: str) -> Parsed:
    text = _without_reasoning(text, "[THINK]", "[/THINK]")
    content, found, rest = text.partition("[TOOL_CALLS]")
    calls, at = [], 0
    while found:
        head = re.compile(r"([^\[]+)(?:\[CALL_ID\]([a-zA-Z0-9]{9}))?\[ARGS\]").match(rest, at)
        assert head, rest[at:]
        value, at = _value_at(rest, head.end())
        calls.append((head[1], value))
        if not rest[at:].strip():
            break
        assert rest.startswith("[TOOL_CALLS]", at), rest[at:]
        at += len("[TOOL_CALLS]")
    return content, calls


def _deepseek(begin: str, middle: str, end: str, between: str) -> Callable[[str], Parsed]:
    def parse(text: str) -> Parsed:
        text = _without_reasoning(text, "<think>", "</think>")
        content, found, rest = text.partition("<｜tool▁calls▁begin｜>")
        if not found:
            return content, []
        inner, closing, behind = rest.rpartition("<｜tool▁calls▁end｜>")
        assert (bool(closing), behind) == (True, "")
        calls, at = [], 0
        while True:
            assert inner.startswith("<｜tool▁call▁begin｜>" + begin, at), inner[at:]
            at += len("<｜tool▁call▁begin｜>" + begin)
            name_end = inner.index(middle, at)
            value, close = _value_at(inner, name_end + len(middle))
            calls.append((inner[at:name_end], value))
            assert inner.startswith(end + "<｜tool▁call▁end｜>", close), inner[close:]
            at = close + len(end + "<｜tool▁call▁end｜>")
            if at == len(inner):
                return content, calls
            assert inner.startswith(between, at)
            at += len(between)

    return parse


def _harmony(text: str) -> Parsed:
    content, calls = "", []
    messages = re.split(r"<\|end\|><\|start\|>assistant", text)
    for i, message in enumerate(messages):
        header, found, body = message.partition("<|message|>")
        assert found, message
        to = re.search(r"to=functions\.(\S+?)(?=<\||\s|$)", header)
        channel = re.search(r"<\|channel\|>(\w+)", header)
        assert channel, header
        if to:
            assert (channel[1], "json" in header, i) == ("commentary", True, len(messages) - 1)
            calls.append((to[1], json.loads(body.removesuffix("<|call|>"))))
        elif channel[1] != "analysis":
            content += body
    return content, calls


def _glm(text: str) -> Parsed:
    text = _without_reasoning(text, "<think>", "</think>")
    content, found, rest = text.partition("<tool_call>")
    calls = []
    for block in re.split(r"</tool_call>\s*<tool_call>", found + rest) if found else ():
        inner = block.removeprefix("<tool_call>").removesuffix("</tool_call>")
        name, _, pairs = inner.partition("\n")
        pair = r"<arg_key>(.*?)</arg_key>\n<arg_value>(.*?)</arg_value>\n"
        assert re.fullmatch(f"(?:{pair})*", pairs, re.DOTALL), pairs
        calls.append((name, dict(re.findall(pair, pairs, re.DOTALL))))
    return content, calls


def _kimi(text: str) -> Parsed:
    text = _without_reasoning(text, "<think>", "</think>")
    content, found, rest = text.partition("<|tool_calls_section_begin|>")
    if not found:
        return content, []
    calls, at = [], 0
    while not rest.startswith("<|tool_calls_section_end|>", at):
        head = re.compile(r"<\|tool_call_begin\|>functions\.([\w.\-]+):\d+<\|tool_call_argument_begin\|>").match(
            rest, at
        )
        assert head, rest[at:]
        value, at = _value_at(rest, head.end())
        calls.append((head[1], value))
        assert rest.startswith("<|tool_call_end|>", at)
        at += len("<|tool_call_end|>")
    assert rest[at:] == "<|tool_calls_section_end|>"
    return content, calls


def _command_r7b(text: str) -> Parsed:
    text = _without_reasoning(text, "<|START_THINKING|>", "<|END_THINKING|>").lstrip("\n")
    if text.startswith("<|START_RESPONSE|>"):
        assert text.endswith("<|END_RESPONSE|>")
        return text.removeprefix("<|START_RESPONSE|>").removesuffix("<|END_RESPONSE|>"), []
    keys = ("tool_name", "parameters")
    return _array(text, "<|START_ACTION|>", "<|END_ACTION|>", keys, frozenset({"tool_call_id"}))


def _granite(text: str) -> Parsed:
    text = _without_reasoning(text, "<think>", "</think>")
    text = re.sub(r"<tool_call>(?=\s*\[)", "<|tool_call|>", text, count=1)
    return _array(text, "<|tool_call|>", "", ("name", "arguments"))


def _json(text: str) -> Parsed:
    content, found, rest = text.partition('{"name": "')
    if not found:
        return content, []
    return content, [(each["name"], each["arguments"]) for each in _lines(found + rest)]


def _lines(text: str) -> list[dict[str, Any]]:
    values, at = [], 0
    while at < len(text):
        value, at = _value_at(text, at)
        values.append(value)
        assert text[at : at + 1] in ("", "\n")
        at += 1
    return values


PARSERS: dict[str, Callable[[str], Parsed]] = {
    "hermes": _hermes,
    "qwen-coder": _qwen_coder,
    "llama-3": _llama_3,
    "llama-4": _llama_4,
    "mistral": _mistral,
    "mistral-args": _mistral_args,
    "deepseek-v3": _deepseek("function<｜tool▁sep｜>", "\n```json\n", "\n```", "\n"),
    "deepseek-v3.1": _deepseek("", "<｜tool▁sep｜>", "", ""),
    "harmony": _harmony,
    "glm-4.5": _glm,
    "kimi-k2": _kimi,
    "phi-4": lambda text: _array(
        _without_reasoning(text, "<think>", "</think>"), "<|tool_call|>", "<|/tool_call|>", ("name", "arguments")
    ),
    "phi-4-mini": lambda text: _array(text, "functools", "", ("name", "arguments")),
    "granite-3": _granite,
    "command-r": lambda text: _array(
        text.replace("Action:```json", "Action: ```json", 1), "Action: ```json", "```", ("tool_name", "parameters")
    ),
    "command-r7b": _command_r7b,
    "command-a": lambda text: _command_r7b(text.replace("_TEXT|>", "_RESPONSE|>")),
    "json": _json,
}
