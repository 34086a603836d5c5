"""Valid requests, each of which is much work for the event loop or the engine thread of a server. Run as a process of its own:

    python -m rtlang_bench.serve.thread_attacks URL NAME

prints "begun", and in the end how many graphs there were and why one was refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import rtlang
from rtlang.client.remote_runtime import RemoteRuntime
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Apply, Const, Generate, Node, RequestGraph, Text
from rtlang.contract.runs.run_options import RunOptions
from rtlang_bench.serve.streams import Recorder, generation

_LONG = 120.0


def extensions(remote: RemoteRuntime) -> list[Recorder]:
    """Two thousand extensions of a graph of six thousand nodes, half of them empty."""
    recorder = Recorder()
    run = remote.submit(RequestGraph(_chain(6_000)), recorder, RunOptions(is_open=True))
    for number in range(2000):
        run.extend([] if number % 2 else [Text(20_000 + number, 0, ("more",))])
    run.close()
    return [recorder]


def large_graphs(remote: RemoteRuntime) -> list[Recorder]:
    """Eight graphs of six thousand nodes that are all ready at once."""
    return [Recorder().submit(remote, RequestGraph(_chain(6_000))) for _ in range(8)]


def _chain(count: int) -> tuple[Node, ...]:
    """Texts behind one text, and values."""
    nodes: list[Node] = [Text(0, None, ("The story. ",))]
    for number in range(1, count):
        is_text = number % 2 == 0
        nodes.append(Text(number, 0, (f"Part {number}.",)) if is_text else Apply(number, "parse_int", (Const("1"),)))
    return tuple(nodes)


def long_texts(remote: RemoteRuntime) -> list[Recorder]:
    """Sixteen texts of 900,000 characters, most of which are too long for the context."""
    graph = RequestGraph((Text(0, None, ("The red fox sleeps. " * 45_000,)), Generate(1, 0, "out", SamplingParams(8))))
    return [Recorder().submit(remote, graph) for _ in range(16)]


def large_results(remote: RemoteRuntime) -> list[Recorder]:
    """Two results of 200,000 log-probabilities, and requests of 100 bytes for fifty times as many."""
    params: dict[str, Any] = {"ignore_eos": True, "temperature": 1.0, "logprobs": 100}
    recorders = [
        Recorder().submit(remote, generation(f"Row {number}: ", n=8, max_tokens=248, **params)) for number in range(2)
    ]
    recorders += [Recorder().submit(remote, generation("Row: ", n=128, max_tokens=900, **params)) for _ in range(20)]
    return recorders


def stop_patterns(remote: RemoteRuntime) -> list[Recorder]:
    """Patterns on which backtracking takes exponential time, and classes that take long to compile."""
    sources = ["(a|a)*b$", "(x+x+)+y", "([a-z ]+)*Q$", "(.*.*.*)*~$", "(?i)" + "[\\x00-\\U0010ffff]{3}Q" * 10]
    return [
        Recorder().submit(remote, generation("aaaa xxxx " * 8, stop_regex=[each] * 8, max_tokens=200))
        for each in sources * 4
    ]


def slow_constraints(remote: RemoteRuntime) -> list[Recorder]:
    """Six tiny patterns that take seconds to compile."""
    sources = [f"(x|[ab]*a[ab]{{{150 + number}}})*" for number in range(6)]
    return [
        Recorder().submit(remote, generation("X: ", constraint=Constraint(ConstraintKind.REGEX, each), max_tokens=8))
        for each in sources
    ]


ATTACKS: dict[str, Callable[[RemoteRuntime], list[Recorder]]] = {
    each.__name__: each
    for each in (extensions, large_graphs, long_texts, large_results, stop_patterns, slow_constraints)
}


def main(url: str, name: str) -> None:
    """Carry out one attack."""
    with rtlang.connect(url) as remote:
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        recorders = ATTACKS[name](remote)
        for each in recorders:
            each.wait(_LONG)
        refused = [each.error for each in recorders if each.error is not None]
        sys.stdout.write(f"{len(recorders)} graphs, {len(refused)} refused{f': {refused[0]}' if refused else ''}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
