"""Request graphs of a single generation: a prompt or chat messages, followed by one generate node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtlang.contract.errors import GraphError
from rtlang.contract.field_names import check_fields
from rtlang.contract.graph import Generate, Node, Part, RequestGraph, RoleEnd, RoleStart, Text, nodes_from_plain
from rtlang.contract.params import Constraint, SamplingParams

PROMPT_ID, GENERATE_ID = 0, 1
DEFAULT_NAME = "text"


def generation_graph(
    prompt: str | Sequence[Mapping[str, str]],
    params: SamplingParams,
    constraint: Constraint | None = None,
    name: str = DEFAULT_NAME,
) -> RequestGraph:
    """The graph that continues `prompt`, which is text or a list of chat messages with role and content.

    Raises:
        GraphError: there is no message, or one lacks role or content.
    """
    if isinstance(prompt, str):
        parts: tuple[Part, ...] = (prompt,)
    else:
        parts = _chat_parts(prompt)
    return RequestGraph(
        (Text(PROMPT_ID, None, parts), Generate(GENERATE_ID, PROMPT_ID, name, params, constraint)),
    )


def generation_graph_from_plain(body: Mapping[str, Any]) -> RequestGraph:
    """Build the graph from the body of an `open` message: prompt or messages, params, constraint and name, in plain form.

    Raises:
        GraphError: a field is missing or invalid; names the field.
    """
    prompt, messages = body.get("prompt"), body.get("messages")
    if (prompt is None) == (messages is None):
        raise GraphError(None, "prompt", "exactly one of prompt and messages is required")
    if prompt is not None and not isinstance(prompt, str):
        raise GraphError(None, "prompt", f"expected a string, not {type(prompt).__name__}")
    if messages is not None and not (isinstance(messages, list) and all(isinstance(item, dict) for item in messages)):
        raise GraphError(None, "messages", "expected a list of maps with role and content")
    name = body.get("name", DEFAULT_NAME)
    plain = {
        "id": GENERATE_ID,
        "parent": None,
        "kind": "generate",
        "name": name,
        "params": body.get("params", {}),
        "constraint": body.get("constraint"),
    }
    node: Node = nodes_from_plain([plain])[0]
    assert isinstance(node, Generate)
    return generation_graph(prompt if prompt is not None else messages or [], node.params, node.constraint, name)


def _chat_parts(messages: Sequence[Mapping[str, str]]) -> tuple[Part, ...]:
    if not messages:
        raise GraphError(None, "messages", "expected at least one message")
    parts: list[Part] = []
    for message in messages:
        check_fields(message, ("role", "content"), "a message")
        for field in ("role", "content"):
            if not isinstance(message.get(field), str):
                raise GraphError(None, f"messages.{field}", "expected a string in every message")
        parts += [RoleStart(message["role"]), message["content"], RoleEnd()]
    return (*parts, RoleStart("assistant"))
