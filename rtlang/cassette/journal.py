"""A runtime that keeps a journal of one run of a program, so that the run continues after the death of its process."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtlang.cassette.journal_file import JournalFile, difference
from rtlang.cassette.outcomes import Kept, how_kept
from rtlang.cassette.recorder import DefaultWithin, identity_of, takes_known
from rtlang.contract.errors import JournalError, RtlangError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph.host_calls import checked_answer
from rtlang.contract.request_graph import Generate, Node, Part, RequestGraph, Text, all_nodes, last_id
from rtlang.contract.runs.known import Known, KnownOutcome
from rtlang.contract.runs.run_ledger import node_with
from rtlang.contract.runs.run_options import ALL_ABILITIES, DEFAULT_OPTIONS, Ability, RunOptions, abilities_of
from rtlang.contract.service.target import ForwardedRun, GraphRun, Listener, Target
from rtlang.contract.service.text_service import count_tokens
from rtlang.contract.version import VERSION
from rtlang.protocol.plain_values import value_from_wire, value_to_wire
from rtlang.runtime.scripted_runtime import AskedNode, ModelFreeRuntime


class Journal(DefaultWithin):
    """A `Target` that runs one graph on another one and records its events. Outcomes in the file are not computed again.

    A context manager: within it, it is the default runtime. The wrapped runtime stays open.

    Attributes:
        runtime: where the graph runs; not needed if the journal is finished.

    Args:
        file: the open journal, which `close` closes.
        set_default: sets the default runtime, and returns the one before.
        program, arguments: texts that identify the run; the file must have the same.
        seed: the seed of the run; the file must have the same. None: the seed of the file, or a random one.
    Raises:
        JournalError: the journal was recorded with another program or other arguments.
    """

    def __init__(
        self,
        file: JournalFile,
        set_default: Callable[[Any], Any],
        *,
        program: str | None = None,
        arguments: str | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(set_default)
        self._file = file
        self.runtime: Target | None = None
        self._of = {"program": program, "arguments": arguments}
        self._seed = seed
        self._has_run = False
        self._without_model: ModelFreeRuntime | None = None
        for name, value in self._of.items():
            before = file.head.get(name)
            if before is not None and value is not None and before != value:
                raise file.error(
                    f"{name}: {before} in the journal, {value} now; use another journal", None, before, value
                )

    @property
    def is_finished(self) -> bool:
        """Whether the graph had ended when the journal was opened; it is read without the runtime then."""
        return self._file.is_finished

    @property
    def is_alive(self) -> bool:
        """See `Target.is_alive`."""
        return self.runtime is None or self.runtime.is_alive

    @property
    def tool_format(self) -> str | None:
        """See `Target.tool_format`."""
        if self._file.head:
            found = self._file.head.get("tool_format")
            return found if isinstance(found, str) else None
        return None if self.runtime is None else self.runtime.tool_format

    @property
    def abilities(self) -> frozenset[Ability]:
        """See `Target.abilities`. The results of an earlier run are those of the file."""
        others = ALL_ABILITIES if self.runtime is None else abilities_of(self.runtime)
        return others - {Ability.KNOWN, Ability.CONTINUE}

    @property
    def model_identity(self) -> str | None:
        """Of the model of the run, by which a sequence of an earlier run knows its tokens; None if it is not known yet."""
        found = self._file.head.get("model") or (None if self.runtime is None else identity_of(self.runtime))
        return found if isinstance(found, str) else None

    def count_tokens(self, parts: Sequence[Part]) -> int:
        """See `rtlang.contract.service.text_service.count_tokens`."""
        return count_tokens(self.runtime, parts)

    def submit(self, graph: RequestGraph, listener: Listener, options: RunOptions = DEFAULT_OPTIONS) -> GraphRun:
        """See `Target.submit`.

        Raises:
            JournalError: a graph was submitted before; the journal has another model, seed or graph; or it cannot be
                written.
        """
        file = self._file
        if self._has_run:
            raise file.error("a journal holds one run of one program; use one journal per run")
        options.check_abilities(self.abilities)
        graph.validate()
        target = self._prepared(dict(options.inputs), self._seed if options.seed is None else options.seed)
        run = JournaledRun(file, listener, has_budget=options.budget is not None)
        results = run.prepare(graph.nodes)
        if not options.is_open:
            run.check_complete()
        try:
            run.run = target.submit(graph, run.listen, options=replace(options, seed=file.head["seed"], **results))
        except BaseException:
            run.take_back()
            raise
        self._has_run = True
        run.is_submitted.set()
        return run

    def close(self) -> None:
        """Store the journal on the disk, and release the file. Idempotent."""
        if self._without_model is not None:
            self._without_model.close()
        self._file.close()

    def _prepared(self, inputs: Mapping[str, str], seed: int | None) -> Any:
        """The runtime for the graph, after the head of the journal was written or compared."""
        file = self._file
        head = {"inputs": inputs, "seed": seed}
        for name, value in head.items():
            before = file.head.get(name)
            if file.head and value is not None and before != value:
                raise file.error(f"{name}: {before!r:.80} in the journal, {value!r:.80} now; use another journal")
        if file.is_finished:
            if self._without_model is None:
                self._without_model = ModelFreeRuntime(self._lacks)
            return self._without_model
        target = self.runtime
        if target is None:
            raise file.error("the run is not finished, and there is no runtime to continue it")
        if not takes_known(target):
            raise file.error(
                "the runtime cannot continue a run; use an rt.Runtime(...), or a server with the ability continue"
            )
        model = identity_of(target)
        if not file.head:
            seed = secrets.randbits(63) if seed is None else seed
            file.begin(
                {
                    "model": model,
                    "tool_format": target.tool_format,
                    "version": VERSION,
                    **self._of,
                    **head,
                    "seed": seed,
                }
            )
        elif file.head["model"] != model:
            before = str(file.head["model"])
            raise file.error(
                f"this journal was recorded with model {before}, the runtime serves {model}; use one journal per model",
                None,
                before,
                model,
            )
        return target

    def _lacks(self, asked: AskedNode) -> bool:
        if isinstance(asked.node, Text):
            return False
        asked.end(
            KnownOutcome(self._file.error("the run is finished and has no outcome of this node", asked.node.node_id))
        )
        return True


class JournaledRun(ForwardedRun):
    """The graph of a `Journal`; see `rtlang.contract.service.target.GraphRun`."""

    def __init__(self, file: JournalFile, listener: Listener, *, has_budget: bool) -> None:
        self._file, self._listener, self._has_budget = file, listener, has_budget
        self.is_submitted = threading.Event()
        self._nodes: dict[int, Node] = {}
        self._missing = set(file.nodes)  # nodes of the journal that the program has not made yet
        self._pieces = dict(file.pieces)  # text of running generations that the listener has not had
        self._deltas: dict[int, list[TextDelta]] = {}
        self._is_text: dict[int, bool] = {}
        self._answers = dict(file.answers)
        self._new: list[Node] = []  # of the last submission
        self._has_failed = False
        self._lock = threading.Lock()

    def prepare(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Compare nodes with the journal, note new ones, and return the recorded state of the others: options of `submit` and `extend`.

        Raises:
            JournalError: a node differs.
        """
        file = self._file
        new = []
        for node in nodes:
            before = file.nodes.get(node.node_id)
            if before is None:
                new.append(node)
                continue
            found = difference(before, node)
            if found is not None:
                raise self._mismatch(node, before, *found)
        if new and file.is_finished:
            raise file.error(
                f"the run is finished, but the program now records {_shown(new[0])}; use another journal",
                new[0].node_id,
            )
        self._new = new
        if new:
            file.note_nodes(new)
        self._missing.difference_update(node.node_id for node in nodes)
        self._nodes.update((node.node_id, node) for node in nodes)
        own = [range(node.node_id, last_id(node) + 1) for node in nodes]
        known: Known = {node_id: file.known[node_id] for ids in own for node_id in ids if node_id in file.known}
        tokens = {} if file.is_finished else file.continue_from(nodes)
        continue_from = {node_id: tokens[node_id] for ids in own for node_id in ids if node_id in tokens}
        return {"known": known} | ({"continue_from": continue_from} if continue_from else {})

    def take_back(self) -> None:
        """Forget the nodes that were new in the last submission, because they were refused."""
        if self._new:
            self._file.note_refused(self._new)

    def check_complete(self) -> None:
        """Check that the program has made every node of the journal.

        Raises:
            JournalError: one is missing.
        """
        if self._missing:
            before = self._file.nodes[min(self._missing)]
            raise self._file.error(
                f"the program ends without node {before['id']}, a {before['kind']} in the journal; the program has changed or is not "
                "deterministic, so use another journal",
                before["id"],
                f"{before!r:.300}",
            )

    def extend(self, nodes: Sequence[Node]) -> None:
        run: Any = self.run
        results = self.prepare(nodes)
        try:
            run.extend(nodes, **results)
        except BaseException:
            self.take_back()
            raise

    def close(self) -> None:
        self.check_complete()
        self.run.close()

    def resolve(self, node_id: int, value: Any) -> None:
        if self._note_answer(node_id, {"value": value_to_wire(checked_answer(value))}):
            self.run.resolve(node_id, value)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        if self._note_answer(node_id, {"code": code, "message": message, "facts": dict(facts or {})}):
            self.run.reject(node_id, code, message, facts)

    def listen(self, event: Event) -> None:
        """Note an event, then hand it on: nothing that a caller has seen is missing from the file."""
        if self._has_failed:
            return
        try:
            is_new = self._take(event)
        except JournalError as error:
            self._fail(event.graph_id, error)
            return
        if is_new:
            self._listener(event)

    def _fail(self, graph_id: int, error: JournalError) -> None:
        """End the graph, because the journal cannot be written: later events would be lost with the process."""
        with self._lock:
            if self._has_failed:
                return
            self._has_failed = True
        self._when_submitted(lambda: self.run.cancel())
        self._listener(GraphFailed(graph_id, error))

    def _when_submitted(self, act: Callable[[], None]) -> None:
        """Act in a thread of its own, because the runtime's may be submitting the graph."""

        def wait() -> None:
            self.is_submitted.wait()
            with contextlib.suppress(RtlangError):  # the graph has ended
                act()

        threading.Thread(target=wait, name="rtlang-journal", daemon=True).start()

    def _take(self, event: Event) -> bool:
        """Note an event; returns whether the listener gets it."""
        node_id = getattr(event, "node_id", None)
        match event:
            case TextDelta():
                self._give_pieces(event.graph_id, event.node_id)
                if event.node_id not in self._file.known:
                    self._deltas.setdefault(event.node_id, []).append(event)
                    if event.token_ids and self._may_go_on(event.node_id):
                        self._file.note_delta(event)
            case NodeFinished() | NodeFailed():
                self._give_pieces(event.graph_id, event.node_id)
                deltas = self._deltas.pop(event.node_id, [])
                if event.node_id not in self._file.known and _is_kept(event, has_budget=self._has_budget):
                    self._file.note_end(event, deltas)
            case CallRequested() if node_id in self._file.answers:
                self._answer_again(event.node_id, self._file.answers[event.node_id])
                return False
            case GraphFinished() if not self._file.is_finished:
                self._file.note_finished()
        return True

    def _give_pieces(self, graph_id: int, node_id: int) -> None:
        """Give the listener the text of a generation that goes on now."""
        for piece in self._pieces.pop(node_id, ()):
            delta = TextDelta(graph_id, node_id, piece.choice, piece.text, piece.token_ids, piece.logprobs)
            self._deltas.setdefault(node_id, []).append(delta)
            self._listener(delta)

    def _may_go_on(self, node_id: int) -> bool:
        """Whether a generation can go on from its tokens, so that they are worth noting."""
        found = self._is_text.get(node_id)
        if found is None:
            node = node_with(node_id, list(all_nodes(list(self._nodes.values()))))
            found = self._is_text[node_id] = isinstance(node, Generate) and node.params.best_of == 1
        return found

    def _note_answer(self, node_id: int, answer: Mapping[str, Any]) -> bool:
        """Note the first answer to a host call; returns whether it is the first."""
        with self._lock:
            if node_id in self._answers:
                return False
            self._answers[node_id] = dict(answer)
        try:
            self._file.note_answer(node_id, answer)
        except JournalError as error:
            self._fail(self.graph_id, error)
            return False
        return True

    def _answer_again(self, node_id: int, answer: Mapping[str, Any]) -> None:
        def act() -> None:
            if "code" in answer:
                self.run.reject(node_id, str(answer["code"]), str(answer.get("message")), answer.get("facts"))
            else:
                self.run.resolve(node_id, value_from_wire(answer["value"], "value"))

        self._when_submitted(act)

    def _mismatch(self, node: Node, plain: Mapping[str, Any], field: str, before: str, now: str) -> JournalError:
        return self._file.error(
            f"{_shown(node)} differs in {field}: {before} in the journal, {now} now; the program has changed, or does not do the "
            "same in each run, so use another journal",
            node.node_id,
            before,
            now,
        )


def _is_kept(event: NodeFinished | NodeFailed, *, has_budget: bool) -> bool:
    return not (isinstance(event, NodeFinished) and event.is_replayed) and (
        how_kept(event, has_budget=has_budget) is not Kept.NO
    )


def _shown(node: Node) -> str:
    name = getattr(node, "name", None)
    return f"node {node.node_id}" if name is None else f"node {node.node_id} ({name})"
