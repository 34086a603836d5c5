"""The run of a graph that a journal records: what is in the file is not computed again, and no effect takes place twice.

Nodes of the program are compared with those of the file by their places and keys. A call of an effect is recorded as an intent before the
caller gets it, and its outcome before the graph gets it. A run that goes on finds the outcome, and answers with it; or it finds an intent
alone: then the policy of the call decides.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtlang.cassette.answers import JournalDesk
from rtlang.cassette.journal_file import JournalFile, placed_deltas
from rtlang.cassette.outcomes import Kept, how_kept
from rtlang.cassette.places import KEY_MARK, PlacedNode, Places, difference, plain_data
from rtlang.contract.errors import JournalError, RtlangError, UnansweredError, UnknownOutcomeError
from rtlang.contract.events import CallRequested, Event, GraphFailed, GraphFinished, NodeFailed, NodeFinished, TextDelta
from rtlang.contract.graph.host_calls import checked_answer
from rtlang.contract.graph.value_text import shown
from rtlang.contract.process.call_context import ASK, EMIT, NOW, RANDOM, CallContext, idempotency_key_of
from rtlang.contract.request_graph import Call, Generate, Node, all_nodes, last_id
from rtlang.contract.runs.known import Known
from rtlang.contract.runs.run_ledger import RunLedger, node_with
from rtlang.contract.service.target import ForwardedRun, Listener
from rtlang.protocol.plain_values import value_from_wire, value_to_wire

_WITHOUT_EFFECT = frozenset((EMIT, NOW, RANDOM))
"""Calls that may be made again until their outcomes are recorded."""

_UNDECIDED = frozenset((UnansweredError.code, UnknownOutcomeError.code))
"""Errors that end a run, and that are no outcomes: a later run may have another one."""


class JournaledRun(ForwardedRun):
    """The graph of a `Journal`; see `rtlang.contract.service.target.GraphRun`.

    Args:
        places: of the nodes of this run.
        desk: where people answer questions.
        recomputes: whether nodes that differ from the file are computed; else they are errors.
        continues: whether the runtime can go on after the tokens of a generation; else it generates its text again.
    """

    def __init__(
        self,
        file: JournalFile,
        places: Places,
        listener: Listener,
        desk: JournalDesk,
        *,
        has_budget: bool,
        recomputes: bool,
        continues: bool = True,
    ) -> None:
        self._file, self._places, self._listener, self._desk = file, places, listener, desk
        self._continues = continues
        self._has_budget, self._recomputes, self._was_finished = has_budget, recomputes, file.is_finished
        self.is_submitted = threading.Event()
        self._nodes: dict[int, Node] = {}
        self._made: dict[str, PlacedNode] = {}
        self._keys: set[bytes] = set()  # of the nodes that were made
        self._missing = {place for place in file.nodes if not place.startswith(KEY_MARK)}
        self._pieces: dict[int, list[TextDelta]] = {}  # text of running generations that the listener has not had
        self._deltas: dict[int, list[TextDelta]] = {}
        self._known_ids: set[int] = set()
        self._by_id: dict[int, Node | None] = {}
        self._answers = dict(file.answers)
        self._earlier = set(file.intents)  # calls that began in another process
        self._begun: set[str] = set()  # calls of effects that were handed on and have no answer
        self._requested: list[CallRequested] = []
        self._is_noting = False
        self._new: list[PlacedNode] = []  # of the last submission
        self._has_failed = self._is_undecided = False
        self._lock = threading.Lock()
        self._answered = threading.Condition(self._lock)

    def prepare(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Compare nodes with the journal, note new ones, and return the recorded state of the others: options of `submit` and `extend`.

        Raises:
            JournalError: a node differs.
        """
        file = self._file
        new = []
        placed = self._places.add(nodes)
        self._made.update((each.place, each) for _, each in placed)
        for node, each in placed:
            before = file.nodes.get(each.place)
            if before is not None and before.key == each.key:
                self._missing.discard(each.place)
            elif before is None and (place := self._equal_place(each)) is not None:
                self._places.move(node.node_id, place)
            elif before is not None and not self._recomputes:
                raise self._mismatch(before, each)
            else:
                if self._was_finished and not self._recomputes and not each.place.startswith(KEY_MARK):
                    raise file.error(
                        f"the run is finished, but the program now records {each.shown}; use another journal, or "
                        'on_change="recompute"',
                        each.place,
                    )
                new.append(each)
            self._keys.add(each.key)
        self._new = [] if self._was_finished and not self._recomputes else new
        if self._new:
            file.note_nodes(self._new)
        self._nodes.update((node.node_id, node) for node in nodes)
        ledger, known = RunLedger(), {}
        for node in nodes:
            for node_id, place, key in self._places.of_block(range(node.node_id, last_id(node) + 1)):
                outcome = file.known.get(key)
                if outcome is not None:
                    known[node_id] = outcome
                elif self._continues and place in file.pieces and file.pieces[place][0] == key:
                    self._pieces[node_id] = placed_deltas(file.pieces[place][1], node_id)
                    for piece in self._pieces[node_id]:
                        ledger.take(piece)
        self._known_ids.update(known)
        tokens = {} if self._was_finished and not self._recomputes else ledger.continue_from(nodes)
        return self._results(known, tokens)

    @staticmethod
    def _results(known: Known, tokens: Mapping[int, Any]) -> dict[str, Any]:
        return {"known": known} | ({"continue_from": tokens} if tokens else {})

    def _equal_place(self, node: PlacedNode) -> str | None:
        """The place of an equal node of the file: the program has renamed it, or the compiler has merged it with others."""
        place = self._file.place_of.get(node.key)
        return None if place is None or node.place.startswith(KEY_MARK) else place

    def take_back(self) -> None:
        """Forget the nodes that were new in the last submission, because they were refused."""
        if self._new:
            self._file.note_refused(self._new)

    def check_complete(self) -> None:
        """Check that the program has made every node of the journal, or an equal one.

        Raises:
            JournalError: one is missing.
        """
        file = self._file
        missing = [file.nodes[place] for place in sorted(self._missing) if file.nodes[place].key not in self._keys]
        if missing and not self._recomputes:
            raise file.error(
                f"the program ends without {missing[0].shown} of the journal; it has changed or is not deterministic, so use another "
                'journal, or on_change="recompute"',
                missing[0].place,
                f"{missing[0].content!r:.300}",
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

    def cancel(self) -> None:
        self._desk.close()
        self.run.cancel()

    def resolve(self, node_id: int, value: Any) -> None:
        if self._note_answer(node_id, {"value": value_to_wire(checked_answer(value))}):
            self.run.resolve(node_id, value)

    def reject(self, node_id: int, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        if code in _UNDECIDED:
            self._is_undecided = True
            self._end_call(node_id)
            self.run.reject(node_id, code, message, facts)
        elif self._note_answer(node_id, {"code": code, "message": message, "facts": dict(facts or {})}):
            self.run.reject(node_id, code, message, facts)

    def wait_for_calls(self, seconds: float) -> None:
        """Wait until the calls that were handed on have outcomes, so that the next run knows them."""
        with self._answered:
            self._answered.wait_for(lambda: not self._begun, seconds)

    # Events

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
        """End the graph, because the journal cannot be written or does not fit: later events would be lost with the process."""
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
        match event:
            case TextDelta():
                self._give_pieces(event.graph_id, event.node_id)
                if event.node_id not in self._known_ids:
                    self._deltas.setdefault(event.node_id, []).append(event)
                    place = self._places.of(event.node_id)
                    if place is not None and event.token_ids and self._may_go_on(event.node_id):
                        self._file.note_delta(*place, event)
            case NodeFinished() | NodeFailed():
                self._give_pieces(event.graph_id, event.node_id)
                deltas = self._deltas.pop(event.node_id, [])
                place = self._places.of(event.node_id)
                is_kept = event.node_id not in self._known_ids and _is_kept(event, has_budget=self._has_budget)
                if place is not None and is_kept:
                    self._file.note_end(*place, event, deltas)
            case CallRequested():
                return self._take_call(event)
            case GraphFinished() if not self._file.is_finished and not self._is_undecided:
                self._file.note_finished()
        return True

    def _give_pieces(self, graph_id: int, node_id: int) -> None:
        """Give the listener the text of a generation that goes on now."""
        for delta in placed_deltas(self._pieces.pop(node_id, ()), node_id, graph_id):
            self._deltas.setdefault(node_id, []).append(delta)
            self._listener(delta)

    def _may_go_on(self, node_id: int) -> bool:
        """Whether a generation can go on from its tokens, so that they are worth noting."""
        node = self._node(node_id)
        return self._continues and isinstance(node, Generate) and node.params.best_of == 1

    def _node(self, node_id: int) -> Node | None:
        if node_id not in self._by_id:
            self._by_id[node_id] = node_with(node_id, list(all_nodes(list(self._nodes.values()))))
        return self._by_id[node_id]

    # Calls

    def _take_call(self, event: CallRequested) -> bool:
        """Answer a call whose outcome is known, or note it as an intent and hand it on; returns whether the listener gets it now."""
        place = self._place_of(event.node_id)
        node = self._node(event.node_id)
        is_pure = isinstance(node, Call) and node.policy == "pure"
        intent = self._file.intents.get(place)
        if intent is not None and not is_pure:
            self._check_arguments(event, place, intent)
        answer = None if is_pure else self._file.answers.get(place)
        if answer is not None:
            self._answer_again(event.node_id, answer)
            return False
        if is_pure or event.function in _WITHOUT_EFFECT:
            self._listener(replace(event, context=self._context(place)))
            return False
        with self._lock:
            self._requested.append(event)
            starts = not self._is_noting
            self._is_noting = True
        if starts:
            threading.Thread(target=self._note_requested, name="rtlang-intents", daemon=True).start()
        return False

    def _check_arguments(self, event: CallRequested, place: str, intent: Mapping[str, Any]) -> None:
        """Check that a call that has begun before is the same now.

        Raises:
            JournalError: it has another function or other arguments; the effect may have taken place.
        """
        for field, before, now in (
            ("function", intent["function"], event.function),
            ("arguments", intent["args"], plain_data(list(event.args))),
        ):
            if before != now:
                raise self._file.error(
                    f"the call of {intent['function']}() at {place!r} was made with {field} {before!r:.300}, {now!r:.300} now; it has an "
                    "effect, which a journal never repeats: restore the program, or use another journal",
                    place,
                    f"{before!r:.300}",
                    f"{now!r:.300}",
                )

    def _note_requested(self) -> None:
        """Note the calls that were requested as intents, several at a time, and hand them on."""
        while True:
            with self._lock:
                events, self._requested = self._requested, []
                if not events:
                    self._is_noting = False
                    return
            try:
                self._hand_on(events)
            except JournalError as error:
                self._fail(events[0].graph_id, error)

    def _hand_on(self, events: Sequence[CallRequested]) -> None:
        intents: dict[str, dict[str, Any]] = {}
        made: list[CallRequested] = []
        for event in events:
            place, node = self._place_of(event.node_id), self._node(event.node_id)
            policy = node.policy if isinstance(node, Call) else "once"
            context = self._context(place)
            is_earlier = place in self._earlier
            if is_earlier and policy != "retry" and event.function != ASK:
                self._file.note_unknown(place)
                if policy == "once" and not self._desk.has_answer(place):
                    self._is_undecided = True
                    self._reject_unknown(event, place)
                    continue
                context = replace(context, is_unknown=True)
            if not is_earlier:
                arguments = plain_data(list(event.args))
                intents[place] = {"function": event.function, "args": arguments, "policy": policy, "at": time.time()}
            made.append(replace(event, context=context))
            if event.function != ASK:
                with self._lock:
                    self._begun.add(place)
        if intents:
            self._file.note_intents(intents)
        for event in made:
            if not self._has_failed:
                self._listener(event)

    def _context(self, place: str) -> CallContext:
        head = self._file.head
        intent = self._file.intents.get(place)
        asked_at = None if intent is None else float(intent["at"])
        key = idempotency_key_of(head["run"], place)
        return CallContext(place, key, head["seed"], begun_at=asked_at, desk=self._desk)

    def _reject_unknown(self, event: CallRequested, place: str) -> None:
        words = f"{shlex.quote(str(self._file.path))} {shlex.quote(place)}"
        how = (
            f"find out whether it took place, then write `rtlang answer {words} OUTCOME`, or declare the function with "
            '@rt.effect(on_unknown="retry") if it may be called again, and run the program again'
        )
        error = UnknownOutcomeError(event.function, ", ".join(map(shown, event.args)), place, how)
        self._when_submitted(lambda: self.run.reject(event.node_id, error.code, error.message, error.facts))

    def _note_answer(self, node_id: int, answer: Mapping[str, Any]) -> bool:
        """Note the first answer to a host call; returns whether it is the first."""
        place, node = self._place_of(node_id), self._node(node_id)
        with self._lock:
            if place in self._answers:
                return False
            self._answers[place] = dict(answer)
        is_pure = isinstance(node, Call) and node.policy == "pure"
        try:
            if not is_pure:  # its outcome is noted with its node
                is_effect = isinstance(node, Call) and node.function not in _WITHOUT_EFFECT
                self._file.note_answer(place, answer, is_effect=is_effect)
        except JournalError as error:
            self._fail(self.graph_id, error)
            return False
        finally:
            self._end_call(node_id)
        return True

    def _end_call(self, node_id: int) -> None:
        with self._answered:
            self._begun.discard(self._place_of(node_id))
            self._answered.notify_all()

    def _answer_again(self, node_id: int, answer: Mapping[str, Any]) -> None:
        def act() -> None:
            if "code" in answer:
                self.run.reject(node_id, str(answer["code"]), str(answer.get("message")), answer.get("facts"))
            else:
                self.run.resolve(node_id, value_from_wire(answer["value"], "value"))

        self._when_submitted(act)

    def _place_of(self, node_id: int) -> str:
        found = self._places.of(node_id)
        return f"node {node_id}" if found is None else found[0]

    def _mismatch(self, before: PlacedNode, now: PlacedNode) -> JournalError:
        node, field, old, new = difference(before, now, self._file.nodes, self._made)
        where = now.shown if node is now else f"{now.shown}, which builds on {node.shown} that"
        return self._file.error(
            f"{where} differs in {field}: {old} in the journal, {new} now; the program has changed, or does not do the same in each "
            'run, so use another journal, or on_change="recompute"',
            now.place,
            old,
            new,
        )


def _is_kept(event: NodeFinished | NodeFailed, *, has_budget: bool) -> bool:
    return not (isinstance(event, NodeFinished) and event.is_replayed) and (
        how_kept(event, has_budget=has_budget) is not Kept.NO
    )
