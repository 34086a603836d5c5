"""The format of a model's replies: detected by the marks in its chat template, else measured on the output of the template.

A template that shows the marks of a known format may still write another one: a variant with other line breaks, or an unknown format with
familiar marks. The format of the catalogue is taken as long as it reads the calls that the template writes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rtlang.contract.errors import ParameterError
from rtlang.model.text import tracked_text
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.history import best_form
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.description import ToolFormat
from rtlang_grammars.formats.measuring.measurement import TOOLS, UnclearFormatError, are_alike, measure_format, reads
from rtlang_grammars.formats.reasoning import PLAIN_FORMAT, detect_reply_format
from rtlang_grammars.formats.written_format import PREFIX, written_name

logger = logging.getLogger(__name__)


def reply_format(chat: ChatTemplate, special_names: Sequence[str]) -> ToolFormat | None:
    """The format of the replies to the prompts of a template; None if neither it nor the special tokens show one. Takes about 40 ms.

    Args:
        chat: the template, without tools.
        special_names: names of special tokens; looked at only where the template shows nothing.
    """
    detected = detect_reply_format(chat.template, special_names)
    if chat.template is None:
        return detected
    try:
        measured = measure_format(_renderer(chat.with_tools([tool.to_plain() for tool in TOOLS])))
    except UnclearFormatError as error:
        if detected is None or detected.name.partition("+")[0] == PLAIN_FORMAT:
            logger.info("the format of tool calls is not known, %s is used: %s", PLAIN_FORMAT, error)
        return detected
    if detected is None:
        logger.info("format of tool calls measured on the chat template: %s", measured.name)
        return measured
    calls = FORMATS[detected.name.partition("+")[0]]
    is_shown = calls.name != PLAIN_FORMAT
    if is_shown and (are_alike(calls, measured, is_exact=True) or not _is_surer(calls, measured)):
        return detected
    found = measured
    if measured.reasoning is None and detected.reasoning is not None and measured.content is None:
        found = replace(measured, reasoning=detected.reasoning)
        if found.name.startswith(PREFIX):
            found = replace(found, name=written_name(replace(found, name="")))
        elif FORMATS[found.name].reasoning != found.reasoning:
            return detected if not is_shown else found
    level = logging.WARNING if is_shown else logging.INFO
    logger.log(level, "the chat template does not write %s: its calls are measured as %s", calls.name, found.name)
    return found


def _is_surer(calls: ToolFormat, measured: ToolFormat) -> bool:
    """Whether a measured format is better than the detected one: it writes other blanks, or calls that the latter does not read."""
    return are_alike(calls, measured) or not measured.name.startswith(PREFIX) or not reads(calls, measured)


def _renderer(chat: ChatTemplate) -> Any:
    def render(messages: Sequence[Mapping[str, Any]], adds_prompt: bool) -> str:
        try:
            text, _ = best_form(chat, messages, "prompt" if adds_prompt else "closed")
        except ParameterError as error:
            raise ValueError(str(error.allowed)) from None
        return tracked_text.plain(text)

    return render
