"""Finds the graph that crashes engines, and lets it fail alone.

The record of an engine's work (work_record.py) names the graphs of which one crashed it: these are suspects at once. They are opened one
after the other, the newest first, on one engine that has no other graphs. A suspect that crashes this engine as well is the culprit; the
others are then free. So no graph that is named is tried a third time. A suspect is cleared when it has given more than it did on the engine
that crashed, since one that crashes engines at its fourth token gives three of them again. With each further crash that names it, it is
alone for longer.

Without a record, a graph has a strike for each engine in a row that ended before the graph gave anything there. With SUSPECT_STRIKES it is
a suspect, and suspects are opened in groups, each half of one that crashed its engine, until a group of one crashes its engine with
FATAL_STRIKES. An engine that was killed from outside, by an operator, counts half as much as a crash, whatever its record says.

No input or output and no clock: every time is an argument. The owner (engine_pool.py) opens the graphs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

PROBE_WAIT_S, START_WAIT_S = 60.0, 600.0
"""Seconds that suspects wait for an engine without graphs, and while one is being started; then they share the one with the fewest."""
PROBE_S, HARMLESS_S = 5.0, 60.0
"""Seconds after which a graph counts as harmless if its engine's thread still works: one that was opened alone, and any other."""
FORGET_S = 600.0
"""Seconds within which a second crash with the same graph alone at work makes it the culprit, even if it gave something in between."""
CRASH, KILL = 2, 1
"""Strikes against a graph that has given nothing since it was opened, when its engine crashes or is killed from outside."""
SUSPECT_STRIKES, FATAL_STRIKES = 4, 6
"""Strikes in a row for which a graph is opened alone, and for which it fails if it is."""
MAX_PIECES, SPARE_PIECES = 32, 8
"""The most pieces of output that a suspect must give to be cleared, and those that may have been lost with the crashed engine."""
GROWTH = 4
"""Factor of MAX_PIECES and PROBE_S for each crash within FORGET_S that named the suspect before."""
MAX_BLAMED = 4
"""Ends of engines in a row, with no output of any graph in between, for which graphs are blamed; then the engines are at fault."""


@dataclass(frozen=True, slots=True)
class Death:
    """How an engine has ended.

    Attributes:
        has_crashed: whether it ended by its own fault, and was not killed from outside.
        at_work: the graphs of which one was worked on; None if that is not known.
        held_by: the graph whose work held the engine thread until it was killed for that.
    """

    has_crashed: bool
    at_work: frozenset[int] | None = None
    held_by: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from the end of an engine.

    Attributes:
        culprit: the graph that fails, if one is found.
        released: suspects that waited, and may be opened as any graph now.
        blames_graph: whether a graph is the cause, so that the next engine need not wait.
    """

    culprit: int | None = None
    released: Sequence[int] = ()
    blames_graph: bool = False


class CrashSuspects:
    """The strikes of graphs, and the queue of suspects. Not thread-safe; graphs and engines are named by their ids.

    Attributes:
        waiting: groups of suspects that no engine has, in the order of their turns.
        waits_since: the time since which suspects wait for an engine without graphs; None while they do not.
        engine: the engine that takes only suspects; None if there is none.
        probed: the suspects that are open on this engine, until they give something, end, or count as harmless.
    """

    def __init__(self) -> None:
        self.waits_since: float | None = None
        self.waiting: deque[list[int]] = deque()
        self.engine: str | None = None
        self.probed: set[int] = set()
        self._opened_at: dict[int, float] = {}  # graphs that have given nothing since then, or too little
        self._num_pieces: Counter[int] = Counter()  # of output, by graph, since it was opened
        self._num_needed: dict[int, int] = {}  # by suspect, pieces that do not clear it
        self._named: dict[int, tuple[int, float]] = {}  # by graph, crashes that named it, and the time of the last one
        self._strikes: Counter[int] = Counter()
        self._cases: dict[int, int] = {}  # by suspect, the number of the death that made it one
        self._num_cases = 0
        self._crashed_at: dict[int, float] = {}  # by graph that was at work alone in a crash
        self._num_blamed = 0  # ends of engines since any graph gave something

    def strikes(self, graph_id: int) -> int:
        """The strikes against a graph."""
        return self._strikes[graph_id]

    def is_suspect(self, graph_id: int) -> bool:
        """Whether a graph is opened apart from others."""
        return graph_id in self._cases

    @property
    def waiting_ids(self) -> list[int]:
        """The suspects that no engine has."""
        return [graph_id for group in self.waiting for graph_id in group]

    def add(self, graph_id: int) -> None:
        """A new graph is a suspect, because the same one was a culprit before: one crash is enough now."""
        self._suspect({graph_id}, ())
        self._num_needed[graph_id] = MAX_PIECES

    def note_opened(self, graph_id: int, now: float) -> None:
        """A graph was opened on an engine."""
        self._opened_at[graph_id] = now
        self._num_pieces[graph_id] = 0

    def note_output(self, graph_id: int) -> None:
        """A graph has given a piece of output, and goes on."""
        self._num_pieces[graph_id] += 1
        if self._num_pieces[graph_id] > self._num_needed.get(graph_id, 0):
            self._num_blamed = 0
            self.clear(graph_id)

    def clear(self, graph_id: int) -> None:
        """A graph has given something, or counts as harmless: it is no suspect."""
        self._opened_at.pop(graph_id, None)
        self._strikes.pop(graph_id, None)
        self._num_needed.pop(graph_id, None)
        if self._cases.pop(graph_id, None) is None:
            return
        self.probed.discard(graph_id)
        for group in self.waiting:
            if graph_id in group:
                group.remove(graph_id)
        self.waiting = deque(group for group in self.waiting if group)

    def forget(self, graph_id: int) -> None:
        """A graph has ended."""
        self.clear(graph_id)
        self._crashed_at.pop(graph_id, None)
        self._num_pieces.pop(graph_id, None)
        self._named.pop(graph_id, None)

    def tick(self, last_beat: float) -> None:
        """Clear probed suspects if their engine's thread worked, at the time `last_beat`, for long enough after they were opened."""
        for graph_id in list(self.probed):
            if last_beat > self._opened_at[graph_id] + PROBE_S * self._patience(graph_id):
                self.clear(graph_id)

    def note_death(self, engine: str, graph_ids: Iterable[int], last_beat: float, death: Death) -> Verdict:
        """Count an engine's end against its graphs, which no engine has from now on.

        Args:
            graph_ids: the graphs that were open there.
            last_beat: the last time at which the engine thread worked. Graphs that it survived for long only wait for something.
        """
        here = list(graph_ids)
        unproven = self._strike(here, last_beat, CRASH if death.has_crashed else KILL)
        probed: set[int] = set()
        if engine == self.engine:
            probed, self.probed, self.engine = self.probed, set(), None
        named = (death.at_work or frozenset()) & set(here) if death.has_crashed else frozenset[int]()
        is_held = death.held_by in here
        self._num_blamed += bool(named) or is_held
        blames_graph = (bool(named) or is_held) and self._num_blamed <= MAX_BLAMED
        if is_held:
            assert death.held_by is not None
            self._requeue(probed - {death.held_by})
            return Verdict(death.held_by, blames_graph=blames_graph)
        culprit = self._culprit(named, probed, unproven, last_beat)
        if culprit is not None:
            for graph_id in probed - {culprit}:
                self.clear(graph_id)
            return Verdict(culprit, self._release(self._cases.get(culprit)), blames_graph)
        if probed & named:
            self._halve(sorted(probed & named))
            self._requeue(probed - named)
        elif not named and len(probed) > 1 and death.has_crashed and probed >= unproven:
            self._halve(sorted(probed))
        else:
            self._requeue(probed)
        self._note_named(named, last_beat)
        self._suspect(named - probed, unproven - named - probed)
        return Verdict(blames_graph=blames_graph)

    def take_next(self) -> list[int]:
        """Make the first suspects that wait the probed ones; returns them."""
        assert not self.probed
        group = self.waiting.popleft()
        self.probed = set(group)
        return group

    def requeue_probed(self, graph_id: int) -> None:
        """Put a probed suspect, which was taken off its engine, back in the first place."""
        self.probed.remove(graph_id)
        self.waiting.appendleft([graph_id])

    # -- the end of an engine

    def _strike(self, graph_ids: Iterable[int], last_beat: float, num_strikes: int) -> set[int]:
        """Count strikes; returns the graphs that have given nothing since they were opened."""
        unproven = set()
        for graph_id in graph_ids:
            if graph_id not in self._opened_at:
                continue
            if last_beat > self._opened_at[graph_id] + HARMLESS_S:
                self.clear(graph_id)
            else:
                unproven.add(graph_id)
                self._strikes[graph_id] += num_strikes
        return unproven

    def _culprit(
        self, named: Collection[int], probed: Collection[int], unproven: Collection[int], last_beat: float
    ) -> int | None:
        if len(named) == 1:
            (graph_id,) = named
            before = self._crashed_at.get(graph_id)
            self._crashed_at[graph_id] = last_beat
            if before is not None and last_beat < before + FORGET_S:
                return graph_id
        guilty = set(named) & set(probed) if named else set(probed)
        if len(guilty) != 1:
            return None
        (graph_id,) = guilty
        is_alone = set(named or unproven) == guilty
        return graph_id if is_alone and self._strikes[graph_id] >= FATAL_STRIKES else None

    def _note_named(self, named: Collection[int], now: float) -> None:
        """Note how much the graphs that a crash names must give alone."""
        for graph_id in named:
            num_crashes, at = self._named.get(graph_id, (0, 0.0))
            self._named[graph_id] = (num_crashes + 1 if now < at + FORGET_S else 1), now
            num_pieces = self._num_pieces[graph_id]
            most = MAX_PIECES * self._patience(graph_id)
            self._num_needed[graph_id] = min(num_pieces + SPARE_PIECES, most) if num_pieces else 0

    def _patience(self, graph_id: int) -> int:
        num_crashes, _ = self._named.get(graph_id, (1, 0.0))
        return int(GROWTH ** (num_crashes - 1))

    def _suspect(self, named: Collection[int], unproven: Collection[int]) -> None:
        """Make suspects of the graphs that a record names, the newest first, and of those with enough strikes, in two groups."""
        self._num_cases += 1
        for graph_id in sorted(named, key=lambda each: (each not in self._opened_at, -each)):
            self._strikes[graph_id] = max(self._strikes[graph_id], SUSPECT_STRIKES)
            self._cases[graph_id] = self._num_cases
            self.waiting.append([graph_id])
        struck = sorted(each for each in unproven if self._strikes[each] >= SUSPECT_STRIKES)
        self._cases.update(dict.fromkeys(struck, self._num_cases))
        middle = len(struck) // 2
        self.waiting.extend(group for group in (struck[:middle], struck[middle:]) if group)

    def _halve(self, graph_ids: Sequence[int]) -> None:
        middle = len(graph_ids) // 2
        self.waiting.extendleft(list(group) for group in (graph_ids[middle:], graph_ids[:middle]) if group)

    def _requeue(self, graph_ids: Collection[int]) -> None:
        """Put suspects back in the first place, those that were not cleared meanwhile."""
        left = sorted(graph_id for graph_id in graph_ids if graph_id in self._cases)
        if left:
            self.waiting.appendleft(left)

    def _release(self, case: int | None) -> list[int]:
        """Clear the suspects of a case whose culprit is found."""
        released = [graph_id for graph_id in self.waiting_ids if self._cases[graph_id] == case]
        for graph_id in released:
            self.clear(graph_id)
        return released
