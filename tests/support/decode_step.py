"""Counts the modules and calls of one decode step of one row.

    python -m tests.support.decode_step           # rooms, changes, calls of a free and of a constrained step
    python -m tests.support.decode_step --calls   # every function, with its number of calls

One turn of the engine thread is traced, from its check for work to the listener of the new token, in a warmed-up runtime of `rtlang:tiny`
with drafts off. The forward pass is included; the work of other threads (a part of the masks) is not.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any, NamedTuple

import rtlang as rt
from rtlang.runtime.process.loop import EngineLoop
from rtlang_grammars.api.precompile import precompile

NUM_TOKENS = 64
_OURS = ("rtlang", "rtlang_grammars", "rtlang_kernels")
_SCHEMA = {"type": "object", "properties": {"text": {"type": "string", "minLength": 30}}, "required": ["text"]}


class Call(NamedTuple):
    """A call of one of our functions from a module of ours; the caller of the first call is empty."""

    module: str
    function: str
    caller: str


class TurnTracer:
    """A profile function (`sys.setprofile`) that keeps the calls of each turn of the engine thread with a step."""

    def __init__(self) -> None:
        self.turns: list[list[Call]] = []
        self._calls: list[Call] | None = None
        self._stack: list[str] = []

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        module: str = frame.f_globals.get("__name__", "")
        if module.split(".", 1)[0] not in _OURS:
            return
        is_turn = frame.f_code is EngineLoop._run_once.__code__
        if event == "call":
            if is_turn:
                self._calls, self._stack = [], [""]
            if self._calls is not None:
                self._calls.append(Call(module, frame.f_code.co_qualname, self._stack[-1]))
                self._stack.append(module)
        elif self._calls is not None:
            self._stack.pop()
            if is_turn:
                if any(call.function == EngineLoop._step.__qualname__ for call in self._calls):
                    self.turns.append(self._calls)
                self._calls = None


def trace_decode_step(constrained: bool) -> list[Call]:
    """The calls of one decode step: of many, the one with the median number of calls.

    Args:
        constrained: the text follows a JSON schema.
    """
    precompile()  # else the sources of native code are interpreted for a while, and their calls counted
    tracer = TurnTracer()
    form: dict[str, Any] = {"schema": _SCHEMA} if constrained else {"ignore_eos": True}

    @rt.program
    def write(s: rt.State) -> None:
        s += "Once upon a time" + rt.gen("text", max_tokens=NUM_TOKENS, **form)

    with rt.Runtime("rtlang:tiny", speculation="off", num_threads=1, dtype="float32") as runtime:
        write.run(runtime=runtime)
        loop = runtime._loop
        assert loop is not None
        loop.run(lambda: sys.setprofile(tracer.note))
        write.run(runtime=runtime)
        loop.run(lambda: sys.setprofile(None))
    return sorted(tracer.turns, key=len)[len(tracer.turns) // 2]


def decode_step_calls(constrained: bool) -> tuple[int, int, int]:
    """Rooms (modules), changes (calls into another module) and calls of one decode step."""
    calls = trace_decode_step(constrained)
    return len({call.module for call in calls}), sum(call.module != call.caller for call in calls), len(calls)


def main(args: list[str]) -> None:
    for constrained in (False, True):
        print("constrained" if constrained else "free", *decode_step_calls(constrained))
        if "--calls" in args:
            counts = Counter((call.module, call.function) for call in trace_decode_step(constrained))
            for (module, function), number in sorted(counts.items()):
                print(f"  {number:4} {module}.{function}")


if __name__ == "__main__":
    main(sys.argv[1:])
