"""The body of an `open` message that asks for a single generation: a prompt or chat messages instead of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtlang.contract.errors import GraphError
from rtlang.contract.request_graph import Generate, Node, RequestGraph, nodes_from_plain
from rtlang.contract.service.generation import DEFAULT_NAME, GENERATE_ID, generation_graph


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
