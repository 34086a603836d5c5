"""Runtimes that record outcomes to a file, and that answer from one."""

from __future__ import annotations

import heapq
import json
import os
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rtlang.cassette.file import CassetteFile
from rtlang.cassette.outcomes import Kept, from_stored, how_kept, to_stored
from rtlang.cassette.resuming import ResumingRun, is_emission
from rtlang.contract.errors import CassetteError, ParameterError
from rtlang.contract.events import CallRequested, Event, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.params import FinishReason
from rtlang.contract.process.call_context import EMIT
from rtlang.contract.request_graph import Call, Node, Part, RequestGraph, Text, last_id, nodes_to_plain
from rtlang.contract.runs.known import Known, KnownOutcome
from rtlang.contract.runs.known_finder import KnownFinder, MovedNode
from rtlang.contract.runs.node_keys import Content, Keys, digest
from rtlang.contract.runs.run_options import DEFAULT_OPTIONS, Ability, RunOptions, abilities_of
from rtlang.contract.service.target import ForwardedRun, GraphRun, Listener, Target
from rtlang.contract.service.text_service import count_tokens
from rtlang.runtime.graph_run import LocalGraphRun
from rtlang.runtime.scripted_runtime import ModelFreeRuntime


class _Recorded:
    """A recording, and the seeds that it fixes."""

    def __init__(self, file: CassetteFile) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._num_seen: Counter[bytes] = Counter()
        self._free: dict[bytes, list[int]] = {}

    @contextmanager
    def seed_of(self, graph: RequestGraph, options: RunOptions) -> Iterator[int]:
        """The seed of a run: a function of the recording, the identity of the run, and the number of equal runs before it.

        A graph without an identity is told from others by its nodes and inputs. A run that is refused within the block does not count.
        """
        identity = options.identity
        which = graph_digest(graph, options.inputs) if identity is None else digest(identity())
        with self._lock:
            free = self._free.get(which)
            if free:
                number = heapq.heappop(free)
            else:
                number = self._num_seen[which]
                self._num_seen[which] += 1
        try:
            yield int.from_bytes(digest([self.file.seed, which, number])[:8], "big")
        except BaseException:
            with self._lock:
                heapq.heappush(self._free.setdefault(which, []), number)
            raise

    def get(self, key: bytes, place: str | int = "") -> KnownOutcome | None:
        """See `OutcomeStore`."""
        stored = self.file.get(key)
        return None if stored is None else from_stored(self.file.path, stored)

    def cut(self, keys: Keys, node_id: int) -> KnownOutcome | None:
        """See `OutcomeStore`."""
        found = self.get(keys.of_run(node_id))
        return found if found is not None and _is_cancelled(found) else None

    def moved(self, content: Content) -> Sequence[MovedNode]:
        """See `OutcomeStore`: the first node that was recorded in the same place."""
        match self.file.get(content.in_place):
            case [bytes(key), str(path)]:
                return (MovedNode(key, path),)
        return ()

    def keep(self, key: bytes, outcome: Any, content: Content | None = None) -> bool:
        """Record an outcome, unless there is one with this key; returns whether there was none.

        Raises:
            CassetteError: the file cannot be written.
        """
        is_new = self.file.put(key, outcome)
        if is_new and content is not None:
            self.file.put(content.in_place, [key, content.path])
        return is_new

    def repeated(self, finder: KnownFinder, nodes: Sequence[Node], *, has_budget: bool) -> dict[int, KnownOutcome]:
        """The outcomes of nodes in the run that is replayed, those included that belong to this run only."""
        found = finder.add(nodes)
        own: dict[int, KnownOutcome] = {}
        for node in nodes:
            for node_id in range(node.node_id, last_id(node) + 1):
                outcome = self.get(finder.keys.of_run(node_id)) if node_id in finder.key_of else None
                if outcome is not None:
                    own[node_id] = outcome
        return found | own if has_budget else own | found


class DefaultWithin(ABC):
    """A context manager: within it, it is the default runtime.

    Args:
        set_default: sets the default runtime, and returns the one before.
    """

    def __init__(self, set_default: Callable[[Any], Any]) -> None:
        self._set_default = set_default
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = self._set_default(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._set_default(self._before)
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release the files and threads."""


class Recorder(DefaultWithin):
    """A `Target` that runs graphs on `runtime` and keeps the outcomes of their nodes. Recorded outcomes are not computed again.

    A context manager: within it, it is the default runtime. The wrapped runtime stays open.

    Attributes:
        num_replayed, num_recorded: outcomes read from the recording and added to it, so far.
    """

    def __init__(self, path: str | os.PathLike[str], runtime: Target, set_default: Callable[[Any], Any]) -> None:
        super().__init__(set_default)
        self._target = runtime
        self._recorded = _Recorded(CassetteFile(path, is_written=True))
        self._lock = threading.Lock()
        self._without_model: ModelFreeRuntime | None = None
        self.num_replayed = self.num_recorded = 0
        self._error: CassetteError | None = None

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self._target.is_alive

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        return self._target.tool_format

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`."""
        return abilities_of(self._target) & {Ability.BUDGET, Ability.CACHE_SALT}

    @property
    def model_identity(self) -> str:
        """That of the runtime, by which a sequence of an earlier run knows its tokens."""
        return identity_of(self._target)

    def count_tokens(self, parts: Sequence[Part]) -> int:
        """See `rtlang.contract.service.text_service.count_tokens`."""
        return count_tokens(self._target, parts)

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> RecordedRun:
        """See `Target.submit`.

        Raises:
            CassetteError: the recording was made with another model, or cannot be written.
        """
        if self._error is not None:
            raise self._error
        options.check_abilities(self.abilities)
        graph.validate()
        self._recorded.file.begin(identity_of(self._target), self._target.tool_format)
        inputs, seed = options.inputs, options.seed
        with self._recorded.seed_of(graph, options) if seed is None else nullcontext(seed) as seed:
            finder = KnownFinder(Keys(inputs, seed), self._recorded, has_budget=options.budget is not None)
            run = RecordedRun(self, listener, finder, has_budget=options.budget is not None)
            known = run.add(graph.nodes)
            run.run = self._started(graph, run.listen, known, replace(options, seed=seed))
        return run

    def _started(self, graph: RequestGraph, listener: Listener, known: Known, options: RunOptions) -> GraphRun:
        if known and not takes_known(self._target):
            return ResumingRun(self._answering(), self._target, graph, listener, known, options)
        return self._target.submit(graph, listener, options=replace(options, known=known))

    def _answering(self) -> ModelFreeRuntime:
        """The runtime that answers from the recording where the wrapped one cannot."""
        with self._lock:
            if self._without_model is None:
                self._without_model = ModelFreeRuntime(lambda asked: False)
            return self._without_model

    def close(self) -> None:
        """Flush the recording to the disk and release the file. Idempotent."""
        if self._without_model is not None:
            self._without_model.close()
        self._recorded.file.close()

    def keep(
        self, key: bytes, event: NodeFinished | NodeFailed, deltas: list[TextDelta], content: Content | None = None
    ) -> None:
        """Record an outcome. If the file cannot be written, later submits raise the error."""
        try:
            if self._recorded.keep(key, to_stored(event, deltas), content):
                self.num_recorded += 1
        except CassetteError as error:
            self._error = error


class RecordedRun(ForwardedRun):
    """A graph of a `Recorder`; see `rtlang.contract.service.target.GraphRun`."""

    def __init__(self, recorder: Recorder, listener: Listener, finder: KnownFinder, *, has_budget: bool) -> None:
        self._has_budget = has_budget
        self._recorder, self._listener, self._finder = recorder, listener, finder
        self._known_ids: set[int] = set()
        self._deltas: dict[int, list[TextDelta]] = {}

    def add(self, nodes: Sequence[Node]) -> Known:
        """Note the keys of nodes before they are submitted; returns the outcomes that are known."""
        known = self._finder.add(nodes)
        self._known_ids.update(known)
        return known

    def extend(self, nodes: Sequence[Node]) -> None:
        run: Any = self.run
        known = self.add(nodes)
        if isinstance(run, ResumingRun) or takes_known(self._recorder._target):
            run.extend(nodes, known=known)
        else:
            run.extend(nodes)

    def listen(self, event: Event) -> None:
        """Record the outcome of a node, then hand the event on: nothing that a caller has seen is missing from the file."""
        if isinstance(event, CallRequested) and event.function == EMIT:
            self._finder.key_of.pop(event.node_id, None)  # a value for the stream: a replayed run sends it again
        elif isinstance(event, TextDelta):
            if event.node_id in self._finder.key_of:
                self._deltas.setdefault(event.node_id, []).append(event)
        elif isinstance(event, (NodeFinished, NodeFailed)):
            deltas = self._deltas.pop(event.node_id, [])
            key, how = self._finder.key_of.get(event.node_id), how_kept(event, has_budget=self._has_budget)
            is_known = isinstance(event, NodeFailed) and event.node_id in self._known_ids
            if is_known or (isinstance(event, NodeFinished) and event.is_replayed):
                self._recorder.num_replayed += 1
            elif how is Kept.REPLAY:
                self._recorder.keep(self._finder.keys.of_run(event.node_id), event, deltas)
            elif how is Kept.ALL and key is not None:
                self._recorder.keep(key, event, deltas, self._finder.keys.content_of(event.node_id))
        self._listener(event)


def _is_cancelled(outcome: KnownOutcome) -> bool:
    """Whether a decision ended a node before it was whole; it does so again, because its winner is recorded."""
    end = outcome.end
    return isinstance(end, NodeFinished) and any(
        each.finish_reason is FinishReason.CANCELLED for each in end.completions
    )


class Replay(DefaultWithin):
    """A `Target` that answers from a recording, without a model. A context manager: within it, it is the default runtime.

    An outcome that the recording lacks fails its node with CassetteError.
    """

    abilities = frozenset({Ability.BUDGET, Ability.CACHE_SALT})  # it has no cache

    def __init__(self, path: str | os.PathLike[str], set_default: Callable[[Any], Any]) -> None:
        try:
            file = CassetteFile(path, is_written=False)
        except FileNotFoundError:
            raise CassetteError(os.fspath(path), "no such file; rt.record(path, runtime) makes it") from None
        super().__init__(set_default)
        self._recorded = _Recorded(file)
        self._runtime = ModelFreeRuntime(self._answer)

    @property
    def tool_format(self) -> str | None:
        """The format in which the model of the recording writes tool calls."""
        return self._recorded.file.tool_format

    @property
    def model_identity(self) -> str | None:
        """The model of the recording; None if it holds no outcome."""
        return self._recorded.file.model

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self._runtime.is_alive

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> ReplayedRun:
        """See `Target.submit`. With a budget, generations that it has shortened in the recorded run are shortened again."""
        options.check_abilities(self.abilities)
        graph.validate()
        seed, has_budget = options.seed, options.budget is not None
        if seed is None:
            with self._recorded.seed_of(graph, options) as seed:
                pass
        finder = KnownFinder(Keys(options.inputs, seed), self._recorded, has_budget=has_budget)
        known = self._recorded.repeated(finder, graph.nodes, has_budget=has_budget)
        run = self._runtime.submit(graph, listener, replace(options, seed=seed, known=known, budget=None))
        return ReplayedRun(self._recorded, run, finder, has_budget=has_budget)

    def close(self) -> None:
        """End all graphs, and close the file. Idempotent."""
        self._runtime.close()
        self._recorded.file.close()

    def _answer(self, asked: Any) -> bool:
        node = asked.node
        if isinstance(node, Text) or is_emission(node):
            return False
        if isinstance(node, Call):
            name = f"the call of {node.function}()"
        else:
            name = "an unnamed generation" if node.name is None else repr(node.name)
        error = CassetteError(
            self._recorded.file.path,
            f"no outcome of {name} for this model, prompt, parameters and seed; run the program with "
            "rt.record(path, runtime) to add it",
        )
        asked.end(KnownOutcome(error))
        return True


class ReplayedRun(ForwardedRun):
    """A graph of a `Replay`; see `rtlang.contract.service.target.GraphRun`."""

    def __init__(self, recorded: _Recorded, run: LocalGraphRun, finder: KnownFinder, *, has_budget: bool) -> None:
        self._recorded, self._finder, self._has_budget = recorded, finder, has_budget
        self.run: LocalGraphRun = run

    def extend(self, nodes: Sequence[Node]) -> None:
        self.run.extend(nodes, known=self._recorded.repeated(self._finder, nodes, has_budget=self._has_budget))


def graph_digest(graph: RequestGraph, inputs: Mapping[str, str]) -> bytes:
    """A digest of a graph and its inputs."""
    return digest([nodes_to_plain(graph.nodes), sorted(inputs.items())])


def takes_known(target: Any) -> bool:
    """Whether a runtime takes known outcomes, and says of which model it is."""
    return Ability.KNOWN in abilities_of(target) and hasattr(target, "model_identity")


def identity_of(target: Any) -> str:
    """The identity of a runtime's model: its own, or a digest of the description that a server gives of its models."""
    found = getattr(target, "model_identity", None)
    if isinstance(found, str):
        return found
    models = getattr(target, "models", None)
    if models:
        return "remote@" + digest(json.dumps(list(models), sort_keys=True, default=str)).hex()
    raise ParameterError("runtime", target, "expected an rt.Runtime(...) or rt.connect(...)")
