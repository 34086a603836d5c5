"""A runtime without a model: plays the events of graphs from a script, on a thread of its own.

It keeps the whole contract of `rtlang.contract.service.target`: graphs are validated, nodes run when what they need is there, failures
reach dependants as `DependencyError`, every accepted graph ends in exactly one final event. Tests steer it without time: `hold` keeps nodes
from running until `release`, `fail` makes a node fail, `expire` lets deadlines pass, `die` stops the engine.
"""

from __future__ import annotations

import hashlib
import json
import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rtlang.contract.errors import (
    AbortedError,
    ApplyError,
    DeadlineError,
    DependencyError,
    EngineDeadError,
    GraphError,
    RtlangError,
    rebuild,
)
from rtlang.contract.events import (
    CallRequested,
    Completion,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    TextDelta,
    Timing,
    TokenLogprob,
)
from rtlang.contract.graph.pure_functions import apply
from rtlang.contract.graph.value_text import text_of_plain
from rtlang.contract.params import ConstraintKind, FinishReason, Usage
from rtlang.contract.request_graph import (
    Apply,
    Arg,
    Const,
    Generate,
    Node,
    Operand,
    Ref,
    RequestGraph,
    RoleEnd,
    RoleStart,
    Select,
    Text,
    TokenIds,
    dependencies,
    name_of,
    parent_of,
)
from rtlang.contract.request_graph import Call as HostCall
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions
from rtlang.contract.service.target import Listener


@dataclass(frozen=True, slots=True)
class Call:
    """One text asked of the script. `prompt` is the sequence so far: roles are `<user>` ... `</user>`."""

    graph_id: int
    node: Generate | Select
    prompt: str
    choice: int = 0

    @property
    def name(self) -> str | None:
        return self.node.name


Script = Callable[[Call], "str | Completion | RtlangError"]


def answer(prompt: str, name: str | None, choice: int = 0) -> str:
    """The default text of a generation: a function of everything it may depend on."""
    digest = hashlib.sha256(f"{prompt}\0{name}\0{choice}".encode()).hexdigest()
    return f"<{digest[:6]}>"


def pick(prompt: str, name: str | None, choices: Sequence[str]) -> str:
    """The default choice of a select."""
    digest = hashlib.sha256(f"{prompt}\0{name}".encode()).digest()
    return choices[digest[0] % len(choices)]


def default_script(call: Call) -> str:
    """Hash texts; constrained choices are picked among those allowed."""
    match call.node:
        case Select():
            return pick(call.prompt, call.name, call.node.choices)
        case Generate():
            constraint = call.node.constraint
            if constraint is not None and constraint.kind is ConstraintKind.CHOICE:
                return pick(call.prompt, call.name, json.loads(constraint.source))
            return answer(call.prompt, call.name, call.choice)


def by_name(texts: Mapping[str, str | RtlangError | Sequence[str]]) -> Script:
    """A script that looks texts up by node name (a sequence: by choice) and falls back to `default_script`."""

    def script(call: Call) -> str | RtlangError:
        if call.name is not None and call.name in texts:
            found = texts[call.name]
            return found if isinstance(found, (str, RtlangError)) else found[call.choice]
        return default_script(call)

    return script


class FakeRun:
    """A submitted graph. Its state belongs to the target's thread; tests read it after the final event."""

    def __init__(
        self,
        target: FakeTarget,
        graph_id: int,
        graph: RequestGraph,
        listener: Listener,
        inputs: Mapping[str, str],
        is_open: bool,
        priority: int,
        deadline_s: float | None,
    ) -> None:
        self._target, self._graph_id, self._listener = target, graph_id, listener
        self.graph, self.inputs, self.is_open = graph, dict(inputs), is_open
        self.priority, self.deadline_s = priority, deadline_s
        self.nodes: dict[int, Node] = {node.node_id: node for node in graph.nodes}
        self.extensions: list[tuple[Node, ...]] = []
        self.was_cancelled = False
        self.num_granted = 0
        self.events: list[Event] = []
        self.ended = threading.Event()
        self._waiting: dict[int, Node] = dict(self.nodes)
        self._sequences: dict[int, str] = {}
        self._texts: dict[int, tuple[Completion, ...]] = {}
        self._values_of: dict[int, Any] = {}
        self._called: dict[int, HostCall] = {}
        self._errors: dict[int, RtlangError] = {}
        self._usage = Usage()

    @property
    def graph_id(self) -> int:
        return self._graph_id

    def extend(self, nodes: Sequence[Node]) -> None:
        with self._target.lock:
            self._target.check_alive()
            if not self.is_open:
                raise GraphError(None, "graph", "the graph is closed")
            if self.ended.is_set():
                raise GraphError(None, "graph", "the graph has ended")
            RequestGraph(tuple(nodes), self.graph.inputs).validate(self.nodes)
            for node in nodes:
                self.nodes[node.node_id] = node
            self.extensions.append(tuple(nodes))
            added = {node.node_id: node for node in nodes}
        self._target.post(lambda: self._waiting.update(added), self)

    def resolve(self, node_id: int, value: object) -> None:
        self._target.post(lambda: self._answer(node_id, value), self)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        error = rebuild(code, message, dict(facts or {}))
        self._target.post(lambda: self._answer(node_id, error), self)

    def _answer(self, node_id: int, outcome: object) -> None:
        """On the target's thread: a host call has its value, or has failed."""
        node = self._called.pop(node_id, None)
        if node is None or self.ended.is_set():
            return
        if isinstance(outcome, RtlangError):
            self._fail(node, outcome)
            return
        self._values_of[node_id] = outcome
        self._sequences[node_id] = ""
        self._emit(NodeFinished(self._graph_id, node_id, node.name, (), Usage(), Timing(), value=outcome))

    def grant(self, num_tokens: int) -> None:
        self.num_granted += num_tokens

    def close(self) -> None:
        with self._target.lock:
            self.is_open = False
        self._target.post(lambda: None, self)

    def cancel(self) -> None:
        with self._target.lock:
            self.was_cancelled = True
        self._target.post(lambda: self.end_with(AbortedError("the graph was cancelled")), self)

    def end_with(self, error: RtlangError) -> None:
        """On the target's thread: end the graph as a whole."""
        if not self.ended.is_set():
            self._emit(GraphFailed(self._graph_id, error))
            self.ended.set()

    def advance(self) -> bool:
        """On the target's thread: run one node that can run; whether anything happened."""
        if self.ended.is_set():
            return False
        for node in list(self._waiting.values()):
            needed = dependencies(node)
            failed = [self._errors[node_id] for node_id in sorted(needed) if node_id in self._errors]
            if failed:
                del self._waiting[node.node_id]
                self._fail(node, _dependency(failed[0], min(n for n in needed if n in self._errors)))
                return True
            if needed <= self._sequences.keys() and not self._target.is_held(node):
                del self._waiting[node.node_id]
                self._run(node)
                return True
        with self._target.lock:
            done = (
                not self._waiting and not self.is_open and len(self.nodes) == len(self._sequences) + len(self._errors)
            )
        if done:
            self._emit(
                GraphFinished(self._graph_id, self._values(), self._usage, tuple(sorted(self._errors))),
            )
            self.ended.set()
        return done

    def _run(self, node: Node) -> None:
        parent = parent_of(node)
        prompt = "" if parent is None else self._sequences[parent]
        if isinstance(node, Text):
            self._sequences[node.node_id] = prompt + self.render(node)
            return
        if isinstance(node, Apply):
            try:
                self._values_of[node.node_id] = apply(node.function, [self._operand(arg) for arg in node.args])
            except ApplyError as error:
                self._fail(node, error)
            else:
                self._sequences[node.node_id] = ""
            return
        if isinstance(node, HostCall):
            self._called[node.node_id] = node
            args = tuple(self._operand(arg) for arg in node.args)
            self._emit(CallRequested(self._graph_id, node.node_id, node.function, args))
            return
        num_choices = node.params.n if isinstance(node, Generate) else 1
        completions = []
        for choice in range(num_choices):
            try:
                reply = self._target.script(Call(self._graph_id, node, prompt, choice))
            except RtlangError as error:
                reply = error
            if isinstance(reply, RtlangError):
                self._fail(node, reply)
                return
            completions.append(self._complete(node, reply))
        for choice, completion in enumerate(completions):
            for start in range(0, len(completion.text), self._target.chunk):
                piece = completion.text[start : start + self._target.chunk]
                self._emit(TextDelta(self._graph_id, node.node_id, choice, piece, tuple(map(ord, piece))))
        scores = probabilities = None
        if isinstance(node, Select):
            assert completions[0].text in node.choices, "the script must pick one of the choices"
            scores = tuple(-1.0 if choice == completions[0].text else -2.0 for choice in node.choices)
            total = sum(map(math.exp, scores))
            probabilities = tuple(math.exp(score) / total for score in scores)
        usage = Usage(len(prompt), 0, sum(len(completion.token_ids) for completion in completions))
        self._usage += usage
        self._texts[node.node_id] = tuple(completions)
        self._sequences[node.node_id] = prompt + completions[0].text
        self._emit(
            NodeFinished(
                self._graph_id,
                node.node_id,
                node.name,
                tuple(completions),
                usage,
                Timing(0.0, 0.001, 0.002),
                scores,
                probabilities,
            )
        )

    @staticmethod
    def _complete(node: Node, reply: str | Completion) -> Completion:
        if isinstance(reply, Completion):
            return reply
        token_ids = tuple(map(ord, reply))
        wants = isinstance(node, Generate) and node.params.logprobs is not None
        logprobs = tuple(TokenLogprob(token_id, -0.5) for token_id in token_ids) if wants else None
        return Completion(reply, token_ids, FinishReason.STOP, None, logprobs)

    def render(self, node: Text) -> str:
        pieces = []
        for part in node.parts:
            match part:
                case str():
                    pieces.append(part)
                case Ref() | Arg():
                    pieces.append(text_of_plain(self._operand(part)))
                case RoleStart():
                    pieces.append(f"<{part.role}>")
                case RoleEnd():
                    pieces.append("</>")
                case TokenIds():
                    pieces.append("".join(map(chr, part.ids)))
        return "".join(pieces)

    def _operand(self, operand: Operand) -> Any:
        match operand:
            case Ref() if operand.node_id in self._values_of:
                return self._values_of[operand.node_id]
            case Ref():
                return self._texts[operand.node_id][operand.choice].text
            case Arg():
                return self.inputs[operand.name]
            case Const():
                return operand.value

    def _fail(self, node: Node, error: RtlangError) -> None:
        self._errors[node.node_id] = error
        self._emit(NodeFailed(self._graph_id, node.node_id, name_of(node), error))

    def _values(self) -> dict[str, str | list[str]]:
        texts: dict[str, list[str]] = {}
        is_list: set[str] = set()
        for node_id in sorted(self._texts):
            node = self.nodes[node_id]
            assert not isinstance(node, Text)
            if node.name is not None:
                if node.name in texts or len(self._texts[node_id]) > 1:
                    is_list.add(node.name)
                texts.setdefault(node.name, []).extend(completion.text for completion in self._texts[node_id])
        return {name: found if name in is_list else found[0] for name, found in texts.items()}

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        self._listener(event)


def _dependency(error: RtlangError, node_id: int) -> DependencyError:
    if isinstance(error, DependencyError):
        return error
    return DependencyError(node_id, error.code, error.message)


class FakeTarget:
    """A `Target` that plays `script`. Close it, or use it as a context manager, to end its thread.

    Attributes:
        runs: every accepted graph, in order.
        script: the text of each call; may raise or return an RtlangError to fail that node.
        chunk: characters per TextDelta.
    """

    def __init__(self, script: Script = default_script, *, chunk: int = 3) -> None:
        self.script, self.chunk = script, chunk
        self.runs: list[FakeRun] = []
        self._active: dict[FakeRun, None] = {}  # in order
        self.lock = threading.RLock()
        self.refusals: list[RtlangError] = []
        self._held: set[str] = set()
        self._dead: RtlangError | None = None
        self._inbox: queue.SimpleQueue[tuple[Callable[[], None], FakeRun | None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    tool_format: str | None = None
    abilities: frozenset[Ability] = frozenset()

    @property
    def is_alive(self) -> bool:
        return self._dead is None

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> FakeRun:
        options.check_abilities(self.abilities)
        graph.validate()
        given = dict(options.inputs)
        if set(given) != set(graph.inputs):
            raise GraphError(None, "inputs", f"expected {sorted(graph.inputs)}, got {sorted(given)}")
        with self.lock:
            self.check_alive()
            if self.refusals:
                raise self.refusals.pop(0)
            run = FakeRun(
                self,
                len(self.runs) + 1,
                graph,
                listener,
                given,
                options.is_open,
                options.priority,
                options.deadline_s,
            )
            self.runs.append(run)
            self._active[run] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="fake-target", daemon=True)
                self._thread.start()
        self.post(lambda: None, run)
        return run

    def close(self) -> None:
        """End all graphs with AbortedError and the thread."""
        with self.lock:
            thread, self._thread = self._thread, None
            if self._dead is None:
                self._dead = EngineDeadError("the runtime is closed")
        if thread is not None:
            self.post(lambda: self._end_all(AbortedError("the runtime was closed")))
            self._inbox.put(None)
            thread.join()

    def hold(self, *names: str) -> None:
        """Nodes of these names wait for `release`."""
        with self.lock:
            self._held.update(names)

    def release(self, *names: str) -> None:
        """Let nodes of these names run."""
        with self.lock:
            self._held.difference_update(names)
        self.post(lambda: None)

    def is_held(self, node: Node) -> bool:
        with self.lock:
            return not isinstance(node, Text) and node.name in self._held

    def refuse(self, *errors: RtlangError) -> None:
        """The next submits raise these, one each."""
        with self.lock:
            self.refusals.extend(errors)

    def expire(self) -> None:
        """Every running graph that has a deadline passes it."""
        self.post(lambda: self._end_all(DeadlineError("the deadline passed"), only_with_deadline=True))

    def die(self, reason: str = "the engine thread stopped") -> None:
        """Every running graph ends with EngineDeadError; submits and extends raise it from now on."""
        error = EngineDeadError(reason)
        with self.lock:
            self._dead = error
        self.post(lambda: self._end_all(error))

    def check_alive(self) -> None:
        if self._dead is not None:
            raise self._dead

    def post(self, action: Callable[[], None], run: FakeRun | None = None) -> None:
        """Run `action` on the target's thread, and then what can run: of one graph, or of all."""
        self._inbox.put((action, run))

    def _end_all(self, error: RtlangError, *, only_with_deadline: bool = False) -> None:
        for run in list(self._active):
            if run.deadline_s is not None or not only_with_deadline:
                run.end_with(error)

    def _loop(self) -> None:
        while (item := self._inbox.get()) is not None:
            action, one = item
            action()
            for run in [one] if one is not None else list(self._active):
                while run.advance():
                    pass
            if one is None or one.ended.is_set():
                with self.lock:
                    if one is None:
                        self._active = {run: None for run in self._active if not run.ended.is_set()}
                    else:
                        self._active.pop(one, None)
