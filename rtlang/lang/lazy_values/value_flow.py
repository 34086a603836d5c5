"""What a function does with a value that one of its instructions makes, read from its bytecode.

Python does not let an object see that it is compared with `is`, that a pattern of `match` tests its class, or that it is thrown away.
So the code is followed from the instruction that makes the value, along all jumps and through local variables, to the places where the
value is tested or used. This needs no source. An instruction that is not known here counts as a use, after which nothing more is followed.

A value is followed as a mark on the operand stack or on a local variable. The stack below the value is not known, and holds no mark.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple

MAX_CODES = 4096
"""Functions whose results are kept; then they are read anew."""
MAX_STATES = 20_000
"""Instructions that are followed for one value; a longer function counts as a use."""


class IdentityTest(NamedTuple):
    """A test that a lazy value cannot answer.

    Attributes:
        line: its line.
        operator: "is", "is not" or "match".
        constant: the other operand of `is`, if it is a constant, as a tuple of it; for None `(None,)`.
        name: the last name in the other operand of `is`, such as `RED` in `Color.RED`.
    """

    line: int
    operator: str
    constant: tuple[Any] | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to a value.

    Attributes:
        is_used: whether anything may use it, other than the caller of the function.
        is_returned: whether the function may return it.
        tests: tests that it is given to.
    """

    is_used: bool
    is_returned: bool
    tests: tuple[IdentityTest, ...]

    @property
    def is_lost(self) -> bool:
        """Whether it is thrown away, whatever the function does."""
        return not (self.is_used or self.is_returned)


_USED = Fate(True, False, ())


class _Mark(NamedTuple):
    """An operand that is followed or known."""

    kind: str  # value, items (a list of such values), held (a list or dict with the value), const or name
    of: Any = None


_VALUE, _ITEMS, _HELD = _Mark("value"), _Mark("items"), _Mark("held")
_FOLLOWED = ("value", "items", "held")
_Stack = tuple[_Mark | None, ...]
_Locals = frozenset[tuple[str, _Mark]]


class _State(NamedTuple):
    """Where the value is before an instruction: the known top of the stack, and the local variables."""

    at: int
    stack: _Stack
    variables: _Locals


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Instructions by what they do with the stack. The number of operands follows from `dis.stack_effect`.
_PUSH = _names(
    "LOAD_NAME LOAD_GLOBAL LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF LOAD_CLOSURE PUSH_NULL LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR "
    "LOAD_LOCALS LOAD_COMMON_CONSTANT WITH_EXCEPT_START RESUME NOP CACHE EXTENDED_ARG MAKE_CELL COPY_FREE_VARS RETURN_GENERATOR "
    "KW_NAMES SETUP_ANNOTATIONS NOT_TAKEN GET_LEN JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT"
)
_ONE_RESULT = _names(
    "UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL CONVERT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC FORMAT_VALUE GET_AWAITABLE "
    "GET_YIELD_FROM_ITER GET_AITER BINARY_OP BINARY_SLICE COMPARE_OP CONTAINS_OP IMPORT_NAME BUILD_STRING BUILD_SLICE CALL_KW "
    "CALL_FUNCTION_EX CALL_INTRINSIC_1 CALL_INTRINSIC_2 LIST_TO_TUPLE MAKE_FUNCTION YIELD_VALUE SET_FUNCTION_ATTRIBUTE"
)
_HOLDING = _names("BUILD_LIST BUILD_TUPLE BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP")
_POP = _names(
    "STORE_NAME STORE_GLOBAL STORE_ATTR STORE_SUBSCR STORE_SLICE DELETE_SUBSCR DELETE_ATTR DELETE_NAME DELETE_GLOBAL LIST_APPEND SET_ADD "
    "MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE POP_EXCEPT END_FOR PRINT_EXPR"
)
_REPLACE = {
    "SEND": 2,
    "END_SEND": 2,
    "BEFORE_WITH": 1,
    "BEFORE_ASYNC_WITH": 1,
    "LOAD_SPECIAL": 1,
    "PUSH_EXC_INFO": 1,
    "MATCH_KEYS": 2,
}
_REPLACE |= {
    "CHECK_EXC_MATCH": 2,
    "CHECK_EG_MATCH": 2,
    "UNPACK_EX": 1,
    "IMPORT_FROM": 1,
    "GET_ANEXT": 1,
    "CLEANUP_THROW": 3,
}
_ENDS = _names("RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE INTERPRETER_EXIT")
_ALWAYS_JUMPS = _names("JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT")
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


class _Function:
    """The instructions of a code object, by index, with the places where they may go on."""

    def __init__(self, code: CodeType) -> None:
        made = dis.Bytecode(code)
        self.code = code
        self.instructions = [each for each in made if each.opname not in ("CACHE", "EXTENDED_ARG")]
        self.at = {each.offset: index for index, each in enumerate(self.instructions)}
        offsets = sorted(self.at)
        for before, after in zip(offsets, [*offsets[1:], len(code.co_code)], strict=True):
            self.at.update((offset, self.at[before]) for offset in range(before, after, 2))  # within its caches
        for each in made:  # a jump may lead to a prefix of its target
            if each.opname == "EXTENDED_ARG":
                self.at[each.offset] = next(
                    index for index, after in enumerate(self.instructions) if after.offset > each.offset
                )
        self.named_calls: dict[tuple[int, str], bool] = {}
        entries = getattr(made, "exception_entries", ())
        self.handlers = [
            (self.at[each.start], self.at.get(each.end, len(self.instructions)), self.at[each.target])
            for each in entries
        ]

    def comprehension_at(self, call: dis.Instruction) -> CodeType | None:
        """The code of the comprehension or generator expression that a call runs; None if it is another call."""
        before = self.instructions[: self.at[call.offset]]
        for load, made in pairwise(before):
            if (
                made.opname == "MAKE_FUNCTION"
                and made.positions == call.positions
                and isinstance(load.argval, CodeType)
            ):
                return load.argval
        return None


class _Follower:
    """Follows one value through a function; see `Fate`."""

    def __init__(self, function: _Function) -> None:
        self.function = function
        self.is_used = self.is_returned = False
        self.tests: dict[IdentityTest, None] = {}
        self._captured: dict[str, _Mark] = {}

    def follow(self, start: int, stack: _Stack, variables: _Locals = frozenset()) -> Fate:
        """The fate of the marked operands before instruction `start`."""
        todo, seen = [_State(start, stack, variables)], set[_State]()
        while todo:
            state = todo.pop()
            if state in seen or state.at >= len(self.function.instructions):
                continue
            if not state.variables and not any(each is not None and each.kind in _FOLLOWED for each in state.stack):
                continue  # nothing is left to follow
            seen.add(state)
            if len(seen) > MAX_STATES:
                return _USED
            todo.extend(self._after(state))
        self._captured.update(
            (name.removesuffix(_OF_CLOSURE), mark) for name, mark in variables if name.endswith(_OF_CLOSURE)
        )
        for name, mark in self._captured.items():
            for inner in self.function.code.co_consts:
                if isinstance(inner, CodeType) and name in inner.co_freevars:
                    self._add(_flow(inner, 0, (), frozenset({(_cell(name), mark)})))
        return Fate(self.is_used, self.is_returned, tuple(self.tests))

    def _add(self, inner: Fate) -> None:
        self.is_used |= inner.is_used
        self.tests.update(dict.fromkeys(inner.tests))

    def _after(self, state: _State) -> Iterator[_State]:
        """The states after an instruction."""
        index, stack, variables = state
        for first, last, target in self.function.handlers:
            if first <= index < last and variables:
                yield _State(target, (), variables)
        step = self.function.instructions[index]
        is_jump = step.opcode in _JUMPS
        if step.opname in _ENDS:
            if step.opname == "RETURN_VALUE" and _top(stack) is not None:
                self._return(_top(stack))
            elif _is_followed(stack, 2) and step.opname != "RETURN_CONST":
                self.is_used = True
            return
        branches = (False, True) if is_jump and step.opname not in _ALWAYS_JUMPS else (is_jump,)
        for jumps in branches:
            left, right = self._effect(step, stack, variables, jumps)
            yield _State(self.function.at[step.argval] if jumps else index + 1, left, right)

    def _return(self, mark: _Mark | None) -> None:
        if mark is not None and mark.kind == "value":
            self.is_returned = True
        elif mark is not None and mark.kind in _FOLLOWED:
            self.is_used = True

    def _effect(self, step: dis.Instruction, stack: _Stack, variables: _Locals, jumps: bool) -> tuple[_Stack, _Locals]:
        """The stack and the variables after an instruction."""
        name, arg = step.opname, step.arg or 0
        found = dict(variables)
        variable = _VARIABLES.get(name)
        if variable is not None:
            stack = variable(self, stack, found, step.argval)
            return _cut(stack), frozenset(found.items())
        if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            known = None if isinstance(step.argval, CodeType) else _constant(step.argval)
            return _cut((*stack, known)), variables
        if name == "POP_TOP":
            return stack[:-1], variables
        if name == "COPY":
            return (*stack, _at(stack, arg)), variables
        if name == "SWAP":
            whole = list((None,) * (arg - len(stack)) + stack)
            whole[-1], whole[-arg] = whole[-arg], whole[-1]
            return _cut(tuple(whole)), variables
        effect = 0 if name == "PRECALL" else _effect_of(step, jumps)
        if name in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
            self._use(stack, 1)
            return (stack if jumps else stack[:-1]), variables
        if name == "PRECALL":
            return stack, variables
        return _cut(self._known(name, step, stack, effect, arg)), variables

    def _known(self, name: str, step: dis.Instruction, stack: _Stack, effect: int, arg: int) -> _Stack:
        if name == "LOAD_GLOBAL" or name == "LOAD_NAME":
            return (*stack, *(None,) * (effect - 1), _Mark("name", step.argval))  # before 3.13 NULL is below the name
        if name in ("MATCH_SEQUENCE", "MATCH_MAPPING"):
            self._test(step, "match", _top(stack), None)
            return (*stack, None)
        if name in _PUSH:
            return (*stack, *(None,) * effect)
        if name.startswith("POP_JUMP"):
            if "NONE" in name:
                operator = "is" if "NOT" not in name else "is not"
                self._test(step, operator, _top(stack), _constant(None))
            self._use(stack, 1)
            return stack[:-1]
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._use(stack, 1)
            return (*stack[:-1], *(None,) * effect, _Mark("name", step.argval))
        if name == "IS_OP":
            left, right = _at(stack, 2), _top(stack)
            self._test(step, "is not" if arg else "is", left, right)
            self._test(step, "is not" if arg else "is", right, left)
            return self._replaced(stack, 2, 1)
        if name == "MATCH_CLASS":
            self._test(step, "match", _at(stack, 3), None)
            return self._replaced(stack, 3, 3 + effect)
        if name == "CALL":
            return self._called(step, stack, arg)
        if name == "BINARY_SUBSCR" and _at(stack, 2) == _ITEMS:
            return (*self._replaced(stack, 2, 0), _VALUE)
        if name == "BINARY_SUBSCR" or name in _ONE_RESULT:
            return self._replaced(stack, 1 - effect, 1)
        if name == "GET_ITER":
            return stack if _top(stack) == _ITEMS else self._replaced(stack, 1, 1)
        if name == "FOR_ITER":
            return (
                (*stack, *(None,) * (effect - 1), _VALUE if _top(stack) == _ITEMS else None)
                if effect > 0
                else stack[:effect]
            )
        if name == "UNPACK_SEQUENCE":
            each = _VALUE if _top(stack) == _ITEMS else None
            return (*self._replaced(stack, 1, 0), *(each,) * arg)
        if name in _HOLDING:
            start = max(len(stack) - (1 - effect), 0)
            is_holding = any(each in (_VALUE, _HELD) for each in stack[start:])
            return (*stack[:start], _HELD if is_holding else None)
        if name in _POP:
            return self._replaced(stack, -effect, 0)
        if name in _REPLACE:
            count = _REPLACE[name]
            return self._replaced(stack, count, max(count + effect, 0))
        if _is_followed(stack, len(stack)):
            self.is_used = True
        return ()

    def _called(self, step: dis.Instruction, stack: _Stack, count: int) -> _Stack:
        if count == 0 and _top(stack) == _ITEMS:  # a comprehension over the list, whose code was loaded before the list
            code = self.function.comprehension_at(step)
            if code is not None:
                self._add(_flow(code, 0, (), frozenset({(".0", _ITEMS)})))
        return self._replaced(stack, count + 2, 1)

    def _use(self, stack: _Stack, count: int) -> None:
        if _is_followed(stack, count):
            self.is_used = True

    def _replaced(self, stack: _Stack, num_taken: int, num_made: int) -> _Stack:
        self._use(stack, num_taken)
        return (*stack[: max(len(stack) - num_taken, 0)], *(None,) * num_made)

    def _test(self, step: dis.Instruction, operator: str, subject: _Mark | None, other: _Mark | None) -> None:
        if subject != _VALUE:
            return
        constant = (other.of[1],) if other is not None and other.kind == "const" else None
        name = other.of if other is not None and other.kind == "name" else None
        line = step.positions.lineno if step.positions is not None else None
        self.tests[IdentityTest(line or self.function.code.co_firstlineno, operator, constant, name)] = None

    def _load(self, stack: _Stack, variables: dict[str, _Mark], name: str) -> _Stack:
        return (*stack, variables.get(name) or _Mark("name", name))

    def _store(self, stack: _Stack, variables: dict[str, _Mark], name: str) -> _Stack:
        mark = _top(stack)
        variables.pop(name, None)
        if mark is not None and mark.kind in _FOLLOWED:
            variables[name] = mark
        return stack[:-1]

    def _store_cell(self, stack: _Stack, variables: dict[str, _Mark], name: str) -> _Stack:
        mark = _top(stack)
        if mark is not None and mark.kind in _FOLLOWED:
            self._captured[name] = mark
            self.is_used = True
        return self._store(stack, variables, _cell(name))

    def _load_cell(self, stack: _Stack, variables: dict[str, _Mark], name: str) -> _Stack:
        return self._load(stack, variables, _cell(name))

    def _load_clear(self, stack: _Stack, variables: dict[str, _Mark], name: str) -> _Stack:
        return (*stack, variables.pop(name, None))

    def _delete(self, stack: _Stack, variables: dict[str, _Mark], name: str) -> _Stack:
        variables.pop(name, None)
        return stack

    def _load_two(self, stack: _Stack, variables: dict[str, _Mark], names: tuple[str, str]) -> _Stack:
        return self._load(self._load(stack, variables, names[0]), variables, names[1])

    def _store_two(self, stack: _Stack, variables: dict[str, _Mark], names: tuple[str, str]) -> _Stack:
        return self._store(self._store(stack, variables, names[0]), variables, names[1])

    def _store_load(self, stack: _Stack, variables: dict[str, _Mark], names: tuple[str, str]) -> _Stack:
        return self._load(self._store(stack, variables, names[0]), variables, names[1])


_Variable = Callable[[_Follower, _Stack, dict[str, _Mark], Any], _Stack]
_VARIABLES: dict[str, _Variable] = {
    "LOAD_FAST": _Follower._load,
    "LOAD_FAST_CHECK": _Follower._load,
    "LOAD_FAST_BORROW": _Follower._load,
    "LOAD_FAST_AND_CLEAR": _Follower._load_clear,
    "LOAD_FAST_LOAD_FAST": _Follower._load_two,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": _Follower._load_two,
    "STORE_FAST": _Follower._store,
    "STORE_FAST_MAYBE_NULL": _Follower._store,
    "STORE_FAST_STORE_FAST": _Follower._store_two,
    "STORE_FAST_LOAD_FAST": _Follower._store_load,
    "DELETE_FAST": _Follower._delete,
    "LOAD_DEREF": _Follower._load_cell,
    "STORE_DEREF": _Follower._store_cell,
}


def _constant(value: Any) -> _Mark:
    return _Mark("const", (type(value), value))  # with its type, because 1 equals True


_OF_CLOSURE = " of a closure"


def _cell(name: str) -> str:
    return name + _OF_CLOSURE


def _top(stack: _Stack) -> _Mark | None:
    return stack[-1] if stack else None


def _at(stack: _Stack, depth: int) -> _Mark | None:
    return stack[-depth] if depth <= len(stack) else None


def _is_followed(stack: _Stack, count: int) -> bool:
    taken = stack[max(len(stack) - count, 0) :] if count else ()
    return any(each is not None and each.kind in _FOLLOWED for each in taken)


def _cut(stack: _Stack) -> _Stack:
    """The stack without what is below the lowest followed or known operand."""
    start = 0
    while start < len(stack) and stack[start] is None:
        start += 1
    return stack[start:]


def _effect_of(step: dis.Instruction, jumps: bool) -> int:
    has_arg = step.opcode >= dis.HAVE_ARGUMENT
    return dis.stack_effect(step.opcode, (step.arg or 0) if has_arg else None, jump=jumps)


_functions: dict[int, tuple[_Function, dict[tuple[int, bool], Fate]]] = {}


def _flow(code: CodeType, start: int, stack: _Stack, variables: _Locals) -> Fate:
    return _Follower(_read(code)[0]).follow(start, stack, variables)


def _read(code: CodeType) -> tuple[_Function, dict[tuple[int, bool], Fate]]:
    found = _functions.get(id(code))
    if found is None:
        if len(_functions) >= MAX_CODES:
            _functions.clear()
        found = _functions[id(code)] = _Function(code), {}  # the function keeps the code, and with it its id
    return found


def fate_of(code: CodeType, offset: int, *, is_list: bool = False) -> Fate:
    """The fate of the value that the instruction at an offset (`frame.f_lasti`) makes; with `is_list`, of the items of that list."""
    function, fates = _read(code)
    key = offset, is_list
    if key not in fates:
        fates[key] = _Follower(function).follow(function.at[offset] + 1, (_ITEMS if is_list else _VALUE,))
    return fates[key]


def fate_of_parameter(code: CodeType, name: str) -> Fate:
    """The fate of the value of a parameter."""
    marks = frozenset({(_cell(name) if name in code.co_cellvars else name, _VALUE)})
    return _flow(code, 0, (), marks)


def calls_by_name(code: CodeType, offset: int, name: str) -> bool:
    """Whether the call at an offset is written as a call of `name`, as a variable or as a method."""
    function = _read(code)[0]
    key = offset, name
    if key not in function.named_calls:
        function.named_calls[key] = _calls_by_name(function, function.at[offset], name)
    return function.named_calls[key]


def _calls_by_name(function: _Function, index: int, name: str) -> bool:
    call = function.instructions[index]
    start = _start_of(call)
    return start is not None and any(
        each.opname.startswith("LOAD_")
        and name in (each.argval if isinstance(each.argval, tuple) else (each.argval,))
        and _start_of(each) == start
        for each in function.instructions[:index]
    )


def _start_of(step: dis.Instruction) -> tuple[int, int] | None:
    at = step.positions
    return None if at is None or at.lineno is None or at.col_offset is None else (at.lineno, at.col_offset)
