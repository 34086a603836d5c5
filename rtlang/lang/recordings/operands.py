"""Values of a program as operands of nodes, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rtlang.contract.errors import RtlangError, TraceError
from rtlang.contract.graph.host_calls import to_plain
from rtlang.contract.graph.value_size import check_plain
from rtlang.contract.request_graph import Const, Operand, Ref
from rtlang.lang.lazy_values.values import Value, operand_of, parts_of, source_of, user_location
from rtlang.lang.output_types.returned_values import Reader
from rtlang.lang.output_types.types import OutputType, reader_of
from rtlang.lang.recordings.recording import Recording


def operand_for(item: Any, recording: Recording, where: str) -> Operand:
    """An item as an operand: a lazy value, plain data, or a list of those.

    Args:
        where: names the item in errors.
    Raises:
        TraceError: it is a value of another run, an expression such as `rt.text(...)`, or no plain data.
    """
    if isinstance(item, Value) and source_of(item) not in (None, recording):
        raise TraceError(f"{where} belongs to another run", user_location())
    if _is_expression(item):
        raise TraceError(
            f"{where} is an expression that s += appends, and not a value: write rt.format(...) for text with values, s[name] for a "
            "generation",
            user_location(),
        )
    if isinstance(item, (list, tuple)) and any(
        isinstance(each, (Value, list, tuple)) or _is_expression(each) for each in item
    ):
        items = tuple(operand_for(each, recording, where) for each in item)
        return recording.nodes.add_apply("list", items)
    found = operand_of(item, recording)
    if found is not None:
        return found
    if isinstance(item, Value):
        parts = parts_of(item, recording)
        if parts is not None and len(parts) == 1 and isinstance(parts[0], Ref):
            return parts[0]  # the text of a value of another type
        item = item._rt_real(where)
    plain = to_plain(item)
    problem = check_plain(plain)
    if problem is not None:
        raise TraceError(f"{where}: {problem}", user_location())
    return Const(plain)


def _is_expression(item: object) -> bool:
    return hasattr(type(item), "_rt_is_expression")


def actual(given: Any, plain: Any) -> Any:
    """The Python value of an operand, if all it needs has ended; else the plain one."""
    if isinstance(given, Value):
        source = source_of(given)
        if source is None or not source.has(given._rt_needs):
            return plain
        assert isinstance(source, Recording)
        try:
            with source.outcomes.unseen():
                return given._rt_read()
        except RtlangError:
            return plain
    if isinstance(given, (list, tuple)) and isinstance(plain, list) and len(given) == len(plain):
        return type(given)(map(actual, given, plain)) if type(given) in (list, tuple) else plain
    return given


def reader_for(given: object, recording: Recording) -> Callable[[Any], Any]:
    """Makes the value of an operand from its plain data; typed where `given` is the value of a generation or of a call."""
    output_type = type_of(given, recording)
    if output_type is not None:
        return reader_of(output_type)
    return call_reader(given, recording) or (lambda plain: plain)


def call_reader(given: object, recording: Recording) -> Reader | None:
    """Makes the value of a call from its plain data; None for all other values."""
    parts = given._rt_parts if isinstance(given, Value) and source_of(given) is recording else None
    ref = parts[0] if parts is not None and len(parts) == 1 else None
    return recording.nodes.readers.get(ref.node_id) if isinstance(ref, Ref) else None


def type_of(value: object, recording: Recording) -> OutputType | None:
    """The type of a generation whose value this is; None for text and everything else."""
    if not isinstance(value, Value) or source_of(value) is not recording or value._rt_is_text:
        return None
    parts = value._rt_parts
    ref = parts[0] if parts is not None and len(parts) == 1 else None
    return recording.type_of(ref) if isinstance(ref, Ref) else None
