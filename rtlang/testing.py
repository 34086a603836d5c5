"""Tests of programs without a model: `ScriptedRuntime` answers from a script. Needs no torch."""

from __future__ import annotations

import inspect
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rtlang.contract.errors import InvalidValueError, ParameterError, RequestError, RtlangError
from rtlang.contract.events import Completion, NodeFinished, Timing, TokenLogprob
from rtlang.contract.graph.host_calls import to_plain
from rtlang.contract.graph.node_paths import attempted_name
from rtlang.contract.graph.value_size import check_plain
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.request_graph import Generate, Select
from rtlang.contract.runs.known import KnownOutcome
from rtlang.runtime.scripted_runtime import AskedNode, ModelFreeRuntime
from rtlang.runtime.texts.shortest_text import allows, shortest_text, stopped_text

Answer = str | int | BaseException | Sequence[Any] | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A generation or select that a program asked for.

    Attributes:
        name: of the generation; None if it has none.
        prompt: the text before it; messages are written as `User: ...` and `Assistant: ...`, one per line.
        node: its parameters, constraint or choices.
        number: how many of this name came before.
    """

    name: str | None
    prompt: str
    node: Generate | Select
    number: int


class Cut(str):
    """An answer of a script that is cut at `max_tokens`: its finish reason is "length"."""

    __slots__ = ()


def tool_call(name: str, /, **arguments: Any) -> str:
    """The answer of a script that calls a tool: `tool_call("search", query="rivers")`.

    It is written in the format of runtimes without a model. Several calls of one answer (`parallel=True`) are one on each line.

    Raises:
        ParameterError: an argument is not plain data.
    """
    return _json({"name": name, "arguments": arguments})


class ScriptedRuntime(ModelFreeRuntime):
    """A runtime for tests: pass it as `runtime=`.

    An answer is
      - text; for a select also the index of the choice,
      - a value that is written as JSON: a dict, a number, a boolean, a dataclass or a model; `tool_call(...)` for a call of a tool,
      - an exception, which fails the generation,
      - `Cut(text)`, a text that ends at `max_tokens`: its finish reason is "length",
      - a list of these, one for each request of that name in order (forks, iterations, the choices of `n`),
      - a function of the prompt, or of the prompt and the `SeenRequest`, that returns one of these but a list.

    A text is the whole answer, whatever `max_tokens` is: the script itself says where a text is cut. Only in a run with a budget, which
    counts a character as a token, free text has at most `max_tokens` characters.

    A generation without an answer gets `default`, or the shortest text that its constraint allows, or its name in angle brackets; a select
    the first choice. An answer that a constraint forbids fails the generation, as a model could not have given it.

    Args:
        answers: by the name of the generation, with or without its scopes ("round.step" or "step"); those without a name have the key None.
        default: for generations without a constraint.
        delay_s: seconds until each answer, or by name.
        checks: whether answers are compared with constraints and choices, and end before stop strings.
    Attributes:
        requests: the received requests, in order.
        model_identity: the same for all scripts, so that a recording or a journal goes on with another one.
    """

    model_identity = "scripted"

    def __init__(
        self,
        answers: Mapping[str | None, Answer] | None = None,
        *,
        default: Answer | None = None,
        delay_s: float | Mapping[str, float] = 0.0,
        checks: bool = True,
    ) -> None:
        if answers is not None and not isinstance(answers, Mapping):
            raise ParameterError("answers", answers, "expected a dict of answers by name")
        self.requests: list[SeenRequest] = []
        self._answers, self._default, self._delay_s, self._checks = dict(answers or {}), default, delay_s, checks
        self._lock = threading.Lock()
        self._num_asked: dict[str | None, int] = {}
        self._used: dict[str | None, int] = {}
        super().__init__(self._reply)

    def count(self, name: str | None) -> int:
        """The number of requested generations and selects with this name."""
        return len(self.prompts(name))

    def prompts(self, name: str | None) -> list[str]:
        """The prompts of the generations and selects of this name, in order."""
        return [request.prompt for request in list(self.requests) if name in (request.name, _own_name(request.name))]

    def assert_all_used(self) -> None:
        """Raise AssertionError if an answer was never requested: its name may be misspelt, or the program took another branch."""
        with self._lock:
            used, asked = dict(self._used), set(self._num_asked)
        unused = []
        for name, answer in self._answers.items():
            if not used.get(name):
                unused.append(repr(name))
            elif isinstance(answer, (list, tuple)) and used[name] < len(answer):
                unused.append(f"{name!r} ({len(answer) - used[name]} of {len(answer)} answers)")
        if unused:
            known = ", ".join(sorted(repr(name) for name in asked)) or "nothing"
            raise AssertionError(f"unused answers: {', '.join(unused)}; the program asked for {known}")

    # On the runtime's thread

    def _reply(self, asked: AskedNode) -> bool:
        node = asked.node
        if not isinstance(node, (Generate, Select)):
            return False
        name = self._name_of(node)
        with self._lock:
            number = self._num_asked.get(name, 0)
            self._num_asked[name] = number + 1
        request = SeenRequest(name, asked.prompt, node, number)
        self.requests.append(request)
        delay = self._delay_s if isinstance(self._delay_s, (int, float)) else self._delay_s.get(node.name or "", 0.0)
        outcome = KnownOutcome(self._outcome(request, has_budget=asked.has_budget), is_replayed=False)
        if delay > 0:
            asked.later(delay, lambda: asked.end(outcome))
        else:
            asked.end(outcome)
        return True

    def _name_of(self, node: Generate | Select) -> str | None:
        """The name of a generation; of an attempt of one with checks, which has none itself, the name in its path."""
        if node.name is not None or node.path is None:
            return node.name
        name = attempted_name(node.path)
        return None if name is None else next((each for each in self._answers if _own_name(each) == name), None)

    def _outcome(self, request: SeenRequest, *, has_budget: bool) -> NodeFinished | RtlangError:
        node = request.node
        completions = []
        try:
            for choice in range(node.params.n if isinstance(node, Generate) else 1):
                answer = self._answer_of(request, choice)
                completions.append(self._completion(node, answer, has_budget=has_budget))
        except RtlangError as error:
            return error
        except Exception as error:
            return RequestError(f"the answer of {request.name!r} failed: {type(error).__name__}: {error}")
        scores = probabilities = None
        if isinstance(node, Select):
            scores = tuple(-1.0 if text == completions[0].text else -2.0 for text in node.choices)
            total = sum(map(math.exp, scores))
            probabilities = tuple(math.exp(score) / total for score in scores)
        num_tokens = sum(len(each.token_ids) for each in completions)
        usage = Usage(len(request.prompt) * len(completions), 0, num_tokens)
        return NodeFinished(0, 0, node.name, tuple(completions), usage, Timing(), scores, probabilities)

    def _answer_of(self, request: SeenRequest, choice: int) -> Any:
        """The answer of one completion: text, an index, or raises."""
        name = request.name if request.name in self._answers else _own_name(request.name)
        if name not in self._answers:
            return self._default_of(request)
        answer: Any = self._answers[name]
        with self._lock:
            number = self._used.get(name, 0)
            self._used[name] = number + 1
        if isinstance(answer, (list, tuple)):
            if number >= len(answer):
                raise RequestError(
                    f"the script has {len(answer)} answers for {name!r}, and this is request {number + 1}"
                )
            answer = answer[number]
        return _called(answer, request)

    def _default_of(self, request: SeenRequest) -> Any:
        node = request.node
        if isinstance(node, Select):
            return 0
        if node.constraint is not None:
            return shortest_text(node.constraint)
        if self._default is not None:
            return _called(self._default, request)
        return f"<{node.name or 'text'}>"

    def _completion(self, node: Generate | Select, answer: Any, *, has_budget: bool) -> Completion:
        if isinstance(node, Select):
            text = _chosen(node, answer)
            return _complete(text, FinishReason.STOP, has_logprobs=True)
        if not isinstance(answer, str):
            answer = _json(answer)
        text, reason, match = str(answer), FinishReason.LENGTH if isinstance(answer, Cut) else FinishReason.STOP, None
        if self._checks:
            if node.constraint is not None:
                keeps_invalid = isinstance(node, Generate) and node.params.keeps_invalid
                refusal = allows(node.constraint, answer, has_checks=not keeps_invalid)
                if refusal is not None:
                    raise InvalidValueError(answer, f"the constraint of {node.name!r} does not allow it: {refusal}", 1)
            text, match = stopped_text(text, node.params, node.constraint)
            if match is not None:
                reason = FinishReason.STOP
            is_limited = has_budget or node.params.max_tokens == 0
            if node.constraint is None and is_limited and len(text) > node.params.max_tokens:
                text, reason, match = text[: node.params.max_tokens], FinishReason.LENGTH, None
        completion = _complete(text, reason, has_logprobs=node.params.logprobs is not None)
        return completion if match is None else replace(completion, stop_match=match)


def _own_name(name: str | None) -> str | None:
    """The name of a generation without its scopes."""
    return None if name is None else name.rpartition(".")[2]


def _called(answer: Any, request: SeenRequest) -> Any:
    """The text or index that an answer stands for; raises it if it is an exception."""
    if callable(answer) and not isinstance(answer, (BaseException, type)):
        num_args = len(inspect.signature(answer).parameters)
        answer = answer(request.prompt) if num_args == 1 else answer(request.prompt, request)
    if isinstance(answer, BaseException):
        if isinstance(answer, RtlangError):
            raise answer
        raise RequestError(f"{type(answer).__name__}: {answer}")
    return answer


def _json(answer: Any) -> str:
    plain = to_plain(answer)
    problem = "None has no text" if plain is None else check_plain(plain)
    if problem is not None:
        raise ParameterError(
            "answers",
            answer,
            f"expected text, plain data, a dataclass or model, an exception, a list or a function: {problem}",
        )
    return json.dumps(plain, ensure_ascii=False)


def _chosen(node: Select, answer: Any) -> str:
    choices = node.choices
    if isinstance(answer, int) and not isinstance(answer, bool) and -len(choices) <= answer < len(choices):
        return choices[answer]
    if isinstance(answer, str) and answer in choices:
        return answer
    raise ParameterError(
        "answers", answer, f"expected one of the choices of {node.name!r}: {', '.join(map(repr, choices))}"
    )


def _complete(text: str, reason: FinishReason, *, has_logprobs: bool) -> Completion:
    token_ids = tuple(map(ord, text))
    logprobs = tuple(TokenLogprob(token_id, -1.0) for token_id in token_ids) if has_logprobs else None
    return Completion(text, token_ids, reason, None, logprobs)
