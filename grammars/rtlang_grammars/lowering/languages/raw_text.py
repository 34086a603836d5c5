"""Raw text within a larger text: any text, or one of a language, that does not contain the marks around it.

Its states carry facts from which masks are made without a walk over the whole vocabulary (`machine.raw_masks`): which bytes may
complete an excluded text, and which may follow the raw text. Code points are counted in the register where every beginning may end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rtlang_grammars.lowering.languages.embedding import EmbeddedAutomaton, Embedding
from rtlang_grammars.machine.automaton.json_base_states import TEXT_SLICE
from rtlang_grammars.machine.automaton.layout import COUNT, COUNT_UP, NONE, OPEN, PARAM, ROW, SLICE
from rtlang_grammars.machine.automaton.tables import Register, Tables, TextFacts
from rtlang_grammars.machine.automaton.text_limit import Room
from rtlang_grammars.regular.language import Language
from rtlang_grammars.spec.limits import Budget

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
    """

    language: Language
    least: int = 1
    most: int | None = None
    last: bytes | None = None
    filler: bytes = b""

    @classmethod
    def of(
        cls, language: Language | None, excludes: Sequence[str], least: int, most: int | None, budget: Budget
    ) -> RawLanguage:
        """The nonempty texts of a language (None: all texts) without the excluded ones as parts, with `least` to `most` code points.

        Raises:
            GrammarError: the budget ran out.
        """
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
                return cls(nonempty, least, most, bytes_of_last, filler.encode())
        if most is not None and least == 1 and not nonempty.is_empty(budget):
            missing = nonempty.automaton(budget).remaining_lengths(_MAX_COUNTED)
            if missing is not None and set(missing.values()) <= {0, 1} and sum(missing.values()) <= 1:
                return cls(nonempty, 1, most)
        return cls(nonempty if (least, most) == (1, None) else found.bounded(least, most))


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

    embedding = RawEmbedding(tables, automaton, raw, facts, longer=None)
    if raw.least > 1:
        embedding = RawEmbedding(tables, automaton, raw, facts, longer=embedding)
    return embedding
