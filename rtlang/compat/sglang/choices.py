"""Methods that choose among options by log-probability: the three built-in ones, and the base class of custom ones.

The engine makes the choices of the three methods itself. Here they are functions of numbers, which also describe a choice in its meta
information. A log-probability of a token is a tuple (log-probability, token id, text).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SelectMethod


@dataclass
class ChoicesDecision:
    """The chosen option, and facts about the choice."""

    decision: str
    meta_info: dict[str, Any] | None = None


class ChoicesSamplingMethod(ABC):
    """A method to choose. Subclasses define `__call__`, and say whether they need log-probabilities without the prompt."""

    @property
    def requires_unconditional_logprobs(self) -> bool:
        """Whether `unconditional_token_logprobs` are needed."""
        return False

    @abstractmethod
    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: list[list[Any]],
        output_token_logprobs: list[list[Any]],
        unconditional_token_logprobs: list[list[Any]] | None = None,
    ) -> ChoicesDecision:
        """Choose.

        Args:
            normalized_prompt_logprobs: for each option the mean log-probability of its tokens.
            input_token_logprobs: for each option the log-probabilities of its tokens.
            output_token_logprobs: nothing is generated, so one empty list for each option.
            unconditional_token_logprobs: as `input_token_logprobs`, without the prompt.
        """


class TokenLengthNormalized(ChoicesSamplingMethod):
    """The option with the largest mean log-probability."""

    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: list[list[Any]],
        output_token_logprobs: list[list[Any]],
        unconditional_token_logprobs: list[list[Any]] | None = None,
    ) -> ChoicesDecision:
        """See `ChoicesSamplingMethod`."""
        facts = _facts(normalized_prompt_logprobs, input_token_logprobs, output_token_logprobs)
        return ChoicesDecision(choices[_first_best(normalized_prompt_logprobs)], facts)


class GreedyTokenSelection(ChoicesSamplingMethod):
    """Keeps the likelier options token by token. An option without a token left is compared by its mean log-probability."""

    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: list[list[Any]],
        output_token_logprobs: list[list[Any]],
        unconditional_token_logprobs: list[list[Any]] | None = None,
    ) -> ChoicesDecision:
        """See `ChoicesSamplingMethod`."""
        rows = [[entry[0] for entry in option] for option in input_token_logprobs]
        width = max(map(len, rows))
        matrix = [row + [fmean(row)] * (width - len(row)) for row in rows]
        left = list(range(len(matrix)))
        for column in range(width):
            top = max(matrix[row][column] for row in left)
            left = [row for row in left if matrix[row][column] == top]
        facts = _facts(normalized_prompt_logprobs, input_token_logprobs, output_token_logprobs)
        return ChoicesDecision(choices[left[0]], facts | {"greedy_logprob_matrix": matrix})


class UnconditionalLikelihoodNormalized(ChoicesSamplingMethod):
    """The option whose mean log-probability the prompt raises most."""

    @property
    def requires_unconditional_logprobs(self) -> bool:
        """See `ChoicesSamplingMethod`."""
        return True

    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: list[list[Any]],
        output_token_logprobs: list[list[Any]],
        unconditional_token_logprobs: list[list[Any]] | None = None,
    ) -> ChoicesDecision:
        """See `ChoicesSamplingMethod`. An unconditional log-probability of None, which a first token may have, counts as 0.

        Raises:
            ValueError: the unconditional log-probabilities are missing, or are of other tokens.
        """
        if unconditional_token_logprobs is None:
            raise ValueError("this method needs unconditional_token_logprobs")
        gains = []
        for given, alone in zip(input_token_logprobs, unconditional_token_logprobs, strict=True):
            if len(given) != len(alone):
                raise ValueError(f"{len(given)} log-probabilities with the prompt, but {len(alone)} without it")
            gains.append(fmean(entry[0] - (other[0] or 0.0) for entry, other in zip(given, alone, strict=True)))
        facts = _facts(normalized_prompt_logprobs, input_token_logprobs, output_token_logprobs)
        facts["unconditional_token_logprobs"] = unconditional_token_logprobs
        facts["normalized_unconditional_prompt_logprobs"] = gains
        return ChoicesDecision(choices[_first_best(gains)], facts)


def _facts(normalized: list[float], given: list[list[Any]], generated: list[list[Any]]) -> dict[str, Any]:
    return {
        "normalized_prompt_logprobs": normalized,
        "input_token_logprobs": given,
        "output_token_logprobs": generated,
    }


def _first_best(values: Sequence[float]) -> int:
    """The index of the largest value; of several, the first."""
    return max(range(len(values)), key=values.__getitem__)


token_length_normalized = TokenLengthNormalized()
greedy_token_selection = GreedyTokenSelection()
unconditional_likelihood_normalized = UnconditionalLikelihoodNormalized()

_BY_ENGINE = {
    TokenLengthNormalized: SelectMethod.TOKEN_LENGTH_NORMALIZED,
    GreedyTokenSelection: SelectMethod.GREEDY_TOKEN_SELECTION,
    UnconditionalLikelihoodNormalized: SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED,
}


def engine_method(method: ChoicesSamplingMethod, choices: Sequence[str] = ()) -> SelectMethod | None:
    """The engine's name of a method that it applies itself, in the same way to these choices; None for another class."""
    found = _BY_ENGINE.get(type(method))
    if found is SelectMethod.GREEDY_TOKEN_SELECTION:
        for one in choices:  # a choice that ends within another is compared differently
            if any(other != one and other.startswith(one) for other in choices):
                return None
    return found


class _Plain(ChoicesSamplingMethod):
    """A function as a method."""

    def __init__(self, function: Callable[..., ChoicesDecision]) -> None:
        self._function = function

    @property
    def requires_unconditional_logprobs(self) -> bool:
        return bool(getattr(self._function, "requires_unconditional_logprobs", False))

    def __call__(self, **facts: Any) -> ChoicesDecision:
        return self._function(**facts)


def checked_method(method: object) -> ChoicesSamplingMethod:
    """The method, if it is one; a function that takes the same keywords becomes one.

    Raises:
        ParameterError: it is neither.
    """
    if callable(method) and not isinstance(method, (type, ChoicesSamplingMethod)):
        return _Plain(method)
    if not isinstance(method, ChoicesSamplingMethod):
        raise ParameterError(
            "choices_method",
            method,
            "expected token_length_normalized, greedy_token_selection, "
            "unconditional_likelihood_normalized, an instance of a subclass of ChoicesSamplingMethod, or a function",
        )
    return method
