"""Loads the program named on the command line and parses its arguments.

A program is given as `FILE:PROGRAM` or `package.module:PROGRAM`; the name may be omitted if the file defines only one program. Arguments
are text, converted to the annotated types of the program's parameters. Every mistake raises a `CommandError` with a one-line message that
states the given and the allowed values.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, get_args, get_origin

from rtlang.lang.program import Program


class CommandError(Exception):
    """A command-line mistake, or a failure that ends a command. The message is one line."""


def load_program(spec: str) -> Program:
    """Load the program named by `spec`. Its file is executed like a script, with its folder first on the module path.

    Raises:
        CommandError: the file or module does not exist or raises an exception, or it has no such program.
    """
    place, name, programs = _programs_of(spec)
    if name:
        return programs[name]
    if len(programs) != 1:
        known = ", ".join(programs) or "none"
        raise CommandError(f"{place} has {len(programs) or 'no'} programs ({known}): specify one as {place}:NAME")
    return next(iter(programs.values()))


def load_programs(spec: str) -> list[Program]:
    """The program that `spec` names, or all programs of its file or module; otherwise as `load_program`."""
    place, name, programs = _programs_of(spec)
    if not programs:
        raise CommandError(f"{place} has no programs: expected functions decorated with @rt.program")
    return [programs[name]] if name else list(programs.values())


def _programs_of(spec: str) -> tuple[str, str, dict[str, Program]]:
    """The file or module, the name if there is one, and the programs by name."""
    place, _, name = spec.rpartition(":")
    if not place or "/" in name or "\\" in name:
        place, name = spec, ""
    module = _load_module(place)
    programs = {key: value for key, value in vars(module).items() if isinstance(value, Program)}
    if name and name not in programs:
        known = ", ".join(programs) or "none"
        if not hasattr(module, name):
            raise CommandError(f"{place} has no program {name!r}; it has {known}")
        raise CommandError(
            f"{name!r} in {place} is not a program: expected a function decorated with @rt.program; programs in this file: {known}"
        )
    return place, name, programs


def read_arguments(
    program: Program, given: Sequence[str], *, as_json: str | None = None, is_complete: bool = True
) -> dict[str, Any]:
    """Parse `name=value` strings into arguments of `program`. The value `@FILE` reads a file; `@@` escapes a leading `@`.

    Args:
        as_json: arguments as one JSON object, which `given` overrides.
        is_complete: whether no other arguments are given.
    Raises:
        CommandError: an argument is malformed, unknown, duplicate, missing, or does not convert to its annotated type.
    """
    parameters = parameters_of(program)
    is_open = any(item.kind is item.VAR_KEYWORD for item in parameters.values())
    named = {
        name: item for name, item in parameters.items() if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
    }
    usage = f"{program.name} takes {', '.join(named) or 'no arguments'}"

    def converted(option: str, name: str, value: Any) -> Any:
        if name not in named and not is_open:
            raise CommandError(f"{option} {name}: unknown argument; {usage}")
        annotation = named[name].annotation if name in named else inspect.Parameter.empty
        return _convert(f"{option} {name}", value, annotation)

    values = {name: converted("--args", name, value) for name, value in _json_object(as_json).items()}
    seen = set()
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise CommandError(f"--arg {text!r}: expected name=value; {usage}")
        if name in seen:
            raise CommandError(f"--arg {name}: given twice")
        seen.add(name)
        values[name] = converted("--arg", name, _text(name, value))
    missing = [name for name, item in named.items() if item.default is item.empty and name not in values]
    if missing and is_complete:
        wanted = " ".join(f"--arg {name}=..." for name in missing)
        raise CommandError(f"{program.name} requires {', '.join(missing)}: pass {wanted}")
    return values


def read_rows(program: Program, batch: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file as arguments of `program`, each a JSON object; empty lines are left out. `-` stands for standard input.

    Raises:
        CommandError: the file cannot be read, or a line is no JSON object of arguments; names the line.
    """
    convert = _row_converter(program)
    with ExitStack() as exits:
        lines: BinaryIO = sys.stdin.buffer
        if str(batch) != "-":
            try:
                lines = exits.enter_context(batch.open("rb"))
            except OSError as error:
                raise CommandError(f"--batch {batch}: {error.strerror}") from None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            place = f"{batch}:{number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise CommandError(f"{place}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise CommandError(f"{place}: expected a JSON object of names and values")
            yield convert(place, row)


def _row_converter(program: Program) -> Callable[[str, Mapping[str, Any]], dict[str, Any]]:
    """A function that converts JSON data, the arguments of one run of many, to the annotated types of the program's parameters.

    It takes a place for messages and the data, and raises CommandError if an argument does not convert. Unknown and missing arguments are
    left to the run.
    """
    import pydantic

    adapters: dict[str, pydantic.TypeAdapter[Any]] = {}
    for name, item in parameters_of(program).items():
        annotation = item.annotation
        if annotation in (inspect.Parameter.empty, Any) or isinstance(annotation, str):
            continue
        with suppress(pydantic.errors.PydanticUserError):  # as for arguments of one run
            adapters[name] = pydantic.TypeAdapter(annotation)

    def convert(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
        converted = dict(row)
        for name in adapters.keys() & row.keys():
            try:
                converted[name] = adapters[name].validate_json(json.dumps(row[name]))
            except pydantic.ValidationError as error:
                raise CommandError(f"{place}: {name}={row[name]!r:.80}: {error.errors()[0]['msg']}") from None
        return converted

    return convert


def missing_arguments(program: Program, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the parameters of `program` that have neither a value in `given` nor a default."""
    return tuple(
        name
        for name, item in parameters_of(program).items()
        if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
        and item.default is item.empty
        and name not in given
    )


def describe(error: BaseException, file: str | None = None) -> str:
    """Describe an exception from user code in one line: its location in `file` (if any), type and message."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if file is not None and frame.filename == file
    ]
    if isinstance(error, SyntaxError) and error.filename is not None:
        where = f"{error.filename}:{error.lineno}: "
        message = error.msg
    else:
        where = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
        message = str(error)
    lines = message.split("\n")
    return f"{where}{type(error).__name__}: {lines[0]}" + (" ..." if len(lines) > 1 else "")


def _load_module(place: str) -> ModuleType:
    path = Path(place).expanduser()
    if path.is_file():
        return _execute(path.resolve())
    if (
        path.suffix == ".py"
        or "/" in place
        or "\\" in place
        or not all(part.isidentifier() for part in place.split("."))
    ):
        raise CommandError(f"file not found: {place}")
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
            raise CommandError(f"no file or module named {place}") from None
        raise CommandError(f"importing {place} failed: {describe(error)}") from error
    except Exception as error:
        raise CommandError(f"importing {place} failed: {describe(error)}") from error


def _execute(path: Path) -> ModuleType:
    name = f"rtlang_program_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=None)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # needed to resolve annotations of dataclasses and models
    if (folder := str(path.parent)) not in sys.path:
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise CommandError(f"running {path.name} failed: {describe(error, str(path))}") from error
    return module


def parameters_of(program: Program) -> dict[str, inspect.Parameter]:
    """Parameters of the program after the state, with annotations resolved if possible."""
    try:
        signature = inspect.signature(program, eval_str=True)
    except Exception:  # an annotation failed to evaluate; it is only needed for conversion
        signature = inspect.signature(program)
    return dict(list(signature.parameters.items())[1:])


def _text(name: str, value: str) -> str:
    if value.startswith("@@"):
        return value[1:]
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise CommandError(f"--arg {name}: cannot read {value[1:]}: {reason}") from None


def _json_object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CommandError(f"--args {text[:80]}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise CommandError(f"--args {text[:80]}: expected a JSON object of names and values")
    return found


def _convert(place: str, value: Any, annotation: Any) -> Any:
    """Convert text, or plain JSON data, to the type of `annotation`; unchanged if pydantic cannot validate the annotation."""
    import pydantic

    if annotation in (inspect.Parameter.empty, str, Any) or isinstance(annotation, str):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticUserError:
        return value
    attempts: list[Callable[[], Any]] = [
        lambda: adapter.validate_strings(text),  # "7" to an int, "yes" to a bool, a date
        lambda: adapter.validate_json(text),
    ]
    if _is_list(annotation):
        attempts.append(lambda: adapter.validate_python([part.strip() for part in text.split(",")]))
    reason = ""
    for attempt in attempts:
        try:
            return attempt()
        except pydantic.ValidationError as error:
            reason = reason or error.errors()[0]["msg"]
    what = annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
    raise CommandError(f"{place}={text[:80]}: expected {what}: {reason}")


def _is_list(annotation: Any) -> bool:
    """Whether an annotation is or contains a list, tuple or set type."""
    return any((get_origin(part) or part) in (list, tuple, set) for part in (annotation, *get_args(annotation)))
