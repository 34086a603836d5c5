"""Reads JSON sources; errors give the location."""

from __future__ import annotations

import json
import re
from typing import Any

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.places import JSON_STRING, deepest_bracket, line_and_column

_LONG_NUMBER = re.compile(r"[0-9]{401}")


def parsed(source: str) -> Any:
    """The value of a JSON text.

    Raises:
        GrammarError: the text is not JSON, is nested too deeply, or holds a number that is not finite or too long; with `line:column` if
            that is known, else with the pointer to the whole document.
    """
    try:
        return json.loads(source, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise GrammarError(f"not JSON: {error.msg}", f"{error.lineno}:{error.colno}") from error
    except RecursionError as error:
        raise GrammarError("nested too deeply", deepest_bracket(source, JSON_STRING)) from error
    except GrammarError:
        raise
    except ValueError as error:  # raised for an integer with thousands of digits
        found = _LONG_NUMBER.search(source)
        place = "#" if found is None else line_and_column(source, found.start())
        raise GrammarError("numbers of more than 400 digits are not supported", place) from error


def _refuse(name: str) -> Any:
    raise GrammarError(f"{name} is not a JSON number", "#")
