"""Options of the chat template: of a conversation, and of a runtime. They reach nothing but the sandboxed template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, ParameterError

MAX_TEMPLATE_CHARS = 1 << 17
MAX_VARIABLES_CHARS = 1 << 16
CONTROLS = ("thinks", "effort", "budget", "verbosity")
_OF_THE_RUNTIME = ("messages", "tools", "documents", "add_generation_prompt", "continue_final_message")
"""Variables that are set from the conversation."""


@dataclass(frozen=True, slots=True)
class TemplateOptions:
    """The source and the variables of a chat template, which gets them with messages and tools.

    Attributes:
        chat_template: the Jinja source of another template than the model's; None for the model's.
        variables: variables of the template by name, such as `enable_thinking`; plain JSON data.
        controls: wishes that each template spells differently, by the names in `CONTROLS`: whether the model thinks, its effort and its
            verbosity by name, and the maximum number of tokens of the thought. Those that the template reads become its variables, unless
            `variables` has these.

    Raises:
        ParameterError: an option is malformed; names it.
    """

    chat_template: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    controls: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        source, variables = self.chat_template, self.variables
        if source is not None and not (isinstance(source, str) and 0 < len(source) <= MAX_TEMPLATE_CHARS):
            raise ParameterError(
                "chat_template", source, f"expected Jinja source of at most {MAX_TEMPLATE_CHARS} characters"
            )
        if not isinstance(variables, Mapping):
            raise ParameterError("chat_template_kwargs", variables, "expected a map of names to values")
        for name in variables:
            if not isinstance(name, str) or not name.isidentifier() or name in _OF_THE_RUNTIME:
                raise ParameterError(
                    "chat_template_kwargs", name, f"expected names of variables other than {', '.join(_OF_THE_RUNTIME)}"
                )
        if not isinstance(self.controls, Mapping) or not set(self.controls) <= set(CONTROLS):
            raise ParameterError("controls", self.controls, f"expected a map with {', '.join(CONTROLS)}")
        try:
            size = len(json.dumps(dict(variables), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ParameterError("chat_template_kwargs", variables, f"expected plain JSON data: {error}") from None
        if size > MAX_VARIABLES_CHARS:
            raise ParameterError(
                "chat_template_kwargs", size, f"expected at most {MAX_VARIABLES_CHARS} characters as JSON"
            )

    @property
    def plain(self) -> dict[str, Any]:
        """The options that are set, as plain data."""
        source = {} if self.chat_template is None else {"chat_template": self.chat_template}
        given = {"chat_template_kwargs": dict(self.variables), "controls": dict(self.controls)}
        return source | {name: value for name, value in given.items() if value}

    @property
    def text(self) -> str | None:
        """The options as JSON text for a `RoleStart`; None if none is set."""
        return json.dumps(self.plain, ensure_ascii=False) if self.plain else None

    @classmethod
    def from_plain(cls, plain: object) -> TemplateOptions:
        """The inverse of `plain`.

        Raises:
            ParameterError: an option is unknown or malformed; names it.
        """
        names = ("chat_template", "chat_template_kwargs", "controls")
        if not isinstance(plain, Mapping) or not set(plain) <= set(names):
            raise ParameterError("template_options", plain, f"expected a map with {' or '.join(names)}")
        return cls(plain.get("chat_template"), plain.get("chat_template_kwargs", {}), plain.get("controls", {}))

    @classmethod
    def from_text(cls, text: str) -> TemplateOptions:
        """The inverse of `text`.

        Raises:
            ParameterError: the text is not JSON, or an option is malformed; names it.
        """
        try:
            plain = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise ParameterError("template_options", text, f"expected JSON text: {error}") from None
        return cls.from_plain(plain)


def template_settings(config: RuntimeConfig) -> TemplateOptions:
    """The template options of a runtime.

    Raises:
        ConfigError: the file cannot be read, or the variables are malformed.
    """
    source = None
    if config.chat_template is not None:
        try:
            source = Path(config.chat_template).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError("chat_template", config.chat_template, f"expected a readable file: {error}") from None
    try:
        return TemplateOptions(source, json.loads(config.chat_template_kwargs or "{}"))
    except (ValueError, RecursionError) as error:
        raise ConfigError("chat_template_kwargs", config.chat_template_kwargs, f"expected JSON: {error}") from None
    except ParameterError as error:
        raise ConfigError(error.field, error.value, error.allowed) from None
