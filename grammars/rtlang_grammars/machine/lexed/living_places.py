"""Whether the text up to a place can be completed.

`LexedPlaces.can_win` proves it for most places. The others have a way back to an earlier match, or a terminal whose end depends on what
follows it: `WaysOn` and, in grammars with conflicts, the sets of parser stacks are followed up to the end of the text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from rtlang_grammars.machine.lexed.lexed_places import Configuration, LexedPlaces
from rtlang_grammars.machine.lexed.ways_on import Kind, Lead, TooLargeError, Watch, Watches, WaysOn
from rtlang_grammars.machine.lexer_run.lexer_layout import KEEP

_MAX_LIVING = 1 << 16
_MAX_FOLLOWED = 2000
_MAX_QUESTION_STEPS = 200_000
"""Steps of all questions of a grammar, after which they get the short answer."""


class LivingPlaces:
    """Tells places whose text can be completed from others, and remembers both. Callers hold the grammar's lock."""

    def __init__(self, places: LexedPlaces) -> None:
        self._places, self._tables = places, places.tables
        self._living: dict[tuple[Configuration, Watches], bool] = {}
        self._num_steps = 0
        self._reaching: dict[tuple[WaysOn, int, Lead], bool] = {}

    @cached_property
    def _ways_on(self) -> tuple[WaysOn, WaysOn, WaysOn]:
        """Made for the first question, which most grammars never ask."""
        return tuple(WaysOn(self._tables, kind) for kind in (Kind.FEW, Kind.EXACT, Kind.MANY))  # type: ignore[return-value]

    @property
    def is_worn(self) -> bool:
        """Whether so many answers are kept that new texts should begin with none."""
        return len(self._living) > _MAX_LIVING

    def is_alive(self, configuration: Configuration) -> bool:
        """Whether the text so far can be completed."""
        return self._places.can_win(configuration.stacks, configuration.state) == 1 or (
            self._may_live(configuration) and self._is_living(configuration)
        )

    def advanced(
        self, configuration: Configuration, data: bytes, ends: list[tuple[int, int]] | None = None
    ) -> Configuration | None:
        """The place after bytes; None where the text can then not be completed. ends: see `LexedPlaces.run`."""
        reached = self._places.run(configuration, data, ends=ends)
        if reached is None:
            return None
        if reached.last >= 0 and not self._lives_back(reached.stacks, reached.last, reached.tail[reached.last_at :]):
            # A way back that leads nowhere is forgotten, so that equal places are equal.
            keep = int(self._tables.lexer.states[reached.state, KEEP])
            reached = reached._replace(
                last=-1, last_at=0, tail=reached.tail[len(reached.tail) - keep :] if keep else b""
            )
        return reached if self.is_alive(reached) else None

    def _may_live(self, configuration: Configuration) -> bool:
        """Whether the lexeme in progress can still become a terminal that the parser takes."""
        if self._places.can_win(configuration.stacks, configuration.state):
            return True
        return any(True for _ in self._ways_back(configuration))

    def _lives_back(self, stacks: int, last: int, tail: bytes) -> bool:
        """Whether the text may go on if the lexeme ended at its last match, `tail` bytes ago."""
        stacks = self._places.shift(stacks, last)
        if stacks < 0:
            return False
        reached = self._places.run(self._places.fresh(stacks), tail)
        return reached is not None and self._may_live(reached)

    def _ways_back(self, configuration: Configuration) -> Iterator[tuple[Configuration, Watch]]:
        """The places after the last bytes if a lexeme ended before them, and what the lexer must then not find."""
        state, last, tail = configuration.state, configuration.last, configuration.tail
        ended = [(terminal, num_bytes, False) for terminal, num_bytes in self._tables.automaton.pending[state]]
        if last >= 0:
            ended.append((last, len(tail) - configuration.last_at, True))
        for terminal, num_bytes, is_found in ended:
            stacks = self._places.shift(configuration.stacks, terminal) if num_bytes <= len(tail) else -1
            if stacks < 0:
                continue
            reached = self._places.run(self._places.fresh(stacks), tail[len(tail) - num_bytes :])
            if reached is not None and self._may_live(reached):
                yield reached, Watch(state, terminal, is_found, num_bytes)

    def _is_living(self, configuration: Configuration, watches: Watches = frozenset()) -> bool:
        """Whether the text can be completed while all of some watches hold."""
        key = configuration, watches
        found = self._living.get(key)
        if found is None:
            found = self._has_way_on(configuration, watches) or any(
                self._is_living(reached, watches | {watch}) for reached, watch in self._ways_back(configuration)
            )
            if len(self._reaching) > _MAX_LIVING:
                self._reaching.clear()
            self._living[key] = found  # never asked again: a short answer must not differ from one in a mask
        return found

    def _has_way_on(self, configuration: Configuration, watches: Watches) -> bool:
        """`_is_living` if the lexeme in progress goes on."""
        few, exact, many = self._ways_on
        can_win = bool(self._places.can_win(configuration.stacks, configuration.state))
        if not exact.is_exact:
            return can_win
        everything = (1 << self._tables.automaton.num_classes) - 1
        stacks, state = configuration.stacks, configuration.state
        lead = state, self._places.lexer_state(stacks), everything, watches
        if self._reaches_end(few, stacks, lead):
            return True
        if self._reaches_end(many, stacks, (*lead[:3], frozenset())) is False:
            return False
        found = self._reaches_end(exact, stacks, lead)
        if found is None or (not found and exact.has_conflicts):
            found = self._follows_to_end(exact, stacks, lead)
        return can_win if found is None else found

    def _follows_to_end(self, ways_on: WaysOn, stacks: int, lead: Lead) -> bool | None:
        """`_reaches_end` by following sets of stacks; None where that takes too long."""
        if self._num_steps > _MAX_QUESTION_STEPS:
            return None
        ways_on.restart()
        seen, todo = {(stacks, lead)}, deque([(stacks, lead)])
        try:
            while todo:
                stacks, lead = todo.popleft()
                terminals, may_end = ways_on.lexed(lead)
                if may_end and self._places.can_end(stacks):
                    return True
                for reached in self._shifted(stacks, terminals):
                    if reached not in seen:
                        seen.add(reached)
                        todo.append(reached)
                if len(seen) > _MAX_FOLLOWED:
                    return None
        except TooLargeError:
            return None
        finally:
            self._num_steps += ways_on.num_steps + len(seen)
        return False

    def _reaches_end(self, ways_on: WaysOn, stacks: int, lead: Lead) -> bool | None:
        """Whether the text can be completed from a set of stacks; None where the answer takes too long."""
        if self._num_steps > _MAX_QUESTION_STEPS:
            return None
        ways_on.restart()
        try:
            terminals, may_end = ways_on.lexed(lead)
            if may_end and self._places.can_end(stacks):
                return True
            for after, begun in self._shifted(stacks, terminals):
                key = ways_on, after, begun
                if key not in self._reaching:
                    self._reaching[key] = any(
                        ways_on.can_end(*self._places.stack_sets.node(node), begun, self._places.stack_sets.node)
                        for node in self._places.stack_sets.tops(after)
                    )
                if self._reaching[key]:
                    return True
        except TooLargeError:
            return None
        finally:
            self._num_steps += ways_on.num_steps
        return False

    def _shifted(self, stacks: int, terminals: Mapping[int, Iterable[Lead]]) -> Iterator[tuple[int, Lead]]:
        """The sets of stacks after terminals that the parser takes, with the leads before the next lexeme."""
        for terminal, leads in terminals.items():
            after = self._places.shift(stacks, terminal)
            if after >= 0:
                start = self._places.lexer_state(after)
                for _, _, classes, watches in leads:
                    yield after, (start, start, classes, watches)
