"""The state to which a program body appends, and its forks.

A `State` is a view of a sequence of nodes with named variables. `fork` creates states that continue the same node; nothing is copied,
because several nodes with the same parent form a fork. A name that is generated again means the last one; forks and called programs
have their own variables. Its `StateRecord` holds everything that it has recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, overload

from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.request_graph import RoleStart
from rtlang.lang.lazy_values.identity_tests import check_read
from rtlang.lang.lazy_values.static_types import AnyValue
from rtlang.lang.lazy_values.values import Value, real, user_location
from rtlang.lang.output_types.tools import message_start
from rtlang.lang.program_state import expr as exprs
from rtlang.lang.program_state.expr import Appendable, Expr, as_expr
from rtlang.lang.program_state.generation_methods import (
    DEFAULT_METHOD,
    ForksGenMethod,
    ForksSelectCall,
    GenMethod,
    SelectCall,
    typed_gen,
)
from rtlang.lang.program_state.state_record import OpenedScope, StateRecord
from rtlang.lang.program_state.variables import messages_of, view
from rtlang.lang.recordings.meta import AnyMeta

MAX_FORKS = 4096


class State:
    """The text and variables of a running program: `s += ...` appends, `s[name]` reads."""

    _rt_is_state = True

    def __init__(self, record: StateRecord) -> None:
        self._record = record

    # Growing

    def __iadd__(self, item: Appendable) -> State:
        """Append text, an expression, or a program with its arguments."""
        self._record.check_growing()
        call = getattr(type(item), "_rt_call", None)
        if call is not None and not isinstance(item, Value):
            call(item, self)
        else:
            self._record.append(as_expr(item, "the appended value"))
        return self

    @property
    def gen(self) -> GenMethod:
        """Append a generation and return its value: `invoice = s.gen("invoice", Invoice, max_tokens=200)`.

        The call is `gen(name, type, **options)`, with the keywords of `rt.gen`. The value is lazy, as `s[name]` is, and has the type of
        the generation for type checkers: `str` without a type. With `n` it is a list. In an `async def` program await it with
        `await rt.value(...)`.

        Raises:
            ParameterError: the second argument is no type; also as `rt.gen`.
        """
        return self._gen

    def _gen(self, name: Any = None, type: Any = None, **options: Any) -> Any:
        return check_read(self._generated(typed_gen(name, type, options), is_list=options.get("n") is not None))

    @property
    def select(self) -> SelectCall:
        """Append a choice and return it, lazily: `label = s.select("label", ["good", "bad"])`. Arguments are those of `rt.select`."""
        return self._select

    def _select(self, name: Any, choices: Any, *, method: Any = DEFAULT_METHOD) -> Any:
        return check_read(self._generated(exprs.select(name, choices, method=method)))

    def _generated(self, generation: Expr, *, is_list: bool = False) -> Any:
        """Append a generation; returns its value, in a list even if `n` is 1 where `is_list`."""
        self._record.check_growing()
        self._record.record(generation)
        value = view(self._record.last, "value", "last")
        return [value] if is_list and not isinstance(value, list) else value

    def system(self, *, tools: Iterable[Any] | None = None, template: TemplateOptions | None = None) -> RoleBlock:
        """`with s.system():` everything appended inside is one system message. `tools`, `template`: as for `rt.system`."""
        return RoleBlock(self, message_start("system", tools, template))

    def user(self, *, tools: Iterable[Any] | None = None, template: TemplateOptions | None = None) -> RoleBlock:
        """`with s.user():` everything appended inside is one user message. `tools`, `template`: as for `rt.user`."""
        return RoleBlock(self, message_start("user", tools, template))

    def assistant(self) -> RoleBlock:
        """`with s.assistant():` everything appended inside is one assistant message."""
        return RoleBlock(self, RoleStart("assistant"))

    def tool(self) -> RoleBlock:
        """`with s.tool():` everything appended inside is one message with a tool's result."""
        return RoleBlock(self, RoleStart("tool"))

    def fork(self, n: int) -> Forks:
        """Create `n` states that continue this one, which may be empty.

        Raises:
            TraceError: n is not an integer from 1 to 4096.
        """
        count = real(n)
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_FORKS:
            raise TraceError(f"fork(n): n = {count!r}; expected 1 to {MAX_FORKS}", user_location())
        return Forks(self, [State(each) for each in self._record.fork(count)])

    def copy(self) -> State:
        """Create an independent state that continues this one, with the same variables."""
        return State(self._record.copy())

    def scope(self, name: str) -> NameScope:
        """`with s.scope("draft"):` names inside become `draft.name`, and the text variable `draft` covers the whole block."""
        return NameScope(self, _check_text(name, "scope"))

    def set(self, name: str, value: Any) -> None:
        """Set a variable to any value, including generated values. A variable may be set repeatedly."""
        checked = _check_text(name, "set")
        if isinstance(value, Expr):
            raise TraceError(
                f"set({name!r}) got {exprs.described(value)}, which is not part of a sequence: append it with s += ..., then it is s[name]",
                user_location(),
            )
        self._record.set_plain(checked, value)

    def append(self, name: str, value: Any) -> None:
        """Append any value, also a generated one, to a variable that is a list; without the variable, begin one.

        The list belongs to this state: a fork goes on with a copy of it.

        Raises:
            TraceError: the variable is no list, or a generated value.
        """
        checked = _check_text(name, "append")
        if isinstance(value, Expr):
            raise TraceError(
                f"append({name!r}) got {exprs.described(value)}, which is not part of a sequence: append it with s += ..., then it "
                "is s[name]",
                user_location(),
            )
        self._record.append_item(checked, value)

    def emit(self, value: Any) -> None:
        """Send a value to whoever reads the stream of the run, as an `rt.EmitEvent`, once it is known.

        The values of one state come in the order in which they were emitted; within rt.switch and rt.repeat, in the order in which they are
        known. A durable run (`rt.journal`) that goes on does not send again what its reader had taken before: the reader has taken a
        value when it asks for the next event.

        Args:
            value: a generated value, plain data, or a list of those.
        Raises:
            TraceError: the value is nothing that a graph holds.
        """
        self._record.emit(value)

    # Reading

    def __getitem__(self, name: str) -> AnyValue:
        """The value of a variable. Generated values are lazy (see `Value`); joined values and those with n > 1 are lists.

        Raises:
            TraceError: the variable does not exist; lists the existing ones.
        """
        return check_read(view(self._record.variable(name), "value", name))  # type: ignore[no-any-return]

    def all(self, name: str) -> list[Any]:
        """The values of all generations called `name` in this state so far, lazily, in order; the last one is `s[name]`.

        Raises:
            TraceError: the variable does not exist; lists the existing ones.
        """
        return [view(each, "value", name) for each in self._record.all_of(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._record.find(name) is not None

    def __iter__(self) -> Iterator[Any]:
        raise TraceError("a state cannot be iterated; its variables are s[name]", user_location())

    @property
    def last(self) -> Any:
        """The value of the last generation of the sequence, named or not, lazily; a list if it has n > 1.

        Raises:
            TraceError: nothing was generated yet.
        """
        found = self._record.last
        if found is None:
            raise TraceError("s.last: the sequence has no generation yet", user_location())
        return check_read(view(found, "value", "last"))

    def text(self, name: str | None = None) -> Any:
        """The generated text of a variable, lazily; a list if the variable is a list.

        Without a name it is the text of the whole sequence: the contents of messages one after the other, without the marks of the chat
        template around them.
        """
        if name is None:
            return self._record.text_after(None, "the text of the sequence")
        return view(self._record.variable(name), "text", name)

    def meta(self, name: str) -> AnyMeta:
        """The `Meta` of a variable, lazily: usage, timing, finish reason, log-probabilities, probabilities of choices."""
        return view(self._record.variable(name), "meta", name)  # type: ignore[no-any-return]

    def tree(self, name: str) -> Any:
        """The parse tree of a text generated under a Lark grammar, a `lark.Tree`, lazily; a list if the variable is a list.

        Raises:
            TraceError: the variable was not generated under a Lark grammar.
        """
        return view(self._record.variable(name), "tree", name)

    def messages(self) -> Any:
        """The chat so far, lazily: a list of {"role": ..., "content": ...}. Text outside messages is not included."""
        self._record.leave_failed()
        recording, sequence = self._record.recording, self._record.sequence
        head, text_of = sequence.head, recording.text_of
        parts = sequence.parts(None, settles=False)
        needs = recording.needs_of_parts(parts)

        def read() -> list[dict[str, str]]:
            # Not before it is read: texts with a free order settle when they are submitted.
            return messages_of([] if head is None else sequence.parts(None, end=head), text_of)

        return Value(recording, needs, None, read, "the messages")

    def __repr__(self) -> str:
        return f"<state after node {self._record.sequence.head} with variables {sorted(self._record.visible())}>"


def record_of(state: State) -> StateRecord:
    """The record of a state, for the rest of the package."""
    return state._record


class RoleBlock:
    """Context manager that turns everything appended inside into one chat message.

    If the block ends by an exception, the message is dropped: the sequence goes on from before it. Variables made inside stay readable.
    """

    __slots__ = ("_start", "_state")

    def __init__(self, state: State, start: RoleStart) -> None:
        self._state, self._start = state, start

    def __enter__(self) -> State:
        record = record_of(self._state)
        record.check_growing()
        record.sequence.open_role(self._start)
        return self._state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        record = record_of(self._state)
        if error is None:
            record.leave_failed()
            record.sequence.close_role()
        else:
            record.sequence.drop_role()


class NameScope:
    """Context manager for a named block with its own namespace."""

    __slots__ = ("_name", "_opened", "_state")

    def __init__(self, state: State, name: str) -> None:
        self._state, self._name = state, name
        self._opened: OpenedScope = "", "", None

    def __enter__(self) -> State:
        self._opened = record_of(self._state).open_scope(self._name)
        return self._state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        record_of(self._state).close_scope(self._name, self._opened, has_failed=error is not None)


class Forks:
    """States that continue the same parent. Iterate or index them, append to all with `forks += ...`, and `join` them."""

    def __init__(self, parent: State, states: list[State]) -> None:
        self._parent, self._states = parent, states
        self._is_joined = False

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[State]:
        return iter(self._states)

    @overload
    def __getitem__(self, key: int) -> State: ...
    @overload
    def __getitem__(self, key: slice) -> list[State]: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> State | list[Any]:
        """One state, a slice of the states, or (for a name) that variable of every state."""
        if isinstance(key, str):
            return check_read([state[key] for state in self._states])  # type: ignore[no-any-return]
        return self._states[key]

    def __setitem__(self, key: int, state: State) -> None:
        """Supports `forks[i] += ...`."""
        if self._states[key] is not state:
            raise TraceError("a fork cannot be replaced by another state", user_location())

    def __iadd__(self, item: Appendable | Sequence[Appendable] | Callable[[int], Appendable]) -> Forks:
        """Append to all states: the same expression, a list item by item, or the result of a function of the index.

        Raises:
            TraceError: the list has a different length.
        """
        items: list[Any]
        if isinstance(item, (list, tuple)):
            if len(item) != len(self._states):
                raise TraceError(
                    f"forks += a list of {len(item)} items; expected {len(self._states)} items, one per fork",
                    user_location(),
                )
            items = list(item)
        elif callable(item) and not isinstance(item, (Expr, Value)) and not hasattr(type(item), "_rt_call"):
            function: Callable[[int], Any] = item
            items = [function(index) for index in range(len(self._states))]
        else:
            items = [item] * len(self._states)
        for state, each in zip(self._states, items, strict=True):
            state += each
        return self

    @property
    def gen(self) -> ForksGenMethod:
        """Append a generation to all states and return the list of its values; see `State.gen`."""
        return self._gen

    def _gen(self, name: Any = None, type: Any = None, **options: Any) -> Any:
        generation = typed_gen(name, type, options)
        is_list = options.get("n") is not None
        return check_read([state._generated(generation, is_list=is_list) for state in self._states])

    @property
    def select(self) -> ForksSelectCall:
        """Append a choice to all states and return the list of the chosen items; see `State.select`."""
        return self._select

    def _select(self, name: Any, choices: Any, *, method: Any = DEFAULT_METHOD) -> Any:
        choice = exprs.select(name, choices, method=method)
        return check_read([state._generated(choice) for state in self._states])

    def join(self, mode: Literal["gather", "concat"] = "gather") -> None:
        """Make each variable of the forks a list on the parent, in fork order, with None for forks without it.

        Joined forks can be read but not appended to.

        Args:
            mode: "concat" also appends what each fork has appended to the parent, in fork order: text, messages, and the texts of
                generations, which are tokenized again there. It waits for branches and loops in the forks.
        Raises:
            TraceError: the forks have already been joined; or, with "concat", a message was opened or closed since the fork.
            ParameterError: `mode` is another.
        """
        if mode not in ("gather", "concat"):
            raise ParameterError("mode", mode, 'expected "gather" or "concat"')
        if self._is_joined:
            raise TraceError("these forks have already been joined", user_location())
        parent, forks = record_of(self._parent), [record_of(state) for state in self._states]
        if mode == "concat":
            parent.concatenate(forks)
        self._is_joined = True
        parent.join(forks)


def _check_text(name: object, function: str) -> str:
    if not isinstance(name, str) or not name:
        raise TraceError(f"{function}(): name = {name!r}; expected a non-empty string", user_location())
    return name
