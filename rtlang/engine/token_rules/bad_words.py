"""Keeps a text free of given words: the last token of a word is not sampled after its other tokens.

As in vLLM, a word is the token sequence of its text, alone and after a space, and only generated tokens count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

BAN = float("-inf")


class BadWords:
    """The rule `bad_words`; see `rtlang.contract.step.TokenRule`.

    Args:
        words: none is empty.
        encode: the tokens of a text that continues another one.
    """

    def __init__(self, words: Iterable[str], encode: Callable[[str], Sequence[int]]) -> None:
        sequences = {tuple(encode(form)) for word in words for form in _forms(word)}
        self._banned = {sequence[0]: BAN for sequence in sequences if len(sequence) == 1}
        # by the last token but one: the sequences that may be completed after it
        self._endings: dict[int, list[tuple[int, ...]]] = {}
        for sequence in sequences:
            if len(sequence) > 1:
                self._endings.setdefault(sequence[-2], []).append(sequence)

    def biases(self, output_token_ids: Sequence[int]) -> Mapping[int, float]:
        """See `TokenRule`."""
        found = self._endings.get(output_token_ids[-1]) if output_token_ids else None
        if found is None:
            return self._banned
        banned = dict(self._banned)
        for sequence in found:
            num_before = len(sequence) - 1
            if num_before <= len(output_token_ids) and tuple(output_token_ids[-num_before:]) == sequence[:-1]:
                banned[sequence[-1]] = BAN
        return banned


def _forms(word: str) -> tuple[str, ...]:
    """A word alone and after a space; white space as it is."""
    bare = word.lstrip()
    return (bare, f" {bare}") if bare else (word,)
