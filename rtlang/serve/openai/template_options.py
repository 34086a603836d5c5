"""The fields of a request for the model's chat template: its source, and its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.template_options import TemplateOptions

FIELDS = frozenset(("chat_template", "chat_template_kwargs"))
"""The fields that `read_template_options` reads."""


def read_variables(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The variables in `chat_template_kwargs`.

    Raises:
        ParameterError: they are no object.
    """
    variables = given.get("chat_template_kwargs", {})
    if not isinstance(variables, Mapping):
        raise ParameterError("chat_template_kwargs", variables, "expected an object of names and values")
    return variables


def read_template_options(given: Mapping[str, Any], controls: Mapping[str, Any] | None = None) -> str | None:
    """The options of the chat template, as JSON text for a `RoleStart`; None if the request has none.

    Args:
        controls: wishes of other fields of the request; `chat_template_kwargs` comes before them.
    Raises:
        ParameterError: a field is malformed; names it.
    """
    return TemplateOptions(given.get("chat_template"), read_variables(given), controls or {}).text
