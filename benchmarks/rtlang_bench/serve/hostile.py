"""Input that is meant to hurt a server: constraints, and clients that do not behave.

The constraints cover explosive patterns, nesting, large lists, recursion, references, and bounds that nothing satisfies. A server may
refuse each or answer it; it may not be slowed by it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import connect
from websockets.typing import Subprotocol

import rtlang
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang_bench.serve.streams import Recorder, generation

NUM_UNREAD = 32
UNREAD_PARAMS: dict[str, Any] = {"max_tokens": 600, "n": 2, "logprobs": 20, "ignore_eos": True}


def constraints() -> list[Constraint]:
    """About forty hostile constraints, all different."""
    return [
        *(Constraint(ConstraintKind.REGEX, source) for source in _patterns()),
        *(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)) for schema in _schemas()),
        *(Constraint(ConstraintKind.LARK, source) for source in _grammars()),
        Constraint(ConstraintKind.JSON_SCHEMA, '{"a":' * 500 + "1" + "}" * 500),
        Constraint(ConstraintKind.CHOICE, json.dumps([f"{n:07d}" * 8 for n in range(8000)])),
        Constraint(ConstraintKind.GBNF, "root ::= root root | root"),
    ]


def _patterns() -> Iterator[str]:
    yield "(a|a)*" * 12 + "b"
    yield "(a*)*b"
    yield "(x+x+)+y"
    yield "((a{0,60}){0,60}){0,60}"
    yield "[ab]*a[ab]{200}"
    yield "(.*a){30}"
    yield "(?:a?){800}a{800}"
    yield "(" * 400 + "a" + ")" * 400
    yield "|".join(f"{n}{'x' * 20}" for n in range(5000))
    yield r"(\p{L}{1,50}\s){1,50}"
    yield "[a-z]{100000}"
    yield "(a|b|ab)*(?=c)"
    yield "(?<!a)b+" * 20


def _schemas() -> Iterator[Any]:
    deep: Any = {"type": "integer"}
    for _ in range(60):
        deep = {"type": "array", "items": deep, "minItems": 3}
    yield deep
    yield {"enum": [f"value {n}" for n in range(20_000)]}
    yield {"type": "string", "pattern": "(a*)*b", "minLength": 10_000}
    yield {"type": "string", "minLength": 5_000, "maxLength": 5_001, "pattern": "^(ab|cd)+$"}
    yield {"type": "array", "items": {"type": "string"}, "minItems": 10**9}
    yield {"type": "array", "minItems": -1}
    yield {"type": "integer", "multipleOf": 0}
    yield {"type": "integer", "minimum": 10**300, "maximum": 10**300 + 1}
    yield {"anyOf": []}
    yield {"allOf": [{"type": "string"}, {"type": "integer"}]}
    yield {"$ref": "http://127.0.0.1:1/schema.json"}
    yield {"$ref": "file:///etc/passwd"}
    yield {"$ref": "#"}
    yield {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    yield {"$defs": {"t": {"anyOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}]}}, "$ref": "#/$defs/t"}
    yield {"allOf": [{"anyOf": [{"const": f"{i}{j}"} for j in range(8)]} for i in range(30)]}
    yield {
        "allOf": [
            {"oneOf": [{"properties": {f"p{i}": {"const": j}}, "required": [f"p{i}"]} for j in range(6)]}
            for i in range(12)
        ]
    }
    yield {"type": "object", "patternProperties": {f"^{c}.*[a-f]{{20}}": {"type": "integer"} for c in "abcdefghij"}}
    yield {"type": "object", "properties": {f"p{n}": {"type": "string", "maxLength": 90} for n in range(1500)}}
    yield {"type": "array", "uniqueItems": True, "minItems": 400, "items": {"enum": [*range(400)]}}
    yield {"not": {"not": {"not": {"type": "string", "pattern": "(x+x+)+y"}}}}


def _grammars() -> Iterator[str]:
    yield 'start: start start start | "a" | '
    yield 'start: "a" start "b" start | "a" start | "b" start | '
    yield "\n".join(f"r{n}: r{n + 1} r{n + 1}" for n in range(40)) + '\nr40: "x"\nstart: r0'
    yield "start: /(a|a)*(b|b)*(c|c)*[ab]{100}/+"
    yield "start: " + "(" * 300 + '"a"' + ")" * 300
    yield "\n".join(
        ["start: " + " | ".join(f"t{n}" for n in range(900))] + [f't{n}: "{n}" start | "x"' for n in range(900)]
    )


def stop_patterns() -> list[str]:
    """Patterns for `stop_regex` on which backtracking takes exponential time."""
    return ["(a|a)*b$", "(x+x+)+y", "([a-z ]+)*Q$", "(.*.*.*)*~$"]


@contextmanager
def never_reading(url: str) -> Iterator[None]:
    """Keep `NUM_UNREAD` streams open on a connection whose output nobody reads."""
    path, name = url + "/v1/stream", Subprotocol("rtlang.v1.json")
    with connect(path, subprotocols=[name], max_queue=1, compression=None, close_timeout=0.1) as socket:
        socket.send(json.dumps({"t": "hello", "v": 1}))
        for stream in range(1, NUM_UNREAD + 1):
            body = {"prompt": f"Nobody reads {stream}: ", "params": UNREAD_PARAMS}
            socket.send(json.dumps({"t": "open", "s": stream, "kind": "generate", "body": body}))
        yield


def open_detached(url: str, num_streams: int) -> None:
    """Open resumable streams on as many connections as they need, print "open", and wait to be killed."""
    remotes, recorders = [], []
    for start in range(0, num_streams, 200):
        remotes.append(rtlang.connect(url, resume_s=60.0))
        for number in range(start, min(start + 200, num_streams)):
            graph = generation(f"Detached {number}: ", max_tokens=400, ignore_eos=True)
            recorders.append(Recorder().submit(remotes[-1], graph))
    sys.stdout.write(f"open {sum(each.error is None for each in recorders)}\n")
    sys.stdout.flush()
    time.sleep(600.0)


if __name__ == "__main__":
    open_detached(sys.argv[1], int(sys.argv[2]))
