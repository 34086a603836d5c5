"""Checks of a generated value: what they accept, what they say, and how a refused value is asked for again.

A check is a function of the typed value, or a program that gets the value and a state that continues the generation. Validators of the type
come first. Functions run where the program runs; a program judges within the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rtlang.contract.errors import CheckError, ParameterError, ValueParseError
from rtlang.contract.graph.host_calls import HostFunction, to_plain
from rtlang.contract.graph.value_size import check_plain
from rtlang.lang.output_types.types import OutputType

MAX_REPAIR = 10
CHAT_TURN = "The value is not valid: {message}\nWrite it again, corrected, in the same form."
"""The user message after a refused value of a chat."""
PLAIN_TURN = "\nThe value above is not valid: {message}\nCorrected value:\n"
"""The text after a refused value outside of an assistant message."""
_SLOT = "{message}"

Check = Callable[..., Any]
Keep = Literal["last", "all"]
Turn = str | Callable[[Any], Any] | None
"""The text of the turn after a refused value, with `{message}` in it; or a function of the lazy message, which returns an expression."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of a generation.

    Attributes:
        of: the checks, in order.
        repair: number of further attempts.
        keep: "all" keeps refused values and the turns after them in the sequence.
        on_repair: see `Turn`; None for the default.
    """

    of: tuple[Check, ...] = ()
    repair: int = 0
    keep: Keep = "last"
    on_repair: Turn = None

    def groups(self) -> list[tuple[tuple[Check, ...], Check | None]]:
        """The functions that run in one call, each group with the program that judges after it, if any."""
        groups: list[tuple[tuple[Check, ...], Check | None]] = []
        functions: list[Check] = []
        for check in self.of:
            if is_program(check):
                groups.append((tuple(functions), check))
                functions = []
            else:
                functions.append(check)
        return [*groups, (tuple(functions), None)]


def checks_of(
    kind: OutputType, check: Check | Iterable[Check] | None, repair: int, keep: Keep, on_repair: Turn
) -> Checks | None:
    """The checks of a generation of a type; None without checks and repair.

    Raises:
        ParameterError: an argument is invalid.
    """
    if isinstance(repair, bool) or not isinstance(repair, int) or not 0 <= repair <= MAX_REPAIR:
        raise ParameterError("repair", repair, f"expected 0 to {MAX_REPAIR} further attempts")
    if keep not in ("last", "all"):
        raise ParameterError("keep", keep, 'expected "last" or "all"')
    given = () if check is None else tuple(check) if isinstance(check, (list, tuple)) else (check,)
    for each in given:
        _check_callable(each)
    if isinstance(on_repair, str):
        if _SLOT not in on_repair:
            raise ParameterError("on_repair", on_repair, f"expected a text with {_SLOT} in it")
    elif on_repair is not None and not callable(on_repair):
        raise ParameterError(
            "on_repair", on_repair, f"expected a text with {_SLOT} in it, or a function of the message"
        )
    for field, value in (("keep", None if keep == "last" else keep), ("on_repair", on_repair)):
        if value is not None and not repair:
            raise ParameterError(field, value, "allowed only with repair=, the number of further attempts")
    if repair and not given and kind.is_text and kind.constraint is None:
        raise ParameterError("repair", repair, "nothing is checked: expected check=..., or a type or schema")
    return Checks(given, repair, keep, on_repair) if given or repair else None


def is_program(check: object) -> bool:
    """Whether a check is a program, which judges within the graph."""
    return hasattr(type(check), "_rt_judge")


def _check_callable(check: Any) -> None:
    if not callable(check):
        raise ParameterError("check", check, "expected a function of the value, a program, or a list of these")
    if is_program(check):
        if check.is_async:
            raise ParameterError("check", check, "expected a plain program; one that is async cannot be recorded")
        try:
            check.bind(None)
        except TypeError:
            raise ParameterError(
                "check", check, "expected a program of the state and the value: def judge(s, value)"
            ) from None
        return
    try:
        inspect.signature(check).bind(None)
    except ValueError:  # built-in functions have no signature
        return
    except TypeError:
        raise ParameterError(
            "check", check, "expected a function of one argument, the value; a program (rt.program) gets a state, too"
        ) from None


def turn_parts(template: str) -> tuple[str, ...]:
    """The texts around the messages in a template."""
    return tuple(template.split(_SLOT))


def validators_of(kind: OutputType) -> list[Callable[..., Any]]:
    """The functions of pydantic's validators that reading a value of this type calls."""
    found: list[Callable[..., Any]] = []

    def visit(part: Any) -> None:
        if isinstance(part, Mapping):
            function = part.get("function")
            if isinstance(function, Mapping) and callable(function.get("function")):
                found.append(function["function"])
            for each in part.values():
                visit(each)
        elif isinstance(part, (list, tuple)):
            for each in part:
                visit(each)

    reader = getattr(kind.parse, "__self__", None)  # a model, or the adapter of another type
    for name in ("__pydantic_core_schema__", "core_schema"):
        visit(getattr(reader, name, None))
    return found


def check_call(
    name: str, kind: OutputType, functions: Sequence[Check], judge: Check | None, failed_attempts: int | None
) -> HostFunction:
    """The host function that checks an attempt: of its text, and of the verdict of the program before, if any.

    Its value is None for an accepted value, or the message.

    Args:
        functions: run in order, after the validators of the type, until one refuses.
        judge: the program whose verdict is the second argument; the text was parsed before it.
        failed_attempts: for the last check of the last attempt, their number: a refused value raises CheckError.
    """

    def run(plain: tuple[Any, ...]) -> str | Awaitable[str | None] | None:
        text = plain[0]
        if judge is not None:
            message = _said(judge, plain[1])
            value = None if message is not None else kind.read(name, text)
        else:
            try:
                value, message = _read(name, kind, text), None
            except ValueParseError as error:
                value, message = None, _reason(error)
        if message is not None:
            return ended(text, message)
        for number, check in enumerate(functions):
            found = _asked(check, value)
            if inspect.isawaitable(found):
                return rest(text, value, number, found)
            if found is not None:
                return ended(text, found)
        return None

    async def rest(text: str, value: Any, number: int, found: Any) -> str | None:
        """Go on with the functions from one that is a coroutine function."""
        for check in functions[number:]:
            if found is None:
                found = _asked(check, value)
            if inspect.isawaitable(found):
                try:
                    awaited = await found
                except Exception as error:
                    awaited = str(error) or type(error).__name__
                found = _said(check, awaited)
            if found is not None:
                return ended(text, found)
        return None

    def ended(text: str, message: str) -> str:
        if failed_attempts is None:
            return message
        raise CheckError(name, _shown(name, kind, text), message, failed_attempts)

    return run


def _asked(check: Check, value: Any) -> Any:
    """None, or a message; or what must be awaited first."""
    try:
        found = check(value)
    except Exception as error:
        return str(error) or type(error).__name__
    return found if inspect.isawaitable(found) else _said(check, found)


def _said(check: Check, found: object) -> str | None:
    """The message in the verdict of a check; None if it accepts."""
    if found is None or found is True:
        return None
    named = getattr(check, "name", None) or getattr(check, "__name__", type(check).__name__)
    if found is False or found == "":
        return "the value was refused" if named == "<lambda>" else f"the check {named} refused the value"
    if isinstance(found, str):
        return found
    raise TypeError(f"the check {named} returned {found!r:.80}: expected None or True, False, or a message")


def _read(name: str, kind: OutputType, text: str) -> Any:
    """The value of a text that keeps all keywords of its schema, those included that neither masks nor the parser enforce."""
    value = kind.read(name, text)
    reason = kind.schema_error(text)
    if reason is not None:
        raise ValueParseError(name, text, reason)
    return value


def _reason(error: ValueParseError) -> str:
    """Why a text is no value, for the model: for pydantic one line for each place, without links."""
    list_errors = getattr(error.__cause__, "errors", None)
    if not callable(list_errors):
        return str(error.reason)
    lines = []
    for each in list_errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(map(str, each["loc"]))
        said = str(each["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
        lines.append(f"{place}: {said}" if place else said)
    return "\n".join(lines)


def _shown(name: str, kind: OutputType, text: str) -> Any:
    """The value of a text as plain data, or the text if it has none."""
    try:
        plain = to_plain(kind.read(name, text))
    except ValueParseError:
        return text
    return text if check_plain(plain) is not None else plain
