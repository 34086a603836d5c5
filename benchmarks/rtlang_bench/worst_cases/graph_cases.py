"""Graphs whose functions and nodes are much work: large values, many references to one value, deep nesting, many nodes.

Graphs are made in their plain form, as a client sends them, so that invalid ones reach the server too. Values are small on the wire where
they can be: doubled by `add`, multiplied by `replace`, or referred to many times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rtlang.contract.request_graph import MAX_NODES, MAX_SELECT_CHOICES
from rtlang_bench.worst_cases.draws import (
    MAX_DIGITS,
    MAX_VALUE,
    Draws,
    hostile_grammar,
    hostile_pattern,
    hostile_schema,
    nested,
    tools,
)
from rtlang_grammars.formats.catalogue import FORMATS

Plain = dict[str, Any]
WIRE_CHARS = 1_300_000
"""Characters of the values that are written into one graph; a larger message is refused unread."""

_TOKENS = 600  # generated ones of one graph at most, as the cases are not about the model
_OPERANDS = 4_096
_INLINE_CHARS = 64  # of a value that is written wherever it is used

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "parse_json": ("json",),
    "parse_int": ("digits",),
    "parse_float": ("digits",),
    "parse_bool": ("text",),
    "parse_tools": ("tool_text", "tool_format", "tools"),
    "item": ("any", "key"),
    "field": ("any", "text", "any"),
    "present": ("any",),
    "json_or_text": ("any",),
    "slice": ("any", "int", "int", "int"),
    "strip": ("text",),
    "lstrip": ("text", "text"),
    "rstrip": ("text", "text"),
    "removeprefix": ("text", "text"),
    "removesuffix": ("text", "text"),
    "lower": ("text",),
    "upper": ("text",),
    "title": ("text",),
    "capitalize": ("text",),
    "replace": ("text", "short", "text"),
    "split": ("text", "short"),
    "splitlines": ("text",),
    "startswith": ("text", "any"),
    "endswith": ("text", "any"),
    "join": ("short", "any"),
    "format": ("template", "any", "any"),
    "len": ("any",),
    "str": ("any",),
    "int": ("digits",),
    "float": ("digits",),
    "bool": ("any",),
    "add": ("any", "same"),
    "sub": ("int", "int"),
    "mul": ("int", "int"),
    "truediv": ("int", "int"),
    "floordiv": ("int", "int"),
    "mod": ("int", "int"),
    "neg": ("int",),
    "eq": ("any", "same"),
    "ne": ("any", "same"),
    "lt": ("any", "same"),
    "le": ("any", "same"),
    "gt": ("any", "same"),
    "ge": ("any", "same"),
    "contains": ("any", "short"),
    "not": ("any",),
    "and": ("any", "any"),
    "or": ("any", "any"),
    "list": ("any", "many"),
    "min": ("any", "many"),
    "max": ("any", "many"),
    "sum": ("int", "many"),
}
"""For each pure function, the kinds of its arguments; "same" repeats the one before, "many" does so up to the limit of operands."""


@dataclass(slots=True)
class GraphDraft:
    """Nodes of a graph in plain form, with what is known of their cost.

    Attributes:
        nodes: so far, with ascending ids.
        inputs: texts of the graph's inputs by name.
        num_chars: characters of the values in the nodes and inputs.
    """

    draws: Draws
    nodes: list[Plain] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    num_chars: int = 0
    next_id: int = 0

    def add(self, kind: str, **fields: Any) -> int:
        """Add a node; its id."""
        node_id = self.next_id
        self.next_id += 1
        self.nodes.append({"id": node_id, "kind": kind} | fields)
        return node_id

    def reserve(self, count: int) -> None:
        """Leave out ids."""
        self.next_id += count

    def constant(self, value: Any, size: int) -> Plain:
        """An operand of a value written into the graph; a short text where there is no room."""
        if self.num_chars + size > WIRE_CHARS:
            value, size = "x", 1
        self.num_chars += size
        if isinstance(value, str) and self.draws.chance(0.2):
            name = f"i{len(self.inputs)}"
            self.inputs[name] = value
            return {"arg": name}
        if size <= _INLINE_CHARS:
            return {"value": value}
        return self._apply("present", {"value": value})  # it may be repeated

    def large(self, size: int) -> Plain:
        """An operand of a value of about so many characters or items, computed from little or sent."""
        match self.draws.rng.randrange(6):
            case 0:  # a text doubled
                found, length = self._apply("str", {"value": "ab"}), 2
                while length * 2 <= size:
                    found, length = self._apply("add", found, found), length * 2
                return found
            case 1:  # every character replaced by many
                root = max(1, int(size**0.5))
                text = self.constant("a" * root, root)
                return self._apply("replace", text, {"value": "a"}, self.constant("b" * root, root))
            case 2:  # lists of one list
                found, count = self._apply("list", {"value": 1}), 1
                while count * 2 <= size:
                    found, count = self._apply("list", found, found), count * 2
                return found
            case 3:  # a list doubled
                found, count = self._apply("list", {"value": ""}), 1
                while count * 2 <= size:
                    found, count = self._apply("add", found, found), count * 2
                return found
            case 4:
                return self._apply("split", self.constant("a " * (size // 2), size))
            case _:
                return self.constant(self.draws.plain(size), size)

    def _apply(self, function: str, *args: Plain) -> Plain:
        return {"ref": self.add("apply", function=function, args=list(args))}

    def argument(self, kind: str, before: Plain | None) -> Plain:
        """An operand for an argument of this kind; one in eight is of any kind."""
        draws, size = self.draws, self.draws.size(MAX_VALUE)
        if draws.chance(0.12):
            kind = "any"
        match kind:
            case "json":
                return self.constant(draws.json_text(size), size)
            case "digits":
                length = draws.size(5_000)
                return self.constant(draws.digits(length), length)
            case "text" | "template":
                if draws.chance(0.3):
                    return self.large(size)
                return self.constant(draws.text(size), size)
            case "short":
                return self.constant(draws.text(draws.size(30)), 30)
            case "tool_text":
                length = draws.size(200_000)
                return self.constant(draws.tool_text(length), length)
            case "tool_format":
                return {"value": draws.pick(*FORMATS)}
            case "tools":
                return {"value": '[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]'}
            case "key":
                return {"value": draws.pick(0, -1, "k0", "a", size)}
            case "int":
                digits = min(draws.size(4_000), MAX_DIGITS)
                return {"value": draws.pick(size, -size, 10**digits, 10**digits - 1, 0, 1.5, True, None)}
            case "same" if before is not None:
                return before
            case _:
                return self.large(size)

    def graph(self) -> Plain:
        """The graph in plain form."""
        return {"nodes": self.nodes, "inputs": list(self.inputs)}


def function_graph(draws: Draws, function: str) -> GraphDraft:
    """A graph of calls of one pure function on large values, up to thousands of times, some of their values asked for."""
    draft = GraphDraft(draws)
    args: list[Plain] = []
    for kind in ARGUMENTS[function]:
        if kind == "many":
            args.extend([args[-1]] * draws.size(_OPERANDS))
        elif len(args) == 0 or draws.chance(0.9) or kind in ("tool_format", "tools"):
            args.append(draft.argument(kind, args[-1] if args else None))
    if function == "format" and draws.chance(0.5):
        args[0] = draft.constant("{1}" * draws.size(2_000) if draws.chance(0.3) else "{0}" * draws.size(2_000), 8_000)
    count = draws.size(MAX_NODES - draft.next_id) if draws.chance(0.25) and len(args) < 10 else draws.size(12)
    count = min(count, max(1, 300_000 // (1 + len(args))))
    names = draws.pick(0, 0, 1, 1, count)
    is_chain = draws.chance(0.3)
    for number in range(count):
        name = {"name": f"v{number}"} if number < names else {}
        node_id = draft.add("apply", function=function, args=list(args), **name)
        if is_chain:
            args[draws.rng.randrange(len(args))] = {"ref": node_id}
    return draft


# Node kinds


def _text(draws: Draws, draft: GraphDraft) -> None:
    whole = draft.large(draws.size(MAX_VALUE))
    parts: list[Any] = ["short" if "value" in whole else whole] * draws.size(_OPERANDS)
    if draws.chance(0.3):
        parts = [draws.text(draws.size(1_000_000))]
    elif draws.chance(0.2):
        parts = [{"tokens": [draws.rng.randrange(300)] * draws.size(400_000)}]
    last = draft.add("text", parent=None, parts=parts)
    for _ in range(draws.size(3_000) if draws.chance(0.4) else 1):
        node = draft.add("text", parent=last, parts=["more "] if "value" in whole else ["more ", whole])
        last = node if draws.chance(0.9) else last
    draft.add("generate", parent=last, name="out", params={"max_tokens": 2})


def _roles(draws: Draws, draft: GraphDraft) -> None:
    first: Plain = {"role": draws.pick("system", "user", "tool", "assistant")}
    if draws.chance(0.4):
        first["tools"] = tools(draws, draws.size(40), draws.size(20))
    if draws.chance(0.3):
        first["template_options"] = {"enable_thinking": True, "x": draws.plain(draws.size(10_000))}
    parts: list[Any] = [first, draws.text(draws.size(50_000)), {"role": None}]
    for number in range(draws.size(2_000)):
        parts += [{"role": ("user", "assistant")[number % 2]}, f"message {number}", {"role": None}]
    draft.add("text", parent=None, parts=parts)
    draft.add("generate", parent=0, name="out", params={"max_tokens": 2})


def _params(draws: Draws) -> Plain:
    params: Plain = {"max_tokens": 2}
    if draws.chance(0.3):
        params |= {"n": min(draws.size(128), 160), "temperature": 1.0}
    if draws.chance(0.3):
        params |= {"logprobs": draws.size(100), "prompt_logprobs": draws.size(100)}
    if draws.chance(0.2):
        params["stop"] = [draws.text(draws.size(500)) or "x" for _ in range(draws.size(32))]
    if draws.chance(0.2):
        params["stop_regex"] = [draws.pick("(a|a)*b$", "(x+x+)+y", "([a-z ]+)*Q$", "a{1,400}b" * 9)] * draws.size(8)
    if draws.chance(0.2):
        params["logit_bias"] = [[number, 5.0] for number in range(draws.size(1024))]
    params["max_tokens"] = max(1, min(draws.size(100), _TOKENS // int(params.get("n", 1))))
    return params


def constraint(draws: Draws) -> Plain:
    """A constraint that is much work."""
    kind = draws.rng.randrange(5)
    if kind == 0:
        return {"kind": "regex", "source": hostile_pattern(draws)}
    if kind == 1:
        return {"kind": "lark", "source": hostile_grammar(draws)}
    if kind == 2:
        choices = [f"{n:05d}" * draws.size(20) for n in range(draws.size(2_000))]
        return {"kind": "choice", "source": '["' + '","'.join(choices) + '"]'}
    if kind == 3:
        return {"kind": "json_schema", "source": draws.json_text(draws.size(100_000))}
    return {"kind": "json_schema", "source": json.dumps(hostile_schema(draws))}


def _generate(draws: Draws, draft: GraphDraft) -> None:
    draft.add("text", parent=None, parts=[draws.text(draws.size(4_000))])
    last, params = 0, _params(draws)
    for number in range(draws.size(200) if draws.chance(0.3) else 1):
        params["max_tokens"] = 1 if number else params["max_tokens"]
        held = {"constraint": constraint(draws)} if draws.chance(0.4) and number < 4 else {}
        node_id = draft.add("generate", parent=last, name=f"g{number}", params=dict(params), **held)
        last = 0 if params.get("n", 1) > 1 or draws.chance(0.5) else node_id


def _select(draws: Draws, draft: GraphDraft) -> None:
    draft.add("text", parent=None, parts=[draws.text(draws.size(1_000))])
    count = draws.size(MAX_SELECT_CHOICES) if draws.chance(0.3) else draws.size(40)
    length = draws.size(max(1, 20_000 // count))
    method = draws.pick("token_length_normalized", "greedy_token_selection", "unconditional_likelihood_normalized")
    draft.add("select", parent=0, name="s", choices=[f"{n}{'a' * length}" for n in range(count)], method=method)


def _switch(draws: Draws, draft: GraphDraft) -> None:
    size = draws.size(100_000)
    on = draft.large(size)
    depth, parent = draws.size(32) if draws.chance(0.4) else 1, None
    count = draws.size(256)
    _switch_within(draws, draft, on, depth, parent, count, draws.plain(min(size, 1_500_000 // max(1, count))))


def _switch_within(
    draws: Draws, draft: GraphDraft, on: Plain, depth: int, parent: int | None, count: int, key: Any
) -> None:
    node: Plain = {"id": draft.next_id, "kind": "switch", "parent": parent, "name": f"w{depth}", "on": on}
    draft.next_id += 1
    inner = GraphDraft(draws, next_id=draft.next_id)
    if depth > 1:
        _switch_within(draws, inner, on, depth - 1, node["id"] if parent is not None else None, 1, key)
    else:
        inner.add("apply", function="len", args=[on])
    cases: list[Any] = [[key, {"nodes": [], "end": None}] for _ in range(count)]
    node["cases"] = cases
    node["default"] = {"nodes": inner.nodes, "end": None, "value": {"ref": inner.nodes[0]["id"]}}
    draft.next_id = inner.next_id
    draft.nodes.append(node)


def _repeat(draws: Draws, draft: GraphDraft) -> None:
    value = draft.large(draws.size(MAX_VALUE))
    node_id = draft.next_id
    draft.next_id += 1
    body = GraphDraft(draws, next_id=draft.next_id)
    function = draws.pick("list", "len", "str", "add", "split", "eq", "json_or_text", "upper")
    for number in range(draws.size(200)):
        args = [value] if function not in ("add", "eq") else [value, value]
        body.add("apply", function=function, args=args, **({"name": f"r{number}"} if draws.chance(0.2) else {}))
    value_of = {"ref": body.nodes[-1]["id"]}
    done = body.add("apply", function="eq", args=[{"value": 1}, {"value": draws.pick(1, 2, 2, 2)}])
    at_most = draws.size(10_000)
    draft.nodes.append(
        {
            "id": node_id,
            "kind": "repeat",
            "parent": None,
            "name": "loop",
            "body": {"nodes": body.nodes, "end": None, "value": value_of},
            "until": {"ref": done},
            "at_most": at_most,
            "stride": body.next_id - node_id - 1,
        }
    )
    draft.next_id = node_id + at_most * (body.next_id - node_id - 1) + 1


def _decide(draws: Draws, draft: GraphDraft) -> None:
    values = [draft.large(draws.size(MAX_VALUE)) for _ in range(draws.size(4))]
    of = [values[number % len(values)] for number in range(draws.size(_OPERANDS))]
    how = draws.pick("first", "vote", "vote", "best")
    extra: Plain = {"by": [{"value": number} for number in range(len(of))]} if how == "best" else {}
    if how == "vote":
        extra["need"] = draws.pick(len(of), len(of) // 2 + 1, 1)
    for number in range(draws.size(50)):
        draft.add("decide", how=how, of=of, name=f"d{number}", **extra)


def _call(draws: Draws, draft: GraphDraft) -> None:
    value = draft.large(draws.size(MAX_VALUE))
    args = [value] * draws.size(_OPERANDS)
    count = draws.size(200) if len(args) < 40 else draws.size(4)
    for number in range(count):
        called = draft.add("call", function="f", args=args, name=f"c{number}")
        if draws.chance(0.5):
            draft.add("apply", function="list", args=[{"ref": called}] * draws.size(50))


def _forks(draws: Draws, draft: GraphDraft) -> None:
    draft.add("text", parent=None, parts=[draws.text(draws.size(10_000))])
    if draws.chance(0.5):
        for number in range(draws.size(300)):
            branch = draft.add("text", parent=0, parts=[f"branch {number}"])
            draft.add("generate", parent=branch, name="g", params={"max_tokens": 1})
        return
    for number in range(draws.size(MAX_NODES)):
        draft.add("text", parent=draws.pick(0, number), parts=["x"])


def _map(draws: Draws, draft: GraphDraft) -> None:
    """A value computed for many items, joined, and used in a text: as a program's map does."""
    items = draft.large(draws.size(MAX_VALUE))
    results = []
    for number in range(draws.size(2_000)):
        item = draft.add("apply", function="item", args=[items, {"value": number % 3}])
        shown = draft.add("apply", function="str", args=[{"ref": item}])
        results.append({"ref": draft.add("apply", function="add", args=[{"ref": shown}, {"ref": shown}])})
    whole = draft.add("apply", function="list", args=results[:_OPERANDS])
    joined = draft.add(
        "apply", function="join", args=[{"value": draws.text(draws.size(100))}, {"ref": whole}], name="all"
    )
    draft.add("text", parent=None, parts=[{"ref": joined}] * draws.size(20))


NODES: dict[str, Callable[[Draws, GraphDraft], None]] = {
    "text": _text,
    "roles": _roles,
    "generate": _generate,
    "select": _select,
    "switch": _switch,
    "repeat": _repeat,
    "decide": _decide,
    "call": _call,
    "forks": _forks,
    "map": _map,
}
"""What makes a graph about one kind of node, or one shape of graphs."""


def node_graph(draws: Draws, kind: str) -> GraphDraft:
    """A graph about one kind of node."""
    draft = GraphDraft(draws)
    NODES[kind](draws, draft)
    return draft


def graph_body(draft: GraphDraft) -> Plain:
    """A graph with its inputs, as the body of a request."""
    return {"graph": draft.graph(), "inputs": draft.inputs}


def call_value(draws: Draws) -> Any:
    """The value with which a client answers host calls."""
    return draws.plain(draws.size(MAX_VALUE)) if draws.chance(0.5) else nested(draws.size(64), 1)
