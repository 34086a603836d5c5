"""The record of a state: the sequence to which it appends, and its variables.

`State` is the public view for program bodies; the rest of the package uses its `StateRecord`. A fork continues the same node. A callee has
its own variables, which its caller sees under the name of the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rtlang.compiler.context import Pieces
from rtlang.contract.errors import TraceError
from rtlang.contract.graph.node_paths import mixed_seed, segment
from rtlang.contract.params import MAX_SEED, SamplingParams
from rtlang.contract.process.call_context import EMIT
from rtlang.contract.request_graph import MAX_NAME_CHARS, Part, Ref, RoleEnd, RoleStart, TokenIds
from rtlang.lang.lazy_values.values import Value, parts_of, source_of, text_value, user_location
from rtlang.lang.program_state import expr as exprs
from rtlang.lang.program_state.checked_generation import CheckedGeneration
from rtlang.lang.program_state.expr import Expr, as_expr
from rtlang.lang.program_state.sequence import NodeSequence
from rtlang.lang.program_state.variables import Plain, TextVariable, Variable, generated
from rtlang.lang.recordings.operands import actual, operand_for, reader_for
from rtlang.lang.recordings.recording import Recording

MAX_OWN_NAME_CHARS = 256
MAX_PROGRAM_DEPTH = 100
"""How deeply programs may call each other. Each call takes about four of the frames that Python limits to 1,000."""


OpenedScope = tuple[str, str, int | None]
"""The prefix, the place and the end of the sequence before a scope."""


class StateRecord:
    """The sequence and the variables of one state.

    Attributes:
        recording: the nodes of the run.
        sequence: the nodes that the state continues; a program called on a state shares it.
        inherited: variables of the states that this one continues.
        variables: its own variables by their names with scopes.
        prefix: the prefix of the open scopes.
        outer_name: the prefix of names in the graph: the enclosing calls.
        place: the path (`node_paths`) in which its nodes are: enclosing calls, forks, blocks and open scopes; empty for the program itself.
        fork_index: the indices of the forks around it; empty outside of forks and in first forks, which sample as their parents do.
        caller: receives the variables of this state, too, prefixed with the name of the call.
        depth: number of enclosing calls.
        generated: its generations, named or not, in order, including calls on the same sequence.
        replaced: by name, the earlier generations of variables that were generated again, in order.
        last_before: the last generation of the state that this one continues.
        forks: the states of each fork, including calls.
        is_joined: whether nothing can be appended any more.
    """

    def __init__(
        self,
        recording: Recording,
        sequence: NodeSequence | None = None,
        *,
        inherited: dict[str, Variable] | None = None,
        prefix: str = "",
        outer_name: str = "",
        place: str = "",
        fork_index: str = "",
        caller: StateRecord | None = None,
        depth: int = 0,
    ) -> None:
        self.recording = recording
        self.sequence = NodeSequence(recording) if sequence is None else sequence
        self.inherited = {} if inherited is None else inherited
        self.variables: dict[str, Variable] = {}
        self.prefix, self.outer_name = prefix, outer_name
        self.place, self.fork_index = place, fork_index
        self.caller, self.depth = caller, depth
        self.generated: list[Variable] = []
        self.replaced: dict[str, list[Variable]] = {}
        self.last_before: Variable = None
        self.forks: list[list[StateRecord]] = []
        self.is_joined = False
        self._calls: set[str] = set()
        self._last_of_block: tuple[int, Variable] = (
            -1,
            None,
        )  # after so many generations, the last one of a branch or loop
        self._last_emission: int | None = None

    # Recording

    def append(self, expr: Expr) -> None:
        """Append an expression to the sequence, as one step; if that raises, nothing was appended."""
        sequence = self.sequence
        first_id, before = self.recording.nodes.free_id, sequence.head
        try:
            self.record(expr)
        except BaseException:
            sequence.go_back_to(before)
            raise
        sequence.end_step(first_id, before)

    @contextmanager
    def step(self) -> Iterator[None]:
        """All that is appended to the sequence in the context is one step."""
        sequence = self.sequence
        first_id, before = self.recording.nodes.free_id, sequence.head
        try:
            yield
        finally:
            sequence.end_step(first_id, before)

    def record(self, expr: Expr) -> None:
        """Append an expression to the sequence."""
        match expr:
            case exprs.Pieces():
                self.sequence.append(self._parts(expr))
            case exprs.Gen():
                self._record_gen(expr)
            case exprs.Role():
                self._record_message(expr)
            case exprs.Series():
                for each in expr.items:
                    self.record(each)
            case exprs.Select():
                self._record_select(expr)
            case exprs.Recorded():
                expr.record(self)
            case exprs.FreeText():
                pieces = self._free_pieces(expr)
                self.sequence.append((part for piece in pieces for part in piece), pieces)
            case _:
                raise AssertionError(f"{type(expr).__name__} is not a known expression")

    def _record_message(self, expr: exprs.Role) -> None:
        """Record a message: one node if it is all text."""
        only = expr.content[0] if len(expr.content) == 1 else None
        if isinstance(only, exprs.Pieces):
            self.sequence.append_message(expr.start, self._parts(only))
        elif isinstance(only, exprs.FreeText):
            pieces = self._free_pieces(only)
            self.sequence.append_message(expr.start, (part for piece in pieces for part in piece), pieces)
        else:
            self.sequence.open_role(expr.start)
            try:
                for each in expr.content:
                    self.record(each)
            except BaseException:
                self.sequence.drop_role()
                raise
            self.sequence.close_role()

    def _free_pieces(self, expr: exprs.FreeText) -> Pieces:
        pieces = (tuple(part for part in self._parts(piece) if part != "") for piece in expr.pieces)
        return tuple(piece for piece in pieces if piece)

    def _parts(self, expr: exprs.Pieces) -> list[Part]:
        """The text parts of an expression; values that are no text are waited for."""
        parts: list[Part] = []
        for piece in expr.pieces:
            if isinstance(piece, (str, TokenIds)):
                parts.append(piece)
            elif source_of(piece) in (None, self.recording):
                found = parts_of(piece, self.recording)
                parts.extend(self._waited_for(piece) if found is None else found)
            else:
                raise TraceError(
                    f"{piece!r} belongs to another run; pass its text instead, such as str(value)", user_location()
                )
        return parts

    def _waited_for(self, value: Value) -> list[Part]:
        """Wait for a value and return its text. An item of data, such as None, must be of a type that can be appended."""
        actual = value._rt_real("use of a non-text value in text")
        if value._rt_lazy is None:  # usage, messages, ...
            return [str(actual)]
        made = as_expr(actual, f"the value of {value._rt_what}")
        assert isinstance(made, exprs.Pieces)
        return self._parts(made)

    def _record_gen(self, gen: exprs.Gen) -> None:
        key = self.new_key(gen.name)
        recording, sequence = self.recording, self.sequence
        params = self.sampling(gen)
        path = self.new_path("gen" if gen.name is None else segment(gen.name))
        if gen.checks is not None:
            node_ids = [self._record_checked(gen, key, params, path, number) for number in range(params.n)]
        elif gen.reasoning is False:
            node_ids = [recording.add_generate(sequence.head, self._graph_name(key), params, gen.kind, path)] * params.n
        else:
            node_ids = [self._record_reasoned(gen, key, params, path, number) for number in range(params.n)]
        entries: list[Variable] = []
        for number, node_id in enumerate(node_ids):
            what = f"node {node_id}" if gen.name is None else repr(gen.name)
            choice = number if gen.reasoning is False and gen.checks is None else 0
            constraint = gen.kind.constraint
            entries.append(generated(recording, node_id, choice, what, constraint, is_text=gen.kind.is_text))
        if params.n == 1:
            sequence.head = node_ids[0]
        else:
            sequence.keep_head()
        self.add_generation(key, entries if params.n > 1 else entries[0])

    def emit(self, value: object) -> None:
        """Record that a value is sent to the stream of the run."""
        recording = self.recording
        operand = operand_for(value, recording, "the value of emit()")
        reader = reader_for(value, recording) if recording.is_in_block else None

        def read(plain: tuple[object, ...]) -> object:
            return actual(value, plain[0]) if reader is None else reader(plain[0])

        with recording.nodes.lock:
            node_id = recording.add_call(EMIT, (operand,), read, self.new_path("emit"), "retry")
            if self._last_emission is not None:
                recording.nodes.emitted_before[node_id] = self._last_emission
            if not recording.is_in_block:
                self._last_emission = node_id

    def sampling(self, gen: exprs.Gen) -> SamplingParams:
        """The sampling parameters of a generation. In a fork other than the first, a seed of its own is mixed with the index of the fork.

        Raises:
            ParameterError: an option is invalid.
        """
        params = self.recording.effective(gen.name, gen.params, gen.options)
        if params.seed is None or not self.fork_index:
            return params
        return replace(params, seed=mixed_seed(params.seed, self.fork_index) % (MAX_SEED + 1))

    def new_path(self, last: str) -> str:
        """The path of a new node or place in this state; `last` is a segment (`node_paths`)."""
        return self.recording.nodes.new_path(self.place, last)

    def _record_checked(self, gen: exprs.Gen, key: str | None, params: SamplingParams, path: str, number: int) -> int:
        """Record completion `number` of a generation with checks; returns the node that stands for its value."""
        recording = self.recording
        alone = replace(_completion(params, number), keeps_invalid=True)
        name = self._graph_name(key)
        if name is None:
            recording.has_unnamed = True

        def attempt(parent: int | None, params: SamplingParams, path: str) -> tuple[int, int | None]:
            thought = self._record_thought(gen, parent, params, path)
            node_id = recording.add_generate(
                parent if thought is None else thought, name, params, gen.kind, path, reasoning=thought, is_attempt=True
            )
            return node_id, thought

        own_path = f"{path}[{number}]" if params.n > 1 else path
        return CheckedGeneration(self, gen, name, alone, own_path, attempt).record()

    def _record_reasoned(self, gen: exprs.Gen, key: str | None, params: SamplingParams, path: str, number: int) -> int:
        """Record completion `number` of a generation with reasoning before it, as two nodes; returns the second.

        Completions are nodes of their own, because each continues its own reasoning.
        """
        alone = _completion(params, number)
        own_path = f"{path}[{number}]" if params.n > 1 else path
        thought = self._record_thought(gen, self.sequence.head, alone, own_path)
        return self.recording.add_generate(thought, self._graph_name(key), alone, gen.kind, own_path, reasoning=thought)

    def _record_thought(self, gen: exprs.Gen, parent: int | None, params: SamplingParams, path: str) -> int | None:
        """Record the reasoning before the value of a generation; returns its node, or None if it has none."""
        if gen.reasoning is False:
            return None
        budget = params.max_tokens if gen.reasoning is True else gen.reasoning
        # Its constraint ends it. Stops, allowed tokens and log-probabilities apply to the value only.
        free = replace(
            params,
            max_tokens=budget,
            min_tokens=0,
            logprobs=None,
            prompt_logprobs=None,
            stop=(),
            stop_regex=(),
            allowed_token_ids=None,
        )
        return self.recording.add_reasoning(parent, free, gen.name, f"{path}:thought")

    def _record_select(self, select: exprs.Select) -> None:
        key = self.new_key(select.name)
        recording, sequence = self.recording, self.sequence
        path = self.new_path("select" if select.name is None else segment(select.name))
        sequence.head = recording.add_select(
            sequence.head, self._graph_name(key), select.choices, select.method, select.kind, path
        )
        what = f"node {sequence.head}" if select.name is None else repr(select.name)
        self.add_generation(key, generated(recording, sequence.head, 0, what, None, is_text=select.kind.is_text))

    def add_generation(self, key: str | None, variable: Variable) -> None:
        """Note a generation of the sequence, and define its variable if it has a name."""
        self.generated.append(variable)
        if key is not None:
            if key in self.variables:
                self.replaced.setdefault(key, []).append(self.variables[key])
            self.define(key, variable)

    # Other states

    def fork(self, count: int) -> list[StateRecord]:
        """States that continue this one; kept in `forks`."""
        self.check_growing()
        visible, path = self.visible(), self.new_path("fork")
        forks = [
            self._continued(
                self.sequence.branch(),
                visible,
                self.depth,
                f"{path}[{index}]",
                f"{self.fork_index}.{index}" if index else "",
            )
            for index in range(count)
        ]
        self.recording.fork_sequences.extend(each.sequence for each in forks)
        self.forks.append(forks)
        return forks

    def copy(self) -> StateRecord:
        """A state that continues this one, with copies of its variables."""
        self.check_growing()
        copy = self._continued(self.sequence.branch(), dict(self.inherited), self.depth, self.new_path("copy"))
        copy.variables = dict(self.variables)
        return copy

    def block(self, node_id: int, place: str) -> StateRecord:
        """The state of a branch or loop whose control node is `node_id`; the paths of its nodes begin with `place`."""
        sequence = NodeSequence(self.recording, node_id, self.sequence.role)
        return self._continued(sequence, self.visible(), self.depth + 1, place)

    def _continued(
        self, sequence: NodeSequence, inherited: dict[str, Variable], depth: int, place: str, fork_index: str = ""
    ) -> StateRecord:
        found = StateRecord(
            self.recording,
            sequence,
            inherited=inherited,
            prefix=self.prefix,
            outer_name=self.outer_name,
            place=place,
            fork_index=fork_index or self.fork_index,
            depth=depth,
        )
        found.last_before = self.last
        return found

    def end_block(self, block: StateRecord) -> None:
        """Define the variables of a branch or loop; several branches, and earlier generations, may have the same names."""
        for key, variable in block.variables.items():
            earlier = self.variables.get(key)
            known = [*([] if earlier is None else [earlier]), *block.replaced.get(key, ())]
            if known:
                self.replaced.setdefault(key, []).extend(known)
            self.define(key, variable)
        last = block.last
        state: StateRecord | None = self
        while state is not None and state.generated is self.generated and last is not block.last_before:
            state._last_of_block = len(self.generated), last
            state = state.caller

    def callee(self, name: str, *, on_same_sequence: bool) -> StateRecord:
        """The state of a program called `name`; its variables appear in this state as `name.variable`.

        Raises:
            TraceError: programs call each other more than MAX_PROGRAM_DEPTH deep.
        """
        self.check_growing()
        if self.depth >= MAX_PROGRAM_DEPTH:
            raise TraceError(
                f"the call of {name} is nested {MAX_PROGRAM_DEPTH + 1} programs deep; at most {MAX_PROGRAM_DEPTH} are allowed",
                user_location(),
            )
        key, number = f"{self.prefix}{name}.", 1
        while key in self._calls or any(known.startswith(key) for known in self.variables):
            number += 1
            key = f"{self.prefix}{name}#{number}."
        self._calls.add(key)
        callee = StateRecord(
            self.recording,
            self.sequence if on_same_sequence else None,
            outer_name=self.outer_name + key,
            place=self.new_path(segment(name)),
            fork_index=self.fork_index,
            caller=self,
            depth=self.depth + 1,
        )
        callee.forks = self.forks
        if on_same_sequence:
            callee.generated, callee.last_before = self.generated, self.last_before
        return callee

    def join(self, forks: list[StateRecord]) -> None:
        """End forks of this state, and make each of their variables a list in this one."""
        names = dict.fromkeys(name for fork in forks for name in fork.variables)
        for fork in forks:
            fork.is_joined = True
            fork.sequence.end()
        for name in names:
            self.define(name, [fork.variables.get(name) for fork in forks])

    def concatenate(self, forks: list[StateRecord]) -> None:
        """Append what forks of this state have appended, one after the other. Waits for branches and loops in them.

        Raises:
            TraceError: a message was opened or closed since the fork.
        """
        self.check_growing()
        role = self.sequence.role
        for number, fork in enumerate(forks):
            if fork.sequence.role != role:
                raise TraceError(
                    f"join('concat'): fork {number} has {fork.sequence.role or 'no'} message open, but {role or 'none'} is open "
                    "in the state that it continues",
                    user_location(),
                )
        for fork in forks:
            self.sequence.append_pieces([self._whole_parts(fork.sequence)])

    def _whole_parts(self, sequence: NodeSequence) -> list[Part]:
        """The parts of a branch since its fork; those of branches and loops as text."""
        recording = self.recording
        controls = [part.node_id for part in sequence.parts(sequence.start) if recording.nodes.is_control(part)]  # type: ignore[union-attr]
        if controls:
            recording.require(controls, "join('concat')", "the text of a branch or loop")
        return [
            recording.text_of(part.node_id, part.choice)
            if isinstance(part, Ref) and part.node_id not in recording.nodes.outer
            else part
            for part in sequence.parts(sequence.start)
        ]

    # Variables

    @property
    def last(self) -> Variable:
        """The last generation of the sequence, named or not; None if there is none."""
        if self._last_of_block[0] == len(self.generated):
            return self._last_of_block[1]
        return self.generated[-1] if self.generated else self.last_before

    def check_growing(self) -> None:
        """Raise TraceError if nothing can be appended any more. A sequence that contains a failure leaves it."""
        if self.is_joined:
            raise TraceError("this state has been joined; it can be read but not appended to", user_location())
        self.leave_failed()

    def leave_failed(self) -> None:
        """Go back to the state before a failure that the body has seen (`NodeSequence.leave_failed`)."""
        if self.recording.outcomes.num_seen:
            self.sequence.leave_failed()

    def new_key(self, name: str | None) -> str | None:
        """The key of a new variable called `name`, with the open scopes.

        Raises:
            TraceError: the name is too long, or the state was joined.
        """
        self.check_growing()
        if name is None:
            return None
        if len(name) > MAX_OWN_NAME_CHARS:
            raise _too_long(name, "", MAX_OWN_NAME_CHARS)
        return self.prefix + name

    def define(self, key: str, variable: Variable) -> None:
        """Set a variable by its key, for the callers of this state too."""
        self.variables[key] = variable
        if self.caller is not None:
            self.caller.define(self.outer_name.removeprefix(self.caller.outer_name) + key, variable)

    def visible(self) -> dict[str, Variable]:
        """The variables that can be read by their full names."""
        return {**self.inherited, **self.variables}

    def find(self, name: str) -> Variable:
        """The variable that `name` means within the open scopes; None if it does not exist."""
        prefix = self.prefix
        while True:
            for names in (self.variables, self.inherited):
                if prefix + name in names:
                    return names[prefix + name]
            if not prefix:
                return None
            prefix = prefix[: prefix[:-1].rfind(".") + 1]

    def variable(self, name: object) -> Variable:
        """`find`, where the variable must exist.

        Raises:
            TraceError: it does not; lists the existing ones.
        """
        found = self.find(name) if isinstance(name, str) else None
        if found is None:
            known = ", ".join(sorted(self.visible())) or "none"
            raise TraceError(f"variable {name!r} does not exist; existing variables: {known}", user_location())
        return found

    def all_of(self, name: str) -> list[Variable]:
        """The generations of a variable, in order; the last one is the variable.

        Raises:
            TraceError: the variable does not exist.
        """
        last = self.variable(name)
        prefix = self.prefix
        while self.variables.get(prefix + name) is not last and prefix:
            prefix = prefix[: prefix[:-1].rfind(".") + 1]
        is_own = self.variables.get(prefix + name) is last
        return [*(self.replaced.get(prefix + name, ()) if is_own else ()), last]

    def text_after(self, start: int | None, what: str) -> Value:
        """The current text of the sequence after a node."""
        self.leave_failed()
        recording, sequence, head = self.recording, self.sequence, self.sequence.head
        start = sequence.current(start)

        def parts() -> list[Part]:
            if head is None:
                return []
            found = sequence.parts(start, end=head)
            texts = (part.text if isinstance(part, TokenIds) else part for part in found)
            return [part for part in texts if part and not isinstance(part, (RoleStart, RoleEnd))]

        now = parts()
        inside = recording.nodes.is_any_inside([part.node_id for part in now if isinstance(part, Ref)])
        if not inside and not any(recording.nodes.is_control(part) for part in now):
            return text_value(recording, now, what)
        needs = recording.needs_of_parts(now)

        def read() -> str:  # only then the chosen branches are known
            return "".join(
                part if isinstance(part, str) else recording.text_of(part.node_id, part.choice)
                for part in parts()
                if isinstance(part, (str, Ref))
            )

        return Value(recording, needs, None, read, what)

    def open_scope(self, name: str) -> OpenedScope:
        """Prefix later names with `name`; returns the argument of `close_scope`."""
        self.new_key(name)
        opened = self.prefix, self.place, self.sequence.head
        self.place = self.new_path(segment(name))
        self.prefix = f"{self.prefix}{name}."
        return opened

    def close_scope(self, name: str, opened: OpenedScope, *, has_failed: bool) -> None:
        """End a scope; its text becomes the variable `name`, unless it has failed."""
        self.prefix, self.place, start = opened
        if not has_failed:
            text = self.text_after(start, repr(name))
            key = self.new_key(name)
            assert key is not None
            self.define(key, TextVariable(text, text, None))

    def set_plain(self, name: str, value: object) -> None:
        """Set a variable to a value of the program body."""
        self.define(self.prefix + name, Plain(value))

    def append_item(self, name: str, value: object) -> None:
        """Add a value of the program body to a variable that is a list, or begin one.

        Raises:
            TraceError: the variable is no list, or its list does not exist before it is generated.
        """
        self.check_growing()
        match self.find(name):
            case None:
                items: list[Variable] = []
            case list() as found:
                items = found
            case Plain(list() as found):
                items = [Plain(each) for each in found]
            case Plain(other):
                raise TraceError(f"append({name!r}): the variable is {other!r:.60}; expected a list", user_location())
            case _:
                raise TraceError(
                    f"append({name!r}): the variable is a generated value; write s.set(name, [...]) with a name of its own, and "
                    f"append to that",
                    user_location(),
                )
        self.define(self.prefix + name, [*items, Plain(value)])

    def _graph_name(self, key: str | None) -> str | None:
        full = None if key is None else self.outer_name + key
        if full is not None and len(full) > MAX_NAME_CHARS:
            raise _too_long(full, "with its scopes", MAX_NAME_CHARS)
        return full


def _completion(params: SamplingParams, number: int) -> SamplingParams:
    """The parameters of completion `number` as a generation of its own."""
    seed = None if params.seed is None else (params.seed + number) % (MAX_SEED + 1)
    return replace(params, n=1, seed=seed)


def _too_long(name: str, how: str, limit: int) -> TraceError:
    counted = f"{len(name)} characters {how}".rstrip()
    return TraceError(f"name {name[:40]!r}... has {counted}; at most {limit} are allowed", user_location())
