"""One node of a finished run, and the run in which its outcome is another one."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rtlang.contract.errors import ParameterError, TraceError, ValueParseError
from rtlang.contract.events import Completion, NodeFinished, Timing
from rtlang.contract.graph.host_calls import checked_answer, to_plain
from rtlang.contract.params import FinishReason, Usage
from rtlang.contract.pictures.node_links import NodeLinks
from rtlang.contract.request_graph import Call, Decide, Generate, Part, Ref, Select, choices_of, path_of
from rtlang.contract.runs.known import KnownOutcome
from rtlang.contract.runs.known_finder import Base, Edit
from rtlang.contract.service.target import Target
from rtlang.lang.execution.readings import RunReadings, StateReadings
from rtlang.lang.program_state.body import Body
from rtlang.lang.program_state.history import History
from rtlang.lang.program_state.variables import Reading, messages_of
from rtlang.lang.recordings.meta import Meta
from rtlang.lang.sessions.program_options import ProgramOptions

_Result = TypeVar("_Result")
_NOT_GIVEN: Any = object()
_KINDS = {"Generate": "generation", "Select": "choice", "Call": "call", "Switch": "branch", "Repeat": "loop"}


@dataclass(frozen=True, slots=True)
class Origin(Generic[_Result]):
    """How a result was computed, so that it can be computed again with another outcome.

    Attributes:
        run, arun: compute a body with options: a blocking function, and a coroutine function.
    """

    body: Body
    options: ProgramOptions
    run: Callable[[Body, ProgramOptions], _Result]
    arun: Callable[[Body, ProgramOptions], Coroutine[Any, Any, _Result]]


class RunNodes(Generic[_Result]):
    """The nodes of one finished run, by their paths.

    Args:
        origin: how it was computed; None for a result that was pickled.
    """

    def __init__(self, source: StateReadings, origin: Origin[_Result] | None) -> None:
        self.source, self.origin = source, origin
        self.record = source.record()
        self.links = NodeLinks(self.record)

    def at(self, path: str) -> NodeView[_Result]:
        """The node with this path.

        Raises:
            KeyError: there is none; lists the paths that are like it.
        """
        node_id, choice = self.links.ids.get(path), None
        if node_id is None and path.endswith("]"):
            whole, _, index = path[:-1].rpartition("[")
            found = self.links.ids.get(whole)
            if found is not None and index.isdigit() and int(index) < choices_of(self.links.node(found)):
                node_id, choice = found, int(index)
        if node_id is None:
            raise KeyError(_unknown(path, tuple(self.links.ids)))
        return NodeView(self, path, node_id, choice)

    def paths_of(self, node_ids: Sequence[int]) -> tuple[str, ...]:
        """The paths of nodes."""
        return tuple(self.record.node_paths[each] for each in node_ids)


class NodeView(Generic[_Result]):
    """One node of a finished run: a generation, a choice, a call, a branch, a loop or a decision.

    Attributes:
        path: its path, such as `fork[1]/tip`; with n > 1 a path such as `answer[1]` is one of its completions.
        name: the name of its variable, or None.
        kind: "generation", "choice", "call", "branch", "loop", or "vote", "best" or "first" for a decision.
    """

    def __init__(self, nodes: RunNodes[_Result], path: str, node_id: int, choice: int | None) -> None:
        self._nodes, self._node_id, self._choice = nodes, node_id, choice
        self.path = path
        self._node = node = nodes.links.node(node_id)
        self.name: str | None = getattr(node, "name", None)
        self.kind: str = _KINDS.get(type(node).__name__) or str(getattr(node, "how", "decision"))

    @property
    def value(self) -> Any:
        """Its value, a list for n > 1.

        Raises:
            RtlangError: it failed.
        """
        return self._read("value")

    @property
    def text(self) -> Any:
        """Its text, or that of its value; a list for n > 1. Raises as reading `value`."""
        return self._read("text")

    @property
    def meta(self) -> Meta | Any:
        """The `Meta` of a generation or choice, a list for n > 1; None for other nodes. Raises as reading `value`."""
        return self._read("meta")

    @property
    def error(self) -> str | None:
        """The type and message of its error; None if it did not fail."""
        record = self._nodes.record.nodes.get(self._node_id)
        return None if record is None else record.error

    @property
    def prompt(self) -> str:
        """The text of the sequence before it, without the marks of the chat template; empty for a node that continues none."""
        return "".join(self._text_of(part) for part in self._parts() if isinstance(part, (str, Ref)))

    @property
    def messages(self) -> list[dict[str, str]]:
        """The chat messages before it. The last one is the message in which it is, if it is in one."""
        return messages_of(self._parts(), lambda node_id, choice: self._nodes.record.text_of(node_id, choice) or "")

    @property
    def parents(self) -> tuple[str, ...]:
        """The paths of the nodes on which it builds directly: the one before it in its sequence, and values in the text between."""
        return self._nodes.paths_of(self._nodes.links.parents_of(self._node_id))

    @property
    def dependants(self) -> tuple[str, ...]:
        """The paths of the nodes that build on it directly."""
        return self._nodes.paths_of(self._nodes.links.dependants_of(self._node_id))

    def _rt_history(self) -> History:
        """The sequence that ends with it, for `rt.messages` and `rt.fit`."""
        source = self._nodes.source
        if not isinstance(source, RunReadings):
            raise TraceError(
                "a result that was pickled keeps whole sequences only: continue from the result or one of its forks"
            )
        if isinstance(self._node, (Call, Decide)):
            raise TraceError(
                f"{self.path} is a {self.kind} and no part of a sequence: continue from a node of the sequence"
            )
        if self._choice is None and choices_of(self._node) > 1:
            raise TraceError(
                f"{self.path} has {choices_of(self._node)} completions: continue from one such as {self.path}[0]"
            )
        return source.history_at(self._node_id, self._choice or 0)

    def edit(self, *, text: str | None = None, value: Any = _NOT_GIVEN, runtime: Target | None = None) -> _Result:
        """The result of the same program and arguments, where this node has another outcome.

        Only what depends on it is computed again; everything else is taken over, calls of functions included. Calls that depend on it
        run again. `usage` is what was computed. The seed is that of the run, if it was given one.

        Args:
            text: the new text of a generation or choice. It must parse as the type of the generation, and be one of the choices.
            value: the new value, in place of `text`: text, a number, a boolean, None, a member of an enum, or plain data; for a call the
                value of the function.
            runtime: where to compute; default: that of the run.
        Raises:
            TraceError: the node cannot be edited, or the result was pickled and has no program any more.
            ParameterError: the text or the value does not fit. And whatever `run` raises.
        """
        origin, options = self._edited(text, value, runtime)
        return origin.run(origin.body, options)

    async def aedit(
        self, *, text: str | None = None, value: Any = _NOT_GIVEN, runtime: Target | None = None
    ) -> _Result:
        """`edit` for coroutines."""
        origin, options = self._edited(text, value, runtime)
        return await origin.arun(origin.body, options)

    def _edited(self, text: str | None, value: Any, runtime: Target | None) -> tuple[Origin[_Result], ProgramOptions]:
        origin = self._nodes.origin
        if origin is None:
            raise TraceError(
                "a result that was pickled has no program: run it with program.run(..., base=result), and edit that result"
            )
        base = EditedRun(self._nodes.source, self._edit(text, value))
        options = replace(origin.options, base=base)
        return origin, options if runtime is None else replace(options, runtime=runtime)

    def _edit(self, text: str | None, value: Any) -> Edit | None:
        """The edit; None if the node has this outcome already."""
        node, links = self._node, self._nodes.links
        control = links.control_of(self._node_id)
        outer = self._node_id if control is None else control
        path = path_of(links.node(outer))
        if path is None or not isinstance(node, (Generate, Select, Call)):
            raise TraceError(f"{self.path} is a {self.kind}, whose outcome follows from its nodes: edit one of these")
        if (text is None) is (value is _NOT_GIVEN):
            raise ParameterError("text", text, "pass either text= or value=")
        if isinstance(node, Call):
            if text is not None:
                raise ParameterError("text", text, f"{self.path} is a call: pass value=")
            end = _finished(self._node_id, (), checked_answer(to_plain(value)))
        else:
            end = self._with_text(self._new_text(node, text, value), node)
        if self.error is None and self._is_as(end):
            return None
        return Edit(path, self._node_id - outer, KnownOutcome(end))

    def _is_as(self, end: NodeFinished) -> bool:
        source = self._nodes.source
        assert isinstance(source, RunReadings), "it has an origin"
        now = source.finished(self._node_id)
        texts, wanted = ([each.text for each in found.completions] for found in (now, end))
        return texts == wanted and json.dumps(now.value) == json.dumps(end.value)

    def _new_text(self, node: Generate | Select, text: str | None, value: Any) -> str:
        name = "value" if text is None else "text"
        text = _text_of_value(value) if text is None else text
        if not isinstance(text, str):
            raise ParameterError(name, text, "expected text")
        source = self._nodes.source
        assert isinstance(source, RunReadings), "it has an origin"
        if isinstance(node, Select) and text not in node.choices:
            raise ParameterError(name, text, f"expected one of the choices {', '.join(map(repr, node.choices))}")
        try:
            source.check_text(self._node_id, text)
        except ValueParseError as error:
            raise ParameterError(name, text, f"it is no value of {self.path}: {error.message}") from None
        return text

    def _with_text(self, text: str, node: Generate | Select) -> NodeFinished:
        count = choices_of(node)
        if count > 1 and self._choice is None:
            raise TraceError(
                f"{self.path} has {count} completions: edit one of {self.path}[0] to {self.path}[{count - 1}]"
            )
        edited = Completion(text, (), FinishReason.STOP)
        if self._choice is None:
            return _finished(self._node_id, (edited,), None)
        source = self._nodes.source
        assert isinstance(source, RunReadings), "it has an origin"
        completions = list(source.finished(self._node_id).completions)
        completions[self._choice] = edited
        return _finished(self._node_id, tuple(completions), None)

    def _parts(self) -> list[Part]:
        return self._nodes.links.parts_before(self._node_id)

    def _text_of(self, part: str | Ref) -> str:
        if isinstance(part, str):
            return part
        return self._nodes.record.text_of(part.node_id, part.choice) or ""

    def _read(self, which: Reading) -> Any:
        read, count = self._nodes.source.read_node, choices_of(self._node)
        if self._choice is not None:
            return read(self._node_id, self._choice, which)
        found = [read(self._node_id, choice, which) for choice in range(count)]
        return found if count > 1 else found[0]

    def __repr__(self) -> str:
        shown = self.error or repr(self._nodes.record.text_of(self._node_id, self._choice or 0))
        return f"<{self.kind} {self.path}: {shown if len(shown) < 80 else shown[:77] + '...'}>"


@dataclass(frozen=True, slots=True)
class EditedRun:
    """A finished run with at most one outcome changed, for another run to take over."""

    source: StateReadings
    edit: Edit | None

    @property
    def _rt_model(self) -> str | None:
        return self.source.model

    def _rt_base(self) -> Base:
        return Base(self.source.known_outcomes(), () if self.edit is None else (self.edit,))


def _finished(node_id: int, completions: tuple[Completion, ...], value: Any) -> NodeFinished:
    return NodeFinished(0, node_id, None, completions, Usage(), Timing(), value=value)


def _text_of_value(value: Any) -> str:
    """The text of a value as a model writes it: objects, lists, numbers, booleans and None as JSON, others as text."""
    plain = to_plain(value)
    is_json = plain is None or isinstance(plain, (bool, int, float, list, dict))
    return json.dumps(plain, ensure_ascii=False, default=str) if is_json else str(plain)


def _unknown(path: str, paths: Sequence[str]) -> str:
    last = path.rpartition("/")[2]
    like = [each for each in paths if each.rpartition("/")[2].startswith(last)] or list(paths)
    return f"no node has the path {path!r}; paths: {', '.join(like[:20]) or 'none'}{', ...' if len(like) > 20 else ''}"
