"""Raw text within a larger text: any text, or one of a language, that does not contain the marks around it.

Its states carry facts from which masks are made without a walk over the whole vocabulary (`machine.raw_masks`): which bytes may
complete an excluded text, and which may follow the raw text. Code points are counted in the register where every beginning may end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from rtlang_grammars.lowering.languages.embedding import EmbeddedAutomaton, Embedding, continuation_state
from rtlang_grammars.machine.automaton.json_base_states import TEXT_SLICE
from rtlang_grammars.machine.automaton.layout import COUNT, COUNT_UP, ENDS, NONE, OPEN, PARAM, ROW, SLICE
from rtlang_grammars.machine.automaton.tables import Register, Tables, TextFacts
from rtlang_grammars.machine.automaton.text_limit import Room
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_DEAD = -1
_MANY = 1 << 30
_MAX_COUNTED = 1000
"""States that are inspected to find out whether every beginning may end."""
_MAX_INSPECTED = 200
"""States of a language that are inspected to find out what it forbids; each takes 70 us."""
_PRINTED = range(0x20, 0x7F)
_FILLERS = "a0_xyz.-,;:123456789bcdefghijklmnopqrstuvw"


@dataclass(frozen=True, slots=True)
class RawLanguage:
    """The texts of a part: the texts of a language whose number of code points lies within bounds.

    Attributes:
        language: nonempty texts.
        least, most: code points that are counted in the register; 1 and None: none are.
        last: the bytes of the last characters of excluded texts, if nothing else is forbidden; None if something is.
        filler: a character that may always follow, if `last` is given.
        max_tokens: tokens that are counted in the register, in place of code points; None: none are.
    """

    language: Language
    least: int = 1
    most: int | None = None
    last: bytes | None = None
    filler: bytes = b""
    max_tokens: int | None = None

    @classmethod
    def of(
        cls,
        language: Language | None,
        excludes: Sequence[str],
        least: int,
        most: int | None,
        budget: Budget,
        max_tokens: int | None = None,
    ) -> RawLanguage:
        """The nonempty texts of a language (None: all texts) without the excluded ones as parts, with `least` to `most` code points.

        Raises:
            GrammarError: the budget ran out.
        """
        if max_tokens is not None:
            if least > 1 or not (language is None or _may_always_end(language, budget)):
                raise GrammarError(
                    "max_tokens: every beginning of the text must be able to end; remove minLength or pattern"
                )
            if most is not None:  # the register counts tokens
                language = (language or Language.any_text()).bounded(0, most)
                least, most = 1, None
        least = max(1, least)
        is_any = language is None or language.is_any_text
        found = around = Language.any_text()
        if language is not None:
            found, excludes = language, [text for text in excludes if not language.lacks(text)]
        if excludes:
            found = found.intersect(*[around.concat(Language.literal(text), around).complement() for text in excludes])
        nonempty = found.bounded(1, None) if found.accepts("", budget) else found
        if is_any:
            last = frozenset(text[-1] for text in excludes)
            filler = next((each for each in _FILLERS if each not in last), None)
            if filler is not None:
                bytes_of_last = bytes(sorted({byte for each in last for byte in each.encode()}))
                return cls(nonempty, least, most, bytes_of_last, filler.encode(), max_tokens)
        if most is not None and least == 1 and not nonempty.is_empty(budget) and _may_always_end(nonempty, budget):
            return cls(nonempty, 1, most)
        return cls(nonempty if (least, most) == (1, None) else found.bounded(least, most), max_tokens=max_tokens)


def _may_always_end(language: Language, budget: Budget) -> bool:
    """Whether every beginning of a text is a text, the empty one aside; False if that takes long to find out."""
    if language.is_any_text:
        return True
    missing = language.automaton(budget).remaining_lengths(_MAX_COUNTED)
    return missing is not None and set(missing.values()) <= {0, 1} and sum(missing.values()) <= 1


@dataclass(frozen=True, slots=True)
class FillCloser:
    """Completes raw text that is too short.

    Attributes:
        least: its minimum of code points.
        filler: a character that may always follow.
    """

    least: int
    filler: bytes

    @property
    def weight(self) -> int:
        """Work of `text` in the units of WorkLimit."""
        return 1

    def text(self, register: Register, shortest: object, avoid: object) -> bytes:
        """The missing characters. May raise LongTextError."""
        assert isinstance(register, int)
        missing = max(0, self.least - register)
        Room().take(missing)
        return self.filler * missing


class RawEmbedding(Embedding):
    """The states of raw text, or of its beginnings that are too short to end."""

    def __init__(
        self,
        tables: Tables,
        automaton: EmbeddedAutomaton,
        raw: RawLanguage,
        facts: Callable[[int], int],
        *,
        longer: RawEmbedding | None,
    ) -> None:
        """Start empty.

        Args:
            facts: gives the index in `tables.texts` of the facts of a state of the automaton.
            longer: the states of texts that are long enough; None: these are they.
        """
        super().__init__(tables, automaton, is_deterministic=False)
        self._raw, self._facts, self._longer = raw, facts, longer
        if longer is not None:
            self._acc = OPEN

    def state(self, local: int) -> int:
        """See `Embedding.state`."""
        is_new = local not in self._states
        found = super().state(local)
        if is_new and self._automaton.is_between_characters(local):
            tables, raw = self._tables, self._raw
            tables.set_state(found, SLICE, TEXT_SLICE)
            tables.set_state(found, PARAM, self._facts(local))
            if self._longer is not None:
                tables.closers[found] = FillCloser(raw.least, raw.filler)
            if self._longer is not None or raw.most is not None:
                tables.counted[found] = (raw.least, _MANY if raw.most is None else raw.most)
        return found

    def _make_row(self, number: int) -> None:
        tables, automaton, local = self._tables, self._automaton, self._locals[number]
        targets, index = automaton.compressed_row(local)
        follow = self._counted() if automaton.is_between_characters(local) else self.state
        made = {target: NONE if target < 0 else follow(target) for target in dict.fromkeys(targets)}
        tables.set_state(number, ROW, tables.add_row_of([made[target] for target in targets], index))

    def _counted(self) -> Callable[[int], int]:
        """What makes the value of a byte that begins a character, from the next state of the automaton."""
        tables, raw, longer = self._tables, self._raw, self._longer
        if longer is not None:
            most, cap = (_MANY, raw.least) if raw.most is None else (raw.most, raw.most)
            return lambda to: tables.action(COUNT_UP, self.state(to), longer.state(to), raw.least, most, cap)
        if raw.most is not None:
            most = raw.most
            return lambda to: tables.action(COUNT, self.state(to), most, most)
        return self.state


class CountedTokens(RawEmbedding):
    """The states of raw text with a bound on its tokens, which the register counts.

    Each state has a twin for when as many tokens have ended in the text: the twin between two characters can only end, and the twin within
    a character completes it. `MachineGrammar.after` counts and moves the heads (`tables.token_bounds`).
    """

    def __init__(
        self, tables: Tables, automaton: EmbeddedAutomaton, raw: RawLanguage, facts: Callable[[int], int]
    ) -> None:
        """Start empty; see `RawEmbedding`."""
        super().__init__(tables, automaton, raw, facts, longer=None)
        assert raw.max_tokens is not None
        self._max_tokens = raw.max_tokens
        self._twins: dict[int, int] = {_DEAD: NONE}
        self._twin_locals: dict[int, int] = {}
        self.state(automaton.start)  # from here on `token_bounds` tells that tokens are counted

    def state(self, local: int) -> int:
        """See `Embedding.state`."""
        found = self._states.get(local)
        if found is None:
            num_known = len(self._states)
            found = super().state(local)
            for each, number in islice(self._states.items(), num_known, None):  # a character's states come together
                if number not in self._tables.token_bounds:
                    self._tables.token_bounds[number] = (self._max_tokens, self._twin(each))
            if self._automaton.is_between_characters(local):
                self._tables.counted[found] = (0, _MANY)  # masks do not depend on the count
        return found

    def _twin(self, local: int) -> int:
        """The state in which the text is as long as it may be."""
        twin = self._twins.get(local)
        if twin is None:
            automaton, tables = self._automaton, self._tables
            if automaton.is_between_characters(local):
                twin = tables.add_state(acc=ENDS if automaton.is_accepting(local) else OPEN)
            elif continuation_state(tables, automaton, local, self._twin, self._twins) is not None:
                return self._twins[local]
            else:
                twin = tables.leave_open(self._make_twin)
                self._twin_locals[twin] = local
            self._twins[local] = twin
        return twin

    def _make_twin(self, number: int) -> None:
        targets, index = self._automaton.compressed_row(self._twin_locals[number])
        self._tables.set_state(number, ROW, self._tables.add_row_of([self._twin(to) for to in targets], index))


def raw_embedding(tables: Tables, raw: RawLanguage, follow: bytes, budget: Budget) -> RawEmbedding:
    """Add raw text to tables.

    Args:
        follow: the bytes that may come right after it.
    Raises:
        GrammarError: the language is empty, or the budget ran out.
    """
    automaton = raw.language.automaton(budget)
    breaking = automaton.breaking_bytes(_MAX_INSPECTED) or {} if raw.last is None else {}
    known: dict[bytes | None, int] = {}

    def facts(local: int) -> int:
        """The index of the facts of a state, which many states share."""
        last = breaking.get(local, raw.last)
        if last is not None and sum(byte in _PRINTED for byte in last) > len(_PRINTED) // 2:
            last = None  # few texts are allowed
        if last not in known:
            known[last] = len(tables.texts)
            tables.texts.append(TextFacts(-1, last, follow, raw.most))
        return known[last]

    if raw.max_tokens is not None:
        return CountedTokens(tables, automaton, raw, facts)
    embedding = RawEmbedding(tables, automaton, raw, facts, longer=None)
    if raw.least > 1:
        embedding = RawEmbedding(tables, automaton, raw, facts, longer=embedding)
    return embedding
