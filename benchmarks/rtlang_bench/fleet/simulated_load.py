"""Programs for a simulated fleet: a template, a document, and several calls that each continue the same context."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

OUTPUT_WEIGHT = 4
"""Tokens of a prompt that take as long as one output token."""

TEMPLATE_TOKENS = (200, 1_400)
DOCUMENT_TOKENS = (1_000, 8_000)
CALLS = (2, 10)
MESSAGE_TOKENS = (10, 100)
OUTPUT_TOKENS = (20, 160)

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LoadShape:
    """Sizes of a simulation.

    Attributes:
        num_replicas, num_programs, num_templates, num_documents: counts.
        cache_tokens: capacity of each replica's cache, which evicts the least recently used.
    """

    num_replicas: int = 1_000
    num_programs: int = 1_000_000
    num_templates: int = 500
    num_documents: int = 100_000
    cache_tokens: int = 400_000

    def scaled_to(self, num_replicas: int) -> LoadShape:
        """A fleet of another size with as many programs and documents per replica, and the same templates."""
        factor = num_replicas / self.num_replicas
        return replace(
            self,
            num_replicas=num_replicas,
            num_programs=max(1, round(self.num_programs * factor)),
            num_documents=max(1, round(self.num_documents * factor)),
        )


@dataclass(frozen=True, slots=True)
class SimulatedLoad:
    """Programs in the order of their arrival. All sizes are in tokens, lists are by program, document or call.

    Attributes:
        documents: the document of each program.
        templates: the template of each document.
        template_tokens, document_tokens: sizes.
        first_calls: index of the first call of each program, and the number of calls at the end.
        message_tokens, output_tokens: of each call.
        alone: tokens that a program computes on average on a replica that holds nothing, output tokens weighted.
    """

    shape: LoadShape
    documents: list[int]
    templates: list[int]
    template_tokens: list[int]
    document_tokens: list[int]
    first_calls: list[int]
    message_tokens: list[int]
    output_tokens: list[int]
    alone: float

    def arrivals(self, load: float, seed: int) -> list[float]:
        """Times of arrival, of a Poisson process. The unit of time is that in which a replica computes one token.

        Args:
            load: of the fleet, if every program were computed on a replica that holds nothing of it; 1 for all of it.
        """
        gaps = np.random.default_rng(seed).exponential(
            self.alone / (load * self.shape.num_replicas), len(self.documents)
        )
        return list(map(float, np.cumsum(gaps)))


def make_load(shape: LoadShape, seed: int) -> SimulatedLoad:
    """Random programs: templates by Zipf's law with the exponent 0.8, documents with 0.9."""
    random = np.random.default_rng(seed)
    templates = zipf(random, shape.num_templates, 0.8, shape.num_documents)
    documents = zipf(random, shape.num_documents, 0.9, shape.num_programs)
    template_tokens = uniform(random, TEMPLATE_TOKENS, shape.num_templates)
    document_tokens = uniform(random, DOCUMENT_TOKENS, shape.num_documents)
    calls = uniform(random, CALLS, shape.num_programs)
    num_calls = int(calls.sum())
    messages = uniform(random, MESSAGE_TOKENS, num_calls)
    outputs = uniform(random, OUTPUT_TOKENS, num_calls)
    prefixes = template_tokens[templates[documents]] + document_tokens[documents]
    total = prefixes.sum() + messages.sum() + OUTPUT_WEIGHT * outputs.sum()
    return SimulatedLoad(
        shape,
        documents.tolist(),
        templates.tolist(),
        template_tokens.tolist(),
        document_tokens.tolist(),
        [0, *np.cumsum(calls).tolist()],
        messages.tolist(),
        outputs.tolist(),
        float(total) / shape.num_programs,
    )


def zipf(random: np.random.Generator, num_items: int, exponent: float, count: int) -> Counts:
    """Items from 0 on, each with a probability that is its rank to the power of `-exponent`; ranks are mixed among the items."""
    ends = np.cumsum(np.arange(1, num_items + 1, dtype=np.float64) ** -exponent)
    ranks = np.searchsorted(ends, random.random(count) * ends[-1], side="right")
    found: Counts = random.permutation(num_items)[np.minimum(ranks, num_items - 1)]
    return found


def uniform(random: np.random.Generator, bounds: tuple[int, int], count: int) -> Counts:
    """Integers from the first to the last of the bounds."""
    return random.integers(bounds[0], bounds[1] + 1, count)
