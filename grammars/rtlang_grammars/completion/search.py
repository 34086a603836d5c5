"""Completion paths of a constrained text, as bytes: they stay valid however the model spells the text."""

from __future__ import annotations

from rtlang_grammars.completion.completion_path import CompletionPath, TokenTable
from rtlang_grammars.spec.protocols import GrammarMatcher
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.spec.work_limit import WorkLimit


class CompletionSearch:
    """Finds completion paths. Immutable; safe to use from several threads.

    Attributes:
        vocabulary: the model's tokens.
        table: the tokens by their bytes.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.table = TokenTable(vocabulary)

    def find(
        self,
        matcher: GrammarMatcher,
        limit: int,
        earlier: CompletionPath | None = None,
        work: WorkLimit | None = None,
    ) -> CompletionPath | None:
        """Find a completion of at most `limit` tokens, not necessarily the shortest. Does not change the matcher.

        Args:
            earlier: a path that may end like the new one, whose token costs are then reused.
            work: the work that the search may do; None for no limit.
        Returns:
            None if no such path was found.
        Raises:
            WorkLimitError: the search was stopped.
        """
        data = matcher.closing_bytes(work)
        if data is None:
            return None
        path = CompletionPath(data, self.table, None if earlier is None else _shared_end(data, earlier))
        return path if path.fits(limit, work=work) else None


def _shared_end(data: bytes, earlier: CompletionPath) -> tuple[CompletionPath, int] | None:
    """The earlier path and the offset from which on `data` ends with it; None if they end differently."""
    low, high = 0, min(len(data), len(earlier.data))
    while low < high:
        middle = (low + high + 1) // 2
        if data.endswith(earlier.data[len(earlier.data) - middle :]):
            low = middle
        else:
            high = middle - 1
    return (earlier, len(earlier.data) - low) if low else None
