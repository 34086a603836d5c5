"""Random programs in the vocabulary of `rtlang.compat.sglang`, as lists of statements, and how a state executes them."""

from __future__ import annotations

import random
from typing import Any

import rtlang.compat.sglang as sgl

NAMES = ["a", "b", "c"]
ROLES = ["system", "user", "assistant"]
CHOICES = ["red", "blue", "dark green"]


def statements(random_: random.Random, depth: int, *, in_role: bool = False) -> list[tuple[Any, ...]]:
    """A random program: tuples of a kind of statement and its arguments, some of which are programs."""
    made: list[tuple[Any, ...]] = []
    for _ in range(random_.randint(1, 5)):
        kinds = ["text", "gen", "number", "select", "read", "set", "scope"]
        if not in_role:
            kinds.append("role")
        if depth > 0:
            kinds += ["fork", "copy"]
        kind = random_.choice(kinds)
        name = random_.choice([*NAMES, None])
        match kind:
            case "text":
                made.append(("text", random_.choice(["Hello. ", "Ünï ", "\n", "x"])))
            case "gen" | "number" | "select":
                made.append((kind, name, random_.random() < 0.3))
            case "read":
                made.append(("read", random_.choice(NAMES)))
            case "set":
                made.append(("set", random_.choice(NAMES), random_.randint(0, 9)))
            case "scope":
                made.append(("scope", random_.choice(NAMES), statements(random_, 0, in_role=True)))
            case "role":
                role = random_.choice(ROLES)
                made.append(("role", role, random_.choice("wbe"), statements(random_, 0, in_role=True)))
            case "fork":
                size = random_.randint(1, 3)
                bodies = [statements(random_, depth - 1, in_role=in_role) for _ in range(size)]
                made.append(("fork", bodies, random_.choice(["gather_variable", "concate_and_append", None])))
            case "copy":
                made.append(("copy", statements(random_, depth - 1, in_role=in_role)))
    return made


def execute(s: Any, program: list[tuple[Any, ...]]) -> None:
    """Execute a program on a state."""
    for statement in program:
        match statement:
            case "text", text:
                s += text
            case "gen", name, is_wrapped:
                s += "(" + sgl.gen(name) + ")" if is_wrapped else sgl.gen(name)
            case "number", name, is_wrapped:
                s += "(" + sgl.gen_int(name) + ")" if is_wrapped else sgl.gen_int(name)
            case "select", name, is_wrapped:
                s += "(" + sgl.select(name, CHOICES) + ")" if is_wrapped else sgl.select(name, CHOICES)
            case "read", name:
                s += f"[{s[name]}]" if name in s else "[]"
            case "set", name, value:
                s[name] = value
            case "scope", name, inner:
                with s.var_scope(name):
                    execute(s, inner)
            case "role", role, "w", inner:
                with getattr(s, role)():
                    execute(s, inner)
            case "role", role, _, inner:
                s += getattr(sgl, f"{role}_begin")()
                execute(s, inner)
                s += getattr(sgl, f"{role}_end")()
            case "fork", bodies, mode:
                forks = s.fork(len(bodies))
                for fork, body in zip(forks, bodies, strict=True):
                    execute(fork, body)
                if mode is not None:
                    forks.join(mode)
            case "copy", body:
                with s.copy() as aside:
                    execute(aside, body)
