"""Scores the choices of `select` from their log-probabilities. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rtlang.contract.events import TokenLogprob
from rtlang.contract.params import SelectMethod


def token_logprobs(tokens: Sequence[int], scores: Iterable[TokenLogprob], vocab_size: int) -> tuple[TokenLogprob, ...]:
    """The log-probability of each token of a choice.

    A model gives no probability to a token that nothing stands before: to the first token of a sequence, if there is no start token. All
    tokens of the vocabulary are taken as equally likely there.

    Args:
        scores: those that the model gives: of all tokens, or of all but the first.
    """
    given = tuple(scores)
    assert len(tokens) - len(given) in (0, 1)
    return given if len(given) == len(tokens) else (TokenLogprob(tokens[0], -math.log(vocab_size)), *given)


def select_scores(
    method: SelectMethod,
    tokens: Sequence[tuple[int, ...]],
    conditional: Sequence[Sequence[float]],
    unconditional: Sequence[Sequence[float]],
) -> list[float]:
    """The score of each choice under `method`; the highest score wins, ties go to the first choice.

    Args:
        tokens: token ids of each choice.
        conditional: log-probabilities of these tokens given the prompt, one per token.
        unconditional: the same without the prompt; may be empty.
    """
    match method:
        case SelectMethod.TOKEN_LENGTH_NORMALIZED:
            return [sum(values) / len(values) for values in conditional]
        case SelectMethod.FULL_LIKELIHOOD:
            return [sum(values) for values in conditional]
        case SelectMethod.UNCONDITIONAL_LIKELIHOOD_NORMALIZED:
            return [
                sum(values) / len(values) - sum(prior) / len(prior)
                for values, prior in zip(conditional, unconditional, strict=True)
            ]
        case SelectMethod.GREEDY_TOKEN_SELECTION:
            return _greedy_scores(tokens, conditional)


def _greedy_scores(tokens: Sequence[tuple[int, ...]], logprobs: Sequence[Sequence[float]]) -> list[float]:
    """Score 1 for the choice reached by repeatedly taking the most likely next token of the remaining choices, 0 for the others.

    A choice that is a prefix of others wins if the most likely next token of the others has a probability below one half.
    """
    alive = list(range(len(tokens)))
    depth = 0
    while len(alive) > 1:
        ended = [index for index in alive if len(tokens[index]) == depth]
        alive = [index for index in alive if len(tokens[index]) > depth]
        best = max(alive, key=lambda index: logprobs[index][depth], default=None)
        if best is None or (ended and logprobs[best][depth] < math.log(0.5)):
            alive = ended[:1]
            break
        alive = [index for index in alive if tokens[index][depth] == tokens[best][depth]]
        depth += 1
    return [1.0 if index == alive[0] else 0.0 for index in range(len(tokens))]


def softmax(values: Iterable[float]) -> tuple[float, ...]:
    """Probabilities proportional to the exponentials of `values`."""
    numbers = list(values)
    top = max(numbers)
    weights = [math.exp(value - top) for value in numbers]
    total = sum(weights)
    return tuple(weight / total for weight in weights)
