"""The complete tables with which a growing text is searched for a pattern, in time linear in the text.

A search follows one automaton for each place where a match may begin. All of them share one DFA over code points: the derivatives of the
pattern followed by any text. Its states say more than whether a match has ended: a state is *certain* if every continuation of the text
keeps the match, and it *accepts at the end* if the match stands should the text end here; with lookaheads the two differ. States from which
no match can follow are dropped, so what a search still follows is exactly what may still become a match.

The DFA is built completely, or refused: a search never builds a state. Lookbehinds depend on the text before a match, so the state of the
text read so far (the context) is followed as well and chooses the state in which a match begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from rtlang_grammars.regular.automata.branching import decoder_for
from rtlang_grammars.regular.automata.code_point_automaton import NO_STATE, CodePointAutomaton, sets_of
from rtlang_grammars.regular.automata.dead_ends import Configuration
from rtlang_grammars.regular.automata.terms import ANY_TEXT as ANY_TERM
from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.partition import Partition
from rtlang_grammars.regular.patterns import syntax
from rtlang_grammars.regular.patterns.escapes import RegexDialect
from rtlang_grammars.regular.patterns.parser import parse_pattern
from rtlang_grammars.regular.patterns.syntax import ANY_TEXT, AnchorKind
from rtlang_grammars.regular.patterns.zero_width import refuse_anchors, resolve_anchors, resolve_anchors_at
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget

_MAX_TABLE_ENTRIES = 1 << 19


@dataclass(frozen=True, slots=True)
class SearchTables:
    """The complete DFA of a search. Immutable; safe to share between threads.

    Attributes:
        partition: the character classes.
        moves: for each state, the next state by class; NO_STATE if no match can follow.
        is_certain: for each state, 1 if a match stands whatever follows.
        accepts_at_end: for each state, 1 if a match stands if the text ends here.
        context: the state before the text, for the text itself.
        first: the state in which a match at the start of the text begins; NO_STATE if none can.
        later: for each context, the state in which a match after it begins, after the start of the text.
    """

    partition: Partition
    moves: tuple[tuple[int, ...], ...]
    is_certain: bytes
    accepts_at_end: bytes
    context: int
    first: int
    later: tuple[int, ...]


def compile_search(
    pattern: str, *, max_states: int, budget: Budget, dialect: RegexDialect = RegexDialect.PYTHON
) -> SearchTables:
    """Compile a pattern to the tables of its search.

    Raises:
        GrammarError: a syntax error or an unsupported construct (backreferences, atomic groups, possessive quantifiers, conditionals), with
            `line:column`; or the search needs more than `max_states` states, or the budget ran out.
    """
    tree = syntax.concatenation([parse_pattern(pattern, dialect, budget), ANY_TEXT])
    first = resolve_anchors(tree, budget)
    later = resolve_anchors_at(refuse_anchors(tree, AnchorKind.START, budget), AnchorKind.END, budget)
    for each in (first, later):
        budget.check_depth(each.depth)
    return _SearchAutomaton(first, later, budget).complete(max_states, budget)


class _SearchAutomaton(CodePointAutomaton):
    """Both trees over one set of terms. `start` is the context before the text."""

    def __init__(self, first: syntax.PatternNode, later: syntax.PatternNode, budget: Budget) -> None:
        self._trees = first, later
        sets = frozenset([code_points.ALL, *sets_of(first), *sets_of(later)])
        super().__init__(ANY_TEXT, budget, decoder_for(sets))

    def _begin(self, tree: syntax.PatternNode) -> None:
        self._loaded = [
            self._terms.load(each) for each in self._trees
        ]  # before the context: it follows their lookbehinds
        super()._begin(tree)

    def complete(self, max_states: int, budget: Budget) -> SearchTables:
        """Build all states; see `compile_search`."""
        self._terms.budget = budget
        first, later = self._loaded
        begins = self._number((first, self._configurations[self.start][1]))
        starts: dict[int, int] = {}
        moves: list[tuple[int, ...]] = []
        while len(moves) < len(self._configurations):
            state = len(moves)
            term, behind = self._configurations[state]
            if term == ANY_TERM:  # a context, or a match that is certain
                starts[state] = self._number((later, behind))
            moves.append(self.moves(state, budget))
            if len(self._configurations) > max_states:
                raise GrammarError(f"too complex: the search needs more than {max_states} states")
            if len(self._configurations) * self.partition.num_classes > _MAX_TABLE_ENTRIES:
                raise GrammarError(f"too complex: the search needs tables of more than {_MAX_TABLE_ENTRIES} entries")
        return SearchTables(
            self.partition,
            tuple(moves),
            bytes(map(self._is_certain, self._configurations)),
            bytes(map(self._accepts, self._configurations)),
            self.start,
            begins,
            tuple(starts.get(state, NO_STATE) for state in range(len(moves))),
        )

    def _is_certain(self, configuration: Configuration) -> bool:
        """Whether every continuation is in the language of a state."""
        term, behind = configuration
        if term == ANY_TERM:
            return True
        if not self._accepts(configuration):
            return False
        return not self._dead_ends.is_live((self._terms.complement(term), behind))
