"""Calls, decisions, branches and loops as nodes of the graph.

A branch is a function of a state, a program, or text. It is recorded once, before anything runs; its return value is the value of the
branch. Nothing inside can be waited for, and values that were made inside are seen outside only if they are returned.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from rtlang.contract.errors import ParameterError, TraceError, ValueParseError
from rtlang.contract.graph.checks import MAX_CASES, MAX_ITERATIONS, MAX_NESTING, MAX_OPERANDS
from rtlang.contract.graph.host_calls import HostFunction
from rtlang.contract.graph.node_paths import ANY_TURN, segment
from rtlang.contract.graph.nodes import Policy
from rtlang.contract.request_graph import MAX_NAME_CHARS, Block, Const, Decide, How, Operand, Ref, Repeat, Switch
from rtlang.lang.effect_marks import OnUnknown, policy_of, strictest
from rtlang.lang.lazy_values.identity_tests import check_tests
from rtlang.lang.lazy_values.operations import Lazy, Operation
from rtlang.lang.lazy_values.values import Value, lazy_form, parts_of, source_of, user_frame, user_location
from rtlang.lang.output_types.kinds import ANY, INT, STR, Kind, Listed
from rtlang.lang.output_types.returned_values import Reader, plain_of, return_reader
from rtlang.lang.output_types.tool_calls import ToolCall, ToolReply, caught, error_text, results_of
from rtlang.lang.output_types.types import OutputType, reader_of
from rtlang.lang.partials.shapes import PLAIN
from rtlang.lang.program_state.body import current_state, is_coroutine_function, name_of, state_of_body
from rtlang.lang.program_state.expr import Expr, described
from rtlang.lang.program_state.state import State, record_of
from rtlang.lang.program_state.state_record import StateRecord
from rtlang.lang.recordings.operands import actual, call_reader, operand_for, reader_for, type_of
from rtlang.lang.recordings.recorded_nodes import Control
from rtlang.lang.recordings.recording import Recording

Branch = Callable[..., Any] | str | Expr


def call(
    function: Callable[..., Any] | ToolCall | ToolReply | list[Any],
    /,
    *args: Any,
    on_error: Literal["raise", "text"] = "raise",
    pure: bool | None = None,
    on_unknown: OnUnknown | None = None,
    state: State | None = None,
    **keywords: Any,
) -> Any:
    """Call a function of this process as a part of the graph, and return its value, lazily.

    The function runs in a thread, after the values of its arguments are complete, while the rest of the graph runs; only nodes that use its
    value wait. It gets the actual values, and returns plain data: None, bool, int, float, str, lists and dicts, dataclasses, enums or
    models of those. The value is of the type that the function declares (`-> Weather`). It may be `async`.

    Args:
        function: a function, or the value of `rt.gen(tools=...)`: then the tool that the model chose runs with the arguments that it wrote.
            Of several calls, which run side by side, the value is the list of their values.
        on_error: "text": where the function fails, the value is a text that names the error, for the model.
        pure: whether the call has no effect: it may be made early, again, or not at all. Default: the mark of the function (`rt.pure`).
        on_unknown: what a durable run (`rt.journal`) does with a call that began before a crash and has no recorded outcome: "once" fails
            with UnknownOutcomeError, "retry" calls again with the same `rt.idempotency_key()`, "ask" lets a person decide. Default: the
            mark of the function (`rt.effect`), else "once".
        state: the state to which the call belongs, such as a fork, for its path. Default: that of its values, if all are of one fork, else
            the innermost running program. Tasks that make calls without values side by side must give it.
    Raises:
        ParameterError: an option is invalid.
        TraceError: outside of a program, or an argument cannot be an operand of a node.
        CallError, ToolError: when the value is read; the function or the tool failed. Names it and the `file:line` of the failure.
    """
    owner = _given_state(state, "rt.call")
    if on_error not in ("raise", "text"):
        raise ParameterError("on_error", on_error, 'expected "raise" or "text"')
    recording, catches = owner.recording, on_error == "text"
    policy = policy_of(None, pure, on_unknown) if pure is not None or on_unknown is not None else None
    if isinstance(function, list) and function and not args:
        return [call(each, on_error=on_error, pure=pure, on_unknown=on_unknown, state=state) for each in function]
    if isinstance(function, (Value, ToolCall, ToolReply)):
        if args or keywords:
            raise TraceError(
                "rt.call(): expected no arguments after a tool call; the call has its own", user_location()
            )
        return _call_tools(function, owner, catches, policy)
    if not callable(function):
        raise TraceError(
            f"rt.call(): {function!r:.60} is neither a function nor a value of rt.gen(tools=...)", user_location()
        )
    places = [f"argument {number} of rt.call()" for number in range(1, len(args) + 1)]
    places += [f"argument {name} of rt.call()" for name in keywords]
    given = (*args, *keywords.values())
    operands = tuple(operand_for(each, recording, where) for each, where in zip(given, places, strict=True))
    readers = [reader_for(each, recording) for each in given] if recording.is_in_block else None

    def run(plain: tuple[Any, ...]) -> Any:
        if readers is not None:  # the values differ from iteration to iteration
            values = [read(value) for read, value in zip(readers, plain, strict=True)]
        else:
            values = list(map(actual, given, plain))
        return function(*values[: len(args)], **dict(zip(keywords, values[len(args) :], strict=True)))

    if policy is None:
        policy = policy_of(function, None, None)
    # The names belong to the call: recordings find its outcome by its name and the values of its arguments.
    name = f"{name_of(function)}({', '.join(f'{each}=' for each in keywords)})" if keywords else name_of(function)
    name, reader = name[:MAX_NAME_CHARS], return_reader(function)
    return _called(owner, name, operands, caught(run) if catches else run, ANY, policy, reader, (function,))


def _call_tools(calls: Value | ToolCall | ToolReply, state: StateRecord, catches: bool, policy: Policy | None) -> Value:
    recording = state.recording
    if not isinstance(calls, Value):
        named = [calls] if isinstance(calls, ToolCall) else calls.calls
        name = " and ".join(each.name for each in named)[:MAX_NAME_CHARS] or "no tool"
        kind = ANY if isinstance(calls, ToolCall) else Listed(ANY)
        arguments = (Const([{"name": each.name, "arguments": each.arguments} for each in named]),)
        policy = policy or strictest(each.function for each in named)
        reader = return_reader(calls.function) if isinstance(calls, ToolCall) else None
        return _called(
            state, name, arguments, lambda plain: plain_of(results_of(calls, catches=catches)), kind, policy, reader
        )
    parts = parts_of(calls, recording)
    ref = parts[0] if parts is not None and len(parts) == 1 and isinstance(parts[0], Ref) else None
    output_type = None if ref is None or source_of(calls) is not recording else recording.type_of(ref)
    if ref is None or output_type is None or output_type.calls is None:
        raise TraceError(
            f"rt.call(): {calls!r} is not a tool call; expected a function, or the value of rt.gen(tools=...)",
            user_location(),
        )
    if not output_type.calls.can_run:
        raise TraceError(
            f"rt.call(): the tools {', '.join(output_type.calls.names)} were given as schemas, without functions to run",
            user_location(),
        )
    names, name = output_type.calls.names, recording.nodes.name_of(ref.node_id)

    def run(plain: tuple[Any, ...]) -> Any:
        (text,) = plain
        try:
            found = output_type.read(name, text)
        except ValueParseError as error:  # the arguments do not fit the types of the function
            if not catches:
                raise
            recording.outcomes.note_handled(ref.node_id)
            return error_text(error)
        return plain_of(results_of(found, catches=catches))

    kind = Listed(ANY) if output_type.calls.are_many else ANY
    functions = output_type.calls.functions
    policy = policy or strictest(functions)
    reader = return_reader(functions[0]) if len(names) == 1 and not output_type.calls.are_many else None
    return _called(state, " or ".join(names)[:MAX_NAME_CHARS], (ref,), run, kind, policy, reader)


def _called(
    state: StateRecord,
    name: str,
    operands: tuple[Operand, ...],
    run: HostFunction,
    kind: Kind,
    policy: Policy,
    reader: Reader | None = None,
    functions: Iterable[Callable[..., Any]] = (),
) -> Value:
    recording, last = state.recording, f"{segment(name.partition('(')[0])}()"
    path = recording.nodes.new_path(recording.nodes.place_of(operands, state.place), last)
    node_id = recording.add_call(name, operands, run, path, policy, functions)
    if reader is not None:
        recording.nodes.readers[node_id] = reader
    return node_value(recording, node_id, f"the value of {name.partition('(')[0]}()", kind, reader)


def first(values: Iterable[Any]) -> Any:
    """The value among `values` that is available first, lazily. The others are cancelled, unless something else needs them.

    Raises:
        TraceError: outside of a program, or a value cannot be an operand of a node.
    """
    return _decide("first", values, None, None)


def vote(values: Iterable[Any], *, need: int | None = None) -> Any:
    """The most frequent of the values, lazily; at a tie, the earliest value. Known as soon as no other value can win.

    Values that are not complete by then are cancelled, unless another node needs them.

    Args:
        need: this many equal values win at once.
    """
    return _decide("vote", values, need, None)


def best(values: Iterable[Any], *, by: Iterable[Any]) -> Any:
    """The value with the largest number in `by`, lazily; at a tie, the earliest."""
    return _decide("best", values, None, by)


def switch(
    value: Any, cases: Mapping[Any, Branch], *, default: Branch | None = None, state: State | None = None
) -> Any:
    """Run the branch whose key equals a value, and return the value of the branch, lazily.

    Args:
        cases: functions of a state, programs, or texts by value.
        default: runs if no key equals the value.
        state: the state whose sequence the branch continues, such as a fork; default: the state of the innermost running program.

    Raises:
        TraceError: outside of a program, or a branch waits for a value, or it leaves a chat message open or closed that it did not open.
        SwitchError: when the value is read; no key equals `value`, and there is no default.
    """
    return _switch(_given_state(state, "rt.switch"), value, cases, default)


def repeat(body: Branch, *, until: Callable[[Any], Any] | None = None, at_most: int, state: State | None = None) -> Any:
    """Run a body repeatedly; returns the value of the last iteration, lazily.

    Args:
        body: as a branch of `switch`. If it requires a second parameter, that is the number of the iteration, from 0: a lazy integer.
        until: a function of the state after the body, and of the number of the iteration if it requires a second parameter; the loop ends
            once its value is true.
        at_most: the largest number of iterations.
        state: as for `switch`.
    """
    return _repeat(_given_state(state, "rt.repeat"), body, until, at_most)


def _given_state(state: Any, what: str) -> StateRecord:
    if state is None:
        return running_state(what)
    if not isinstance(state, State):
        raise ParameterError("state", state, "expected a state of the running program, such as a fork")
    return record_of(state)


def _switch(state: StateRecord, value: Any, cases: Mapping[Any, Branch], default: Branch | None) -> Any:
    state.check_growing()
    if not isinstance(cases, Mapping) or not (cases or default) or len(cases) > MAX_CASES:
        raise TraceError(f"switch(): expected a dict of 1 to {MAX_CASES} branches, or a default", user_location())
    recording = state.recording
    on = _key_operand(value, recording)
    recorder = _Blocks(state, "switch")
    path = state.new_path("switch")
    with recording.nodes.control(state.sequence.head, user_location()) as control:
        blocks = tuple(
            (_key(key), recorder.block(control, branch, f"{path}[{segment(str(_key(key)))}]"))
            for key, branch in cases.items()
        )
        last = None if default is None else recorder.block(control, default, f"{path}[]")
        control.node = Switch(control.node_id, state.sequence.head, on, blocks, last, path=path)
    return recorder.finish(control)


def _repeat(state: StateRecord, body: Branch, until: Callable[[Any], Any] | None, at_most: int) -> Any:
    state.check_growing()
    if isinstance(at_most, bool) or not isinstance(at_most, int) or not 1 <= at_most <= MAX_ITERATIONS:
        raise ParameterError("at_most", at_most, f"expected 1 to {MAX_ITERATIONS}")
    recorder = _Blocks(state, "repeat")
    path = state.new_path("repeat")
    with state.recording.nodes.control(state.sequence.head, user_location()) as control:
        block = recorder.block(control, body, f"{path}{ANY_TURN}", until)
        end = Const(False) if recorder.until is None else recorder.until
        stride = max(control.span, 1)
        control.node = Repeat(control.node_id, state.sequence.head, block, end, at_most, stride, path=path)
    return recorder.finish(control)


class _Blocks:
    """Records the blocks of one control node of a state."""

    def __init__(self, state: StateRecord, what: str) -> None:
        self._state, self._what = state, what
        self._kinds: list[Kind] = []
        self._types: list[OutputType | None] = []
        self._readers: list[Reader | None] = []
        self._states: list[StateRecord] = []
        self.until: Operand | None = None

    def block(self, control: Control, branch: Branch, place: str, until: Callable[[Any], Any] | None = None) -> Block:
        state = self._state
        recording, role = state.recording, state.sequence.role
        if recording.nodes.block_depth >= MAX_NESTING:
            what = f"{self._what}(): more than {MAX_NESTING} branches or loops within each other"
            raise TraceError(f"{what}; a branch cannot contain itself", user_location())
        inner = state.block(control.node_id, place)
        sequence, public = inner.sequence, State(inner)
        with recording.nodes.in_block() as nodes:
            turn = None
            if place.endswith(ANY_TURN) and (_takes_turn(branch) or _takes_turn(until)):
                turn = _turn_of(control.node_id, recording)
            returned = self._called(branch, public, turn)
            if isinstance(returned, Expr):
                raise TraceError(
                    f"{self._what}(): a branch returns {described(returned)}, which is not part of a sequence: append it to the state of "
                    "the branch, or give the expression itself as the branch",
                    user_location(),
                )
            if sequence.role != role:
                raise TraceError(
                    f"{self._what}(): a branch leaves {sequence.role or 'no'} message open, but {role or 'none'} was open before it",
                    user_location(),
                )
            value = (
                None
                if returned is None
                else operand_for(returned, recording, f"the value of a branch of {self._what}()")
            )
            lazy = lazy_form(returned) if not isinstance(returned, (list, tuple, dict)) else None
            self._kinds.append(ANY if lazy is None else lazy.kind)
            self._types.append(type_of(returned, recording))
            self._readers.append(call_reader(returned, recording))
            if until is not None:
                self.until = operand_for(self._called(until, public, turn), recording, "the value of until")
                if isinstance(self.until, Const):
                    raise TraceError(
                        f"{self._what}(): until= is always {self.until.value!r:.60}; expected a function of the state after the body, "
                        'such as lambda s: s["done"] == "yes"',
                        user_location(),
                    )
        self._states.append(inner)
        return Block(tuple(nodes), None if sequence.head == control.node_id else sequence.head, value)

    def _called(self, branch: Any, state: State, turn: Value | None) -> Any:
        if isinstance(branch, (str, Expr)):
            state += branch
            return None
        if not callable(branch):
            raise TraceError(f"{self._what}(): a branch is a function of a state, not {branch!r:.60}", user_location())
        if is_coroutine_function(branch) or getattr(branch, "is_async", False):
            raise TraceError(
                f"{self._what}(): {name_of(branch)} is async; a branch is recorded and cannot await", user_location()
            )
        with state_of_body(state):
            return branch(state, turn) if turn is not None and _takes_turn(branch) else branch(state)

    def finish(self, control: Control) -> Any:
        """Continue the sequence after the control node; returns its value."""
        state = self._state
        state.sequence.head = control.node_id
        for inner in self._states:
            state.end_block(inner)
        kind, output_type = self._kinds[0], self._types[0]
        are_equal = output_type is not None and all(_is_same(each, output_type) for each in self._types)
        if not are_equal and any(each != kind for each in self._kinds):
            kind = ANY
        reader = reader_of(output_type) if are_equal and output_type is not None else None
        if reader is None and all(each is self._readers[0] for each in self._readers):
            reader = self._readers[0]
        return node_value(state.recording, control.node_id, f"the value of {self._what}()", kind, reader)


def _takes_turn(function: object) -> bool:
    """Whether a body requires a second parameter: the number of the iteration."""
    if not callable(function):
        return False
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # functions of C without a signature
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [each for each in given if each.kind in kinds and each.default is each.empty]
    return len(required) == 2


def _turn_of(loop_id: int, recording: Recording) -> Value:
    """The number of the iteration of a loop whose body is being recorded, as a node of the body: so it is refused outside."""
    ref = recording.nodes.add_apply("int", (Ref(loop_id),))

    def read() -> Any:
        raise TraceError("the number of an iteration exists inside the loop only", user_location())

    return Value(recording, (ref.node_id,), (ref,), read, "the number of the iteration", lazy=Lazy(INT, ref))


def _is_same(one: OutputType | None, other: OutputType) -> bool:
    """Whether two types read the same texts as the same values."""
    if one is None or one is other:
        return one is other
    is_known = one.python_type is not None or one.shape is PLAIN
    same = (one.constraint, one.python_type, one.shape) == (other.constraint, other.python_type, other.shape)
    return same and is_known


def _decide(how: How, values: Iterable[Any], need: int | None, by: Iterable[Any] | None) -> Any:
    state = running_state(f"rt.{how}")
    for field, value in (("values", values), ("by", by)):
        if isinstance(value, (str, bytes, Mapping)):
            raise ParameterError(field, value, "expected a list of values, not one value")
    recording, given = state.recording, list(values)
    if not 1 <= len(given) <= MAX_OPERANDS:
        raise TraceError(f"rt.{how}(): expected 1 to {MAX_OPERANDS} values, not {len(given)}", user_location())
    if need is not None and (isinstance(need, bool) or not isinstance(need, int) or not 1 <= need <= len(given)):
        raise ParameterError("need", need, f"expected 1 to {len(given)}, the number of values")
    of = tuple(operand_for(each, recording, f"value {number} of rt.{how}()") for number, each in enumerate(given, 1))
    rates = None
    if by is not None:
        rates = tuple(operand_for(each, recording, f"number {number} in by") for number, each in enumerate(by, 1))
        if len(rates) != len(of):
            raise ParameterError("by", len(rates), f"expected {len(of)} numbers, one for each value")
    path = state.new_path(f"{how}()")
    node_id = recording.nodes.add_value(lambda node_id: Decide(node_id, how, of, need, rates, path=path))
    recording.has_decisions = True

    def read() -> Any:
        index, plain = recording.outcomes.plain_value(node_id)
        return actual(given[index], plain)

    kinds = [lazy_form(each) for each in given]
    kind = kinds[0].kind if kinds[0] is not None and all(each and each.kind is kinds[0].kind for each in kinds) else ANY
    lazy = Lazy(kind, Operation("item", (Ref(node_id), Const(1))))
    return _checked(
        Value(recording, (node_id,), None, read, f"the value of rt.{how}()", is_text=kind is STR, lazy=lazy)
    )


def node_value(
    recording: Recording, node_id: int, what: str, kind: Kind, reader: Callable[[Any], Any] | None = None
) -> Value:
    """The lazy value of a node that computes one; `reader` makes it from the plain value in the graph."""

    def read() -> Any:
        plain = recording.outcomes.plain_value(node_id)
        return plain if reader is None else reader(plain)

    lazy = Lazy(kind, Ref(node_id))
    return _checked(Value(recording, (node_id,), (Ref(node_id),), read, what, is_text=kind is STR, lazy=lazy))


def _checked(value: Value) -> Value:
    """A new value, of which the program's code makes no wrong tests."""
    frame = user_frame()
    if frame is not None:
        check_tests(value, frame)
    return value


def running_state(what: str) -> StateRecord:
    """The state of the innermost running program.

    Raises:
        TraceError: there is none; names `what` was called.
    """
    state = current_state()
    if state is None:
        raise TraceError(f"{what}() works only inside a program", user_location())
    return record_of(state)


def _key_operand(value: Any, recording: Recording) -> Operand:
    return operand_for(value, recording, "the value of switch()")


def _key(key: Any) -> Any:
    return key.value if isinstance(key, enum.Enum) else key
