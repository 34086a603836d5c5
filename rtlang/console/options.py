"""Command-line options from settings: each field of a config class becomes an option, with the field's help and default.

    @with_settings(RuntimeConfig, "runtime")
    def run(program: str, runtime: dict[str, Any]) -> None: ...

The command receives only the options given on the command line, and secrets from variables of the environment, so that config.py remains
the only place of defaults.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from rtlang.contract.config import secret_settings, setting_help

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SHORTER = {"num_threads": ("--threads",)}


def with_settings(config: type, parameter: str) -> Callable[[_Command], _Command]:
    """Decorator that replaces a command's parameter by one option per field of the dataclass `config`.

    Args:
        parameter: name of the parameter, which receives a dict of the given fields.
    """

    def decorate(command: _Command) -> _Command:
        hints = get_type_hints(command, include_extras=True)
        flags, secrets = _flags(config), secret_settings(config)
        kept = [
            item.replace(annotation=hints.get(item.name, item.annotation))
            for item in inspect.signature(command).parameters.values()
            if item.name != parameter
        ]
        names = [flag.name for flag in flags]

        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            given = {name: kwargs.pop(name, None) for name in names}
            given |= {name: os.environ.get(variable) or None for name, variable in secrets.items()}
            settings = {name: value for name, value in given.items() if value is not None and value != []}
            return command(
                *args, **kwargs, **{parameter: {n: tuple(v) if isinstance(v, list) else v for n, v in settings.items()}}
            )

        signature = inspect.Signature([*kept, *flags])
        wrapped.__signature__ = signature  # type: ignore[attr-defined]
        wrapped.__annotations__ = {item.name: item.annotation for item in signature.parameters.values()}
        return wrapped  # type: ignore[return-value]

    return decorate


def _flags(config: type) -> list[inspect.Parameter]:
    hints, helps = get_type_hints(config), setting_help(config)
    flags = []
    secrets = secret_settings(config)
    for item in fields(config):
        if item.name in secrets:
            continue
        name = "--" + item.name.replace("_", "-")
        kind = next((part for part in get_args(hints[item.name]) if part is not type(None)), hints[item.name])
        is_many = hints[item.name] == tuple[str, ...]
        names = [f"{name}/--no-{name[2:]}"] if kind is bool else [name, *_SHORTER.get(item.name, ())]
        default: str | bool = str(item.default).lower() if kind is bool else str(item.default)
        if item.default is None or is_many:
            default = False
        option = typer.Option(*names, help=helps[item.name], show_default=default, rich_help_panel=_title(config))
        annotation: Any = Annotated[(list[str] if is_many else kind) | None, option]
        flags.append(inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    return flags


def _title(config: type) -> str:
    return config.__name__.removesuffix("Config") + " settings"
