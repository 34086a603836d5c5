"""`/score` and `/v1/score`: how likely texts are after a prompt under the model, in the shape of vLLM's route.

vLLM scores pairs of texts with a cross-encoder. Here the model generates text, so the score of `text_2` is its log-probability after
`text_1`, as `select` in programs computes it: the sum over the tokens of the text (`full_likelihood`), or by another method of `select`. As
in vLLM, one `text_1` is paired with each `text_2`, or both are lists of the same length. The graph has a prompt and a select for each
`text_1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import Event, NodeFinished, TextDelta
from rtlang.contract.params import SelectMethod
from rtlang.contract.request_graph import Node, RequestGraph, Select, Text
from rtlang.serve.openai import sampling
from rtlang.serve.openai.completions import read_model
from rtlang.serve.openai.fields import SALTS, FieldTable, read_cache_salt
from rtlang.serve.openai.shapes import Asked, Heading, UsageCount

MAX_TEXTS = 1024
FIELDS = FieldTable(
    accepted=frozenset(("model", "text_1", "text_2", "queries", "documents", "method", "priority", *SALTS)),
    fixed={"add_special_tokens": (True,), "use_activation": (False,), "softmax": (False,)},
    refused={"truncate_prompt_tokens": "not supported: it would score another text"},
)
"""The fields of the route. `queries` and `documents` are other names of `text_1` and `text_2`."""
_METHODS = tuple(SelectMethod)


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """A request as a graph, and which scores it asks for.

    Attributes:
        places: of each score, the node of its select and the number of its choice.
    """

    asked: Asked
    places: tuple[tuple[int, int], ...]


def read_score(body: Mapping[str, Any]) -> ScoreRequest:
    """Read a request.

    Raises:
        ParameterError: a field is not supported, missing or invalid; names it.
    """
    given = FIELDS.given(body)
    prompts, prompt_field = _texts(given, "text_1", "queries")
    choices, choice_field = _texts(given, "text_2", "documents")
    method = given.get("method", SelectMethod.FULL_LIKELIHOOD.value)
    if method not in _METHODS:
        raise ParameterError("method", method, f"expected one of {', '.join(_METHODS)}")
    for i, text in enumerate(choices):
        if not text:
            raise ParameterError(f"{choice_field}[{i}]", text, "expected text that is not empty")
    if len(prompts) == 1:
        groups = [(prompts[0], tuple(dict.fromkeys(choices)))]
        places = [(1, groups[0][1].index(text)) for text in choices]
    elif len(prompts) == len(choices):
        groups = [(prompt, (choice,)) for prompt, choice in zip(prompts, choices, strict=True)]
        places = [(2 * i + 1, 0) for i in range(len(prompts))]
    else:
        raise ParameterError(
            prompt_field, len(prompts), f"expected 1 text, or as many as {choice_field} ({len(choices)})"
        )
    nodes: list[Node] = []
    for i, (prompt, texts) in enumerate(groups):
        nodes.append(Text(2 * i, None, (prompt,) if prompt else ()))
        nodes.append(Select(2 * i + 1, 2 * i, None, texts, SelectMethod(method)))
    graph = RequestGraph(tuple(nodes), outputs=tuple(range(1, len(nodes), 2)))
    priority = sampling.read_priority(given)
    asked = Asked(graph, read_model(given), priority, False, prompt_field, choice_field, read_cache_salt(given))
    return ScoreRequest(asked, tuple(places))


def _texts(given: Mapping[str, Any], *names: str) -> tuple[list[str], str]:
    """The texts of a field that has several names, and the name."""
    named = [name for name in names if name in given]
    if len(named) > 1:
        raise ParameterError(named[1], "...", f"another name of {named[0]}; give one of them")
    name = named[0] if named else names[0]
    value = given.get(name)
    found = [value] if isinstance(value, str) else value
    if (
        not isinstance(found, list)
        or not 1 <= len(found) <= MAX_TEXTS
        or not all(isinstance(each, str) for each in found)
    ):
        raise ParameterError(name, value, f"expected a string, or a list of 1 to {MAX_TEXTS} strings")
    return found, name


class ScoreWriter:
    """Turns the events of a request into its response. There is no stream."""

    def __init__(self, request: ScoreRequest, heading: Heading) -> None:
        self._request, self._heading = request, heading

    def response(self, events: Iterable[Event]) -> dict[str, Any]:
        """The response to all events of a graph whose nodes have all finished.

        Beside vLLM's fields, an entry has `logprob`, the sum over the tokens of the text, `num_tokens`, and `probability`, its share
        among the texts of the same prompt. The first two are None on a server that does not tell the tokens of choices.
        """
        usage, found = UsageCount(), {event.node_id: event for event in events if isinstance(event, NodeFinished)}
        for event in found.values():
            usage.add(event.usage, 1)
        data = [
            self._entry(index, found[node_id], choice) for index, (node_id, choice) in enumerate(self._request.places)
        ]
        return {
            "id": self._heading.response_id,
            "object": "list",
            "created": self._heading.created,
            "model": self._heading.model,
            "data": data,
            "usage": usage.map,
        }

    @staticmethod
    def _entry(index: int, event: NodeFinished, choice: int) -> dict[str, Any]:
        assert event.scores is not None
        assert event.probabilities is not None
        tokens = None if event.choice_logprobs is None else event.choice_logprobs[choice]
        return {
            "index": index,
            "object": "score",
            "score": event.scores[choice],
            "logprob": None if tokens is None else sum(each.logprob for each in tokens),
            "num_tokens": None if tokens is None else len(tokens),
            "probability": event.probabilities[choice],
        }

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]:
        """Nothing."""
        return iter(())

    def text_event(self, event: TextDelta) -> str | None:
        """Nothing."""
        return None

    def last_chunks(self) -> Iterator[dict[str, Any]]:
        """Nothing."""
        return iter(())
