"""The state to which a program body appends, and its forks.

A `State` is a view of a sequence of nodes with named variables. `fork` creates states that continue the same node; nothing is copied,
because several nodes with the same parent form a fork. Names of generations are unique within a state and scope; forks and called programs
have their own variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, overload

from rtlang.compiler.context import Pieces
from rtlang.contract.errors import TraceError
from rtlang.contract.graph import MAX_NAME_CHARS, Part, Ref, RoleEnd, RoleStart, TokenIds
from rtlang.contract.params import MAX_SEED, SamplingParams
from rtlang.contract.template_options import TemplateOptions
from rtlang.lang import expr as exprs
from rtlang.lang.expr import Expr, as_expr
from rtlang.lang.output_types.tools import message_start
from rtlang.lang.recording import Recording
from rtlang.lang.sequence import Sequence
from rtlang.lang.static_types import AnyValue
from rtlang.lang.values import Value, parts_of, real, source_of, text_value, user_location
from rtlang.lang.variables import Entry, Plain, Variable, generated, messages_of, view

MAX_OWN_NAME_CHARS = 256
MAX_FORKS = 4096
MAX_PROGRAM_DEPTH = 100
"""How deeply programs may call each other. Each call takes about four of the frames that Python limits to 1,000."""


class State:
    """The text and variables of a running program: `s += ...` appends, `s[name]` reads."""

    def __init__(
        self,
        recording: Recording,
        sequence: Sequence | None = None,
        *,
        inherited: dict[str, Variable] | None = None,
        prefix: str = "",
        outer_name: str = "",
        caller: State | None = None,
        depth: int = 0,
    ) -> None:
        self._recording = recording
        self._sequence = Sequence(recording) if sequence is None else sequence
        self._inherited = {} if inherited is None else inherited
        self._variables: dict[str, Variable] = {}
        self._prefix = prefix  # prefix of the open scopes
        self._outer_name = outer_name  # prefix of names in the graph: the enclosing calls
        self._caller = caller  # also receives the variables of this state, prefixed with the name of the call
        self._depth = depth  # number of enclosing calls
        self._calls: set[str] = set()
        self._generated: list[Variable] = []  # named or not, in order, those of calls on the same sequence included
        self._forks: list[Forks] = []  # those of calls included
        self._last_before: Variable = None  # the last generation of the state that this one continues
        self._inside: set[str] = set()  # variables made inside branches and loops
        self._is_joined = False

    # Growing

    def __iadd__(self, item: object) -> State:
        """Append text, an expression, or a program with its arguments."""
        self._check_growing()
        call = getattr(type(item), "_rt_call", None)
        if call is not None and not isinstance(item, Value):
            call(item, self)
        else:
            self._record(as_expr(item, "the appended value"))
        return self

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
        self._check_growing()
        visible = self._visible()
        states = [self._branch(visible) for _ in range(count)]
        self._recording.fork_sequences.extend(state._sequence for state in states)
        forks = Forks(self, states)
        self._forks.append(forks)
        return forks

    def copy(self) -> State:
        """Create an independent state that continues this one, with the same variables."""
        self._check_growing()
        branch = self._branch(dict(self._inherited))
        branch._variables = dict(self._variables)
        return branch

    def scope(self, name: str) -> Scope:
        """`with s.scope("draft"):` names inside become `draft.name`, and the text variable `draft` covers the whole block."""
        return Scope(self, _check_text(name, "scope"))

    def set(self, name: str, value: Any) -> None:
        """Set a variable to any value, including generated values. A variable may be set repeatedly."""
        key = self._prefix + _check_text(name, "set")
        if isinstance(value, Expr):
            raise TraceError(
                f"set({name!r}) got {exprs.described(value)}, which is not part of a sequence: append it with s += ..., then it is s[name]",
                user_location(),
            )
        self._define(key, Plain(value))

    # Reading

    def __getitem__(self, name: str) -> AnyValue:
        """The value of a variable. Generated values are lazy (see `Value`); joined values and those with n > 1 are lists.

        Raises:
            TraceError: the variable does not exist; lists the existing ones.
        """
        return view(self._variable(name), "value", name)  # type: ignore[no-any-return]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __iter__(self) -> Iterator[Any]:
        raise TraceError("a state cannot be iterated; its variables are s[name]", user_location())

    @property
    def last(self) -> Any:
        """The value of the last generation of the sequence, named or not, lazily; a list if it has n > 1.

        Raises:
            TraceError: nothing was generated yet.
        """
        found = self._generated[-1] if self._generated else self._last_before
        if found is None:
            raise TraceError("s.last: the sequence has no generation yet", user_location())
        return view(found, "value", "last")

    def text(self, name: str | None = None) -> Any:
        """The generated text of a variable, lazily; a list if the variable is a list.

        Without a name it is the text of the whole sequence: the contents of messages one after the other, without the marks of the chat
        template around them.
        """
        if name is None:
            return self._text_after(None, "the text of the sequence")
        return view(self._variable(name), "text", name)

    def _text_after(self, start: int | None, what: str) -> Value:
        """The text of the sequence after a node, as it is now."""
        recording, sequence, head = self._recording, self._sequence, self._sequence.head

        def parts() -> list[Part]:
            if head is None:
                return []
            found = sequence.parts(start, end=head)
            return [part for part in found if not isinstance(part, (RoleStart, RoleEnd, TokenIds))]

        now = parts()
        if not any(recording.is_control(part) for part in now):
            return text_value(recording, now, what)
        needs = recording.needs_of([part.node_id for part in now if isinstance(part, Ref)])

        def read() -> str:  # which branches run is known only then
            return "".join(
                part if isinstance(part, str) else recording.text_of(part.node_id, part.choice)
                for part in parts()
                if isinstance(part, (str, Ref))
            )

        return Value(recording, needs, None, read, what)

    def meta(self, name: str) -> Any:
        """The `Meta` of a variable, lazily: usage, timing, finish reason, log-probabilities, probabilities of choices."""
        return view(self._variable(name), "meta", name)

    def tree(self, name: str) -> Any:
        """The parse tree of a text generated under a Lark grammar, a `lark.Tree`, lazily; a list if the variable is a list.

        Raises:
            TraceError: the variable was not generated under a Lark grammar.
        """
        return view(self._variable(name), "tree", name)

    def messages(self) -> Any:
        """The chat so far, lazily: a list of {"role": ..., "content": ...}. Text outside messages is not included."""
        sequence, head, text_of = self._sequence, self._sequence.head, self._recording.text_of
        parts = sequence.parts(None, settles=False)
        needs = self._recording.needs_of([part.node_id for part in parts if isinstance(part, Ref)])

        def read() -> list[dict[str, str]]:
            # Not before it is read: texts with a free order settle when they are submitted.
            return messages_of([] if head is None else sequence.parts(None, end=head), text_of)

        return Value(self._recording, needs, None, read, "the messages")

    def __repr__(self) -> str:
        return f"<state after node {self._sequence.head} with variables {sorted(self._visible())}>"

    # Recording

    def _record(self, expr: Expr) -> None:
        match expr:
            case exprs.Pieces():
                self._sequence.append(self._parts(expr))
            case exprs.Gen():
                self._record_gen(expr)
            case exprs.Role():
                self._record_message(expr)
            case exprs.Series():
                for each in expr.items:
                    self._record(each)
            case exprs.Select():
                self._record_select(expr)
            case exprs.Recorded():
                expr.record(self)
            case exprs.FreeText():
                pieces = self._free_pieces(expr)
                self._sequence.append((part for piece in pieces for part in piece), pieces)
            case _:
                raise AssertionError(f"{type(expr).__name__} is not a known expression")

    def _record_message(self, expr: exprs.Role) -> None:
        """Record a message: one node if it is all text."""
        only = expr.content[0] if len(expr.content) == 1 else None
        if isinstance(only, exprs.Pieces):
            self._sequence.append_message(expr.start, self._parts(only))
        elif isinstance(only, exprs.FreeText):
            pieces = self._free_pieces(only)
            self._sequence.append_message(expr.start, (part for piece in pieces for part in piece), pieces)
        else:
            with RoleBlock(self, expr.start):
                for each in expr.content:
                    self._record(each)

    def _free_pieces(self, expr: exprs.FreeText) -> Pieces:
        pieces = (tuple(part for part in self._parts(piece) if part != "") for piece in expr.pieces)
        return tuple(piece for piece in pieces if piece)

    def _parts(self, expr: exprs.Pieces) -> list[Part]:
        """The text parts of an expression; values that are no text are waited for."""
        parts: list[Part] = []
        for piece in expr.pieces:
            if isinstance(piece, (str, TokenIds)):
                parts.append(piece)
            elif source_of(piece) in (None, self._recording):
                found = parts_of(piece, self._recording)
                parts.extend(self._waited_for(piece) if found is None else found)
            else:
                raise TraceError(
                    f"{piece!r} belongs to another run; pass its text instead, such as str(value)", user_location()
                )
        return parts

    def _waited_for(self, value: Value) -> list[Part]:
        """The text of a value that must be waited for. What Python finds in data, such as None, must be something that text is made of."""
        actual = value._rt_real("use of a non-text value in text")
        if value._rt_lazy is None:  # usage, messages, ...
            return [str(actual)]
        made = as_expr(actual, f"the value of {value._rt_what}")
        assert isinstance(made, exprs.Pieces)
        return self._parts(made)

    def _record_gen(self, gen: exprs.Gen) -> None:
        key = self._new_key(gen.name)
        recording, sequence = self._recording, self._sequence
        params = recording.effective(gen.name, gen.params, gen.options)
        if gen.reasoning is False:
            node_ids = [recording.add_generate(sequence.head, self._graph_name(key), params, gen.kind)] * params.n
        else:
            node_ids = [self._record_reasoned(gen, key, params, number) for number in range(params.n)]
        entries: list[Variable] = []
        for number, node_id in enumerate(node_ids):
            what = f"node {node_id}" if gen.name is None else repr(gen.name)
            choice = number if gen.reasoning is False else 0
            constraint = gen.kind.constraint
            entries.append(generated(recording, node_id, choice, what, constraint, is_text=gen.kind.is_text))
        if params.n == 1:
            sequence.head = node_ids[0]
        else:
            sequence.keep_head()
        self._add_generation(key, entries if params.n > 1 else entries[0])

    def _record_reasoned(self, gen: exprs.Gen, key: str | None, params: SamplingParams, number: int) -> int:
        """Record completion `number` of a generation with reasoning before it, as two nodes; returns the second.

        Completions are nodes of their own, because each continues its own reasoning.
        """
        recording = self._recording
        seed = None if params.seed is None else (params.seed + number) % (MAX_SEED + 1)
        alone = replace(params, n=1, seed=seed)
        budget = params.max_tokens if gen.reasoning is True else gen.reasoning
        # Its constraint ends it. Stops and log-probabilities are those of the value.
        free = replace(
            alone, max_tokens=budget, min_tokens=0, logprobs=None, prompt_logprobs=None, stop=(), stop_regex=()
        )
        thought = recording.add_reasoning(self._sequence.head, free, gen.name)
        return recording.add_generate(thought, self._graph_name(key), alone, gen.kind, reasoning=thought)

    def _record_select(self, select: exprs.Select) -> None:
        key = self._new_key(select.name)
        recording, sequence = self._recording, self._sequence
        sequence.head = recording.add_select(
            sequence.head, self._graph_name(key), select.choices, select.method, select.kind
        )
        what = f"node {sequence.head}" if select.name is None else repr(select.name)
        self._add_generation(key, generated(recording, sequence.head, 0, what, None, is_text=select.kind.is_text))

    def _add_generation(self, key: str | None, variable: Variable) -> None:
        self._generated.append(variable)
        if key is not None:
            self._define(key, variable)

    def _branch(self, inherited: dict[str, Variable]) -> State:
        branch = State(
            self._recording,
            self._sequence.branch(),
            inherited=inherited,
            prefix=self._prefix,
            outer_name=self._outer_name,
            depth=self._depth,
        )
        branch._last_before = self._generated[-1] if self._generated else self._last_before
        return branch

    def _callee(self, name: str, *, on_same_sequence: bool) -> State:
        """The state of a program called `name`; its variables appear in this state as `name.variable`.

        Raises:
            TraceError: programs call each other more than MAX_PROGRAM_DEPTH deep.
        """
        self._check_growing()
        if self._depth >= MAX_PROGRAM_DEPTH:
            raise TraceError(
                f"the call of {name} is nested {MAX_PROGRAM_DEPTH + 1} programs deep; at most {MAX_PROGRAM_DEPTH} are allowed",
                user_location(),
            )
        key, number = f"{self._prefix}{name}.", 1
        while key in self._calls or any(known.startswith(key) for known in self._variables):
            number += 1
            key = f"{self._prefix}{name}#{number}."
        self._calls.add(key)
        sequence = self._sequence if on_same_sequence else None
        callee = State(self._recording, sequence, outer_name=self._outer_name + key, caller=self, depth=self._depth + 1)
        callee._forks = self._forks
        if on_same_sequence:
            callee._generated, callee._last_before = self._generated, self._last_before
        return callee

    # Names

    def _new_key(self, name: str | None) -> str | None:
        self._check_growing()
        if name is None:
            return None
        if len(name) > MAX_OWN_NAME_CHARS:
            raise _too_long(name, "", MAX_OWN_NAME_CHARS)
        key = self._prefix + name
        if key in self._variables:
            raise TraceError(
                f"name {key!r} already exists in this state; use another name or s.scope(...)", user_location()
            )
        return key

    def _graph_name(self, key: str | None) -> str | None:
        full = None if key is None else self._outer_name + key
        if full is not None and len(full) > MAX_NAME_CHARS:
            raise _too_long(full, "with its scopes", MAX_NAME_CHARS)
        return full

    def _check_growing(self) -> None:
        if self._is_joined:
            raise TraceError("this state has been joined; it can be read but not appended to", user_location())

    def _define(self, key: str, variable: Variable) -> None:
        self._variables[key] = variable
        if self._caller is not None:
            self._caller._define(self._outer_name.removeprefix(self._caller._outer_name) + key, variable)

    def _visible(self) -> dict[str, Variable]:
        return {**self._inherited, **self._variables}

    def _find(self, name: str) -> Variable:
        prefix = self._prefix
        while True:
            for names in (self._variables, self._inherited):
                if prefix + name in names:
                    return names[prefix + name]
            if not prefix:
                return None
            prefix = prefix[: prefix[:-1].rfind(".") + 1]

    def _variable(self, name: object) -> Variable:
        found = self._find(name) if isinstance(name, str) else None
        if found is None:
            known = ", ".join(sorted(self._visible())) or "none"
            raise TraceError(f"variable {name!r} does not exist; existing variables: {known}", user_location())
        return found


class RoleBlock:
    """Context manager that turns everything appended inside into one chat message.

    If the block ends by an exception, the message is dropped: the sequence goes on from before it. Variables made inside stay readable.
    """

    __slots__ = ("_before", "_start", "_state")

    def __init__(self, state: State, start: RoleStart) -> None:
        self._state, self._start = state, start
        self._before: int | None = None

    def __enter__(self) -> State:
        self._state._check_growing()
        self._before = self._state._sequence.open_role(self._start)
        return self._state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._state._sequence.close_role(self._before)
        else:
            self._state._sequence.drop_role(self._before)


class Scope:
    """Context manager for a named block with its own namespace."""

    __slots__ = ("_name", "_outer_prefix", "_start", "_state")

    def __init__(self, state: State, name: str) -> None:
        self._state, self._name = state, name
        self._outer_prefix = ""
        self._start: int | None = None

    def __enter__(self) -> State:
        state = self._state
        state._new_key(self._name)
        self._outer_prefix, self._start = state._prefix, state._sequence.head
        state._prefix = f"{self._outer_prefix}{self._name}."
        return state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        state = self._state
        state._prefix = self._outer_prefix
        if error is None:
            text = state._text_after(self._start, repr(self._name))
            key = state._new_key(self._name)
            assert key is not None
            state._define(key, Entry(text, text, None))


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
            return [state[key] for state in self._states]
        return self._states[key]

    def __setitem__(self, key: int, state: State) -> None:
        """Supports `forks[i] += ...`."""
        if self._states[key] is not state:
            raise TraceError("a fork cannot be replaced by another state", user_location())

    def __iadd__(self, item: object) -> Forks:
        """Append to all states: the same expression, a list item by item, or the result of a function of the index.

        Raises:
            TraceError: the list has a different length.
        """
        items: list[object]
        if isinstance(item, (list, tuple)):
            if len(item) != len(self._states):
                raise TraceError(
                    f"forks += a list of {len(item)} items; expected {len(self._states)} items, one per fork",
                    user_location(),
                )
            items = list(item)
        elif callable(item) and not isinstance(item, (Expr, Value)) and not hasattr(type(item), "_rt_call"):
            function: Callable[[int], object] = item
            items = [function(index) for index in range(len(self._states))]
        else:
            items = [item] * len(self._states)
        for state, each in zip(self._states, items, strict=True):
            state += each
        return self

    def join(self) -> None:
        """Make each variable of the forks a list on the parent, in fork order, with None for forks without it.

        Joined forks can be read but not appended to.

        Raises:
            TraceError: the forks have already been joined.
        """
        if self._is_joined:
            raise TraceError("these forks have already been joined", user_location())
        self._is_joined = True
        names = dict.fromkeys(name for state in self._states for name in state._variables)
        for state in self._states:
            state._is_joined = True
            state._sequence.end()
        for name in names:
            self._parent._define(name, [state._variables.get(name) for state in self._states])


def _too_long(name: str, how: str, limit: int) -> TraceError:
    counted = f"{len(name)} characters {how}".rstrip()
    return TraceError(f"name {name[:40]!r}... has {counted}; at most {limit} are allowed", user_location())


def _check_text(name: object, function: str) -> str:
    if not isinstance(name, str) or not name:
        raise TraceError(f"{function}(): name = {name!r}; expected a non-empty string", user_location())
    return name
