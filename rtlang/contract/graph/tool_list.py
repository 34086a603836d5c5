"""The tools of a conversation as JSON text, in the form of the OpenAI API that chat templates take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rtlang_grammars import GrammarError
from rtlang_grammars.formats.tools import Tool, read_tools

MAX_TOOLS_CHARS = 1_000_000


def tools_to_text(tools: Iterable[Tool | Mapping[str, Any]]) -> str:
    """Tools as JSON text, a list of maps with `type` and `function`. Maps are taken as they are.

    Raises:
        ValueError: a tool is malformed, a name occurs twice, or the text is too long; says why.
    """
    listed = list(tools)
    try:
        read_tools(listed)
        text = json.dumps(
            [each.to_plain() if isinstance(each, Tool) else _wrapped(each) for each in listed],
            ensure_ascii=False,
            allow_nan=False,
        )
    except GrammarError as error:
        raise ValueError(error.reason) from error
    except (TypeError, RecursionError) as error:
        raise ValueError(f"expected tools of plain JSON data: {error}") from error
    if len(text) > MAX_TOOLS_CHARS:
        raise ValueError(f"expected tools of at most {MAX_TOOLS_CHARS} characters as JSON, not {len(text)}")
    return text


def tools_from_text(text: object) -> list[dict[str, Any]]:
    """The inverse of `tools_to_text`.

    Raises:
        ValueError: the text is not a list of tools; says why.
    """
    if not isinstance(text, str) or len(text) > MAX_TOOLS_CHARS:
        raise ValueError(f"expected JSON text of at most {MAX_TOOLS_CHARS} characters")
    try:
        tools = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON text: {error}") from None
    if not isinstance(tools, list):
        raise ValueError(f"expected a list of tools, not {type(tools).__name__}")
    try:
        read_tools(tools)
    except GrammarError as error:
        raise ValueError(error.reason) from None
    return tools


def _wrapped(tool: Mapping[str, Any]) -> dict[str, Any]:
    return dict(tool) if "function" in tool else {"type": "function", "function": dict(tool)}
