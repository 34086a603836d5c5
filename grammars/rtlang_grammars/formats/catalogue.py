"""The catalogue of tool-call formats, and their detection from a chat template.

Sources: the chat templates that the models are published with, and the format descriptions of their model cards; for GPT-OSS the harmony
format of OpenAI.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace

from rtlang_grammars.formats.description import (
    ArgumentStyle,
    Calls,
    Json,
    Literals,
    Pieces,
    Slot,
    Span,
    TaggedArguments,
    ToolFormat,
)
from rtlang_grammars.formats.written_format import PREFIX, format_from_name
from rtlang_grammars.spec.constraint import Whitespace
from rtlang_grammars.spec.errors import GrammarError

_NAME, _ARGUMENTS, _ID = Slot.NAME, Slot.ARGUMENTS, Slot.ID
_THINK = Span("<think>", "</think>")
_OBJECT: Pieces = (Json('{"name": "'), _NAME, Json('", "arguments": '), _ARGUMENTS, Json("}"))
_WITH_PARAMETERS: Pieces = (Json('{"name": "'), _NAME, Json('", "parameters": '), _ARGUMENTS, Json("}"))
_WITH_ID: Pieces = (*_OBJECT[:-1], Json(', "id": "'), _ID, Json('"}'))
_COMMA: Pieces = (Json(","),)


MARKS: dict[str, Span] = {
    "seed": Span("<seed:think>", "</seed:think>"),
    "minimax": Span("<mm:think>", "</mm:think>"),
    "hunyuan": Span("<think:opensource>", "</think:opensource>"),
    "steps": Span("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
    "thinking": Span("<thinking>", "</thinking>"),
    "kimi": Span("◁think▷", "◁/think▷"),
    "brackets": Span("[THINK]", "[/THINK]"),
    "channel": Span("<|channel>thought\n", "<channel|>"),
    "channels": Span("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    "inner": Span("<|inner_prefix|>", "<|inner_suffix|>"),
    "think": _THINK,
}
"""Marks of reasoning by name, for models whose marks differ from the marks of their format of calls."""


def _array(opening: str, closing: str = "", *, begin: str = "[", end: str = "]") -> Calls:
    """Calls in a JSON array between two texts; `begin` and `end` are its brackets with the blanks of the template."""
    behind: Pieces = (Json(end), closing) if closing else (Json(end),)
    return Calls((opening, Json(begin)), behind)


def _deepseek(name: str, begin: str, middle: str, end: str, between: str) -> ToolFormat:
    return ToolFormat(
        name,
        ((f"<｜tool▁call▁begin｜>{begin}", _NAME, middle, _ARGUMENTS, f"{end}<｜tool▁call▁end｜>"),),
        (Calls(("<｜tool▁calls▁begin｜>",), ("<｜tool▁calls▁end｜>",)),),
        (between,) if between else (),
        reasoning=_THINK,
    )


def _tagged(
    name: str,
    call: Pieces,
    around: Calls,
    between: Pieces | None,
    arguments: tuple[str, str, str],
    excludes: tuple[str, ...],
    *,
    item: str = "",
    cdata: str = "",
    think: Span = _THINK,
) -> ToolFormat:
    """A format of style TAGGED; `arguments` are the texts around names and values."""
    tagged = TaggedArguments(*arguments, excludes, item, cdata=cdata)
    return ToolFormat(name, (call,), (around,), between, arguments=ArgumentStyle.TAGGED, tagged=tagged, reasoning=think)


def _function_tags(name: str, call: str, *, think: Span = _THINK) -> ToolFormat:
    """As qwen-coder, without line breaks around values; `call` names the tag around a call."""
    return _tagged(
        name,
        (f"<{call}>", "\n<function=", _NAME, ">\n", _ARGUMENTS, f"</function>\n</{call}>"),
        Calls(),
        (Slot.BLANKS,),
        ("<parameter=", ">", "</parameter>\n"),
        ("<parameter=", "</parameter>", "<function=", "</function>", f"<{call}>", f"</{call}>"),
        think=think,
    )


def _argument_keys(name: str, line: str, suffix: str = "") -> ToolFormat:
    """As glm-4.5, with another text between its tags; `suffix` ends their names."""
    tags = tuple(f"<{end}{tag}{suffix}>" for tag in ("arg_key", "arg_value", "tool_call") for end in ("", "/"))
    key, key_end, value, value_end, call, call_end = tags
    return _tagged(
        name,
        (call, _NAME, line, _ARGUMENTS, call_end),
        Calls(),
        (Slot.BLANKS,) if line else (),
        (key, f"{key_end}{line}{value}", f"{value_end}{line}"),
        tags,
    )


def _invokes(name: str, tag: str, calls: str, argument: str, *, line: str = "\n", think: Span = _THINK) -> ToolFormat:
    """Calls as `invoke` tags with `parameter` tags inside, between tags named `calls`; `tag` begins the names of all of them."""
    end = f"</{tag}parameter>"
    return _tagged(
        name,
        (f'<{tag}invoke name="', _NAME, f'">{line}', _ARGUMENTS, f"</{tag}invoke>"),
        Calls((f"<{tag}{calls}>{line}",), (f"{line}</{tag}{calls}>",)),
        (line,),
        (f'<{tag}parameter name="', argument, f"{end}{line}"),
        (f"<{tag}parameter", end, f"<{tag}invoke", f"</{tag}invoke>", f"<{tag}{calls}>", f"</{tag}{calls}>"),
        think=think,
    )


def _hunyuan(suffix: str) -> ToolFormat:
    found = _argument_keys(f"hunyuan-3{suffix.replace(':', '-')}", "\n", suffix)
    (call,) = found.call
    return replace(
        found,
        call=((call[0], _NAME, f"<tool_sep{suffix}>\n", *call[3:]),),
        around=(Calls((f"<tool_calls{suffix}>\n",), (f"\n</tool_calls{suffix}>",)),),
        reasoning=Span(f"<think{suffix}>", f"</think{suffix}>"),
    )


_MINIMAX = "]<]minimax[>["
_OPEN, _CLOSE, _SEPARATOR = "<|open|>", "<|close|>", "<|sep|>"


def _channel(name: str) -> Span:
    """A section of Kimi K3."""
    return Span(f"{_OPEN}{name}{_SEPARATOR}", f"{_CLOSE}{name}{_SEPARATOR}")


_KIMI_3 = ToolFormat(
    "kimi-k3",
    ((f'{_OPEN}call tool="', _NAME, '" index="', _ID, f'"{_SEPARATOR}', _ARGUMENTS, _channel("call").end),),
    (Calls((_channel("tools").begin,), (_channel("tools").end,)),),
    (),
    arguments=ArgumentStyle.TAGGED,
    tagged=TaggedArguments(
        f'{_OPEN}argument key="',
        f'" type="{{type}}"{_SEPARATOR}',
        _channel("argument").end,
        (_OPEN, _CLOSE, _SEPARATOR),
    ),
    id_pattern="[0-9]{1,4}",
    first_id=1,
    reasoning=_channel("think"),
    content=_channel("response"),
    preamble=_channel("response"),
)
_COMMAND = ToolFormat(
    "command-r7b",
    ((Json('{"tool_call_id": "'), _ID, Json('", "tool_name": "'), _NAME, *_WITH_PARAMETERS[2:]),),
    (_array("<|START_ACTION|>", "<|END_ACTION|>", begin="[\n    ", end="\n]"),),
    (Json(",\n    "),),
    id_pattern="[0-9]{1,4}",
    reasoning=Span("<|START_THINKING|>", "<|END_THINKING|>"),
    content=Span("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
)
_LISTED = (
    ToolFormat("hermes", (("<tool_call>", "\n", *_OBJECT, "\n</tool_call>"),), reasoning=_THINK),
    ToolFormat(
        "qwen-coder",
        (("<tool_call>", "\n<function=", _NAME, ">\n", _ARGUMENTS, "</function>\n</tool_call>"),),
        arguments=ArgumentStyle.TAGGED,
        tagged=TaggedArguments(
            "<parameter=",
            ">\n",
            "\n</parameter>\n",
            ("<parameter=", "</parameter>", "<function=", "</function>", "<tool_call>", "</tool_call>"),
        ),
        reasoning=_THINK,
    ),
    ToolFormat("llama-3", (_WITH_PARAMETERS,), (Calls(), Calls(("<|python_tag|>",))), ("; ",)),
    ToolFormat(
        "llama-4",
        ((_NAME, "(", _ARGUMENTS, ")"),),
        (Calls(("[",), ("]",)), Calls(("<|python_start|>[",), ("]<|python_end|>",))),
        (", ",),
        has_name_in_trigger=True,
        arguments=ArgumentStyle.PYTHON,
    ),
    ToolFormat(
        "mistral", (_WITH_ID, _OBJECT), (_array("[TOOL_CALLS]", begin=" ["),), _COMMA, id_pattern="[a-zA-Z0-9]{9}"
    ),
    ToolFormat(
        "mistral-args",
        (
            ("[TOOL_CALLS]", _NAME, "[ARGS]", _ARGUMENTS),
            ("[TOOL_CALLS]", _NAME, "[CALL_ID]", _ID, "[ARGS]", _ARGUMENTS),
        ),
        between=(),
        id_pattern="[a-zA-Z0-9]{9}",
        reasoning=Span("[THINK]", "[/THINK]"),
    ),
    _deepseek("deepseek-v3", "function<｜tool▁sep｜>", "\n```json\n", "\n```", "\n"),
    _deepseek("deepseek-v3.1", "", "<｜tool▁sep｜>", "", ""),
    ToolFormat(
        "harmony",
        (
            (" to=functions.", _NAME, "<|channel|>commentary json<|message|>", _ARGUMENTS),
            ("<|channel|>commentary to=functions.", _NAME, " <|constrain|>json<|message|>", _ARGUMENTS),
            (" to=functions.", _NAME, "<|channel|>commentary <|constrain|>json<|message|>", _ARGUMENTS),
        ),
        (Calls((), ("<|call|>",)),),
        None,
        closing_is_optional=True,
        reasoning=Span("<|channel|>analysis<|message|>", "<|end|>"),
        content=Span("<|channel|>final<|message|>", ""),
        content_begins=("<|channel|>final <|constrain|>json<|message|>",),
        preamble=Span("<|channel|>commentary<|message|>", "<|end|>"),
        joint="<|start|>assistant",
    ),
    ToolFormat(
        "glm-4.5",
        (("<tool_call>", _NAME, "\n", _ARGUMENTS, "</tool_call>"),),
        arguments=ArgumentStyle.TAGGED,
        tagged=TaggedArguments(
            "<arg_key>",
            "</arg_key>\n<arg_value>",
            "</arg_value>\n",
            ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<tool_call>", "</tool_call>"),
        ),
        reasoning=_THINK,
    ),
    ToolFormat(
        "kimi-k2",
        (
            (
                "<|tool_call_begin|>functions.",
                _NAME,
                ":",
                _ID,
                "<|tool_call_argument_begin|>",
                _ARGUMENTS,
                "<|tool_call_end|>",
            ),
        ),
        (Calls(("<|tool_calls_section_begin|>",), ("<|tool_calls_section_end|>",)),),
        (),
        id_pattern="[0-9]{1,4}",
        listed_id="functions.{name}:{number}",
        reasoning=_THINK,
    ),
    ToolFormat("phi-4", (_OBJECT,), (_array("<|tool_call|>", "<|/tool_call|>"),), _COMMA, reasoning=_THINK),
    ToolFormat("phi-4-mini", (_OBJECT,), (_array("functools"),), _COMMA),
    ToolFormat(
        "granite-3",
        (_OBJECT,),
        (_array("<|tool_call|>"), _array("<tool_call>")),
        _COMMA,
        reasoning=_THINK,
        answer=Span("<response>", "</response>"),
    ),
    ToolFormat(
        "command-r",
        ((Json('{"tool_name": "'), _NAME, Json('", "parameters": '), _ARGUMENTS, Json("}")),),
        tuple(
            _array(opening, "```", begin="\n[\n    ", end="\n]") for opening in ("Action: ```json", "Action:```json")
        ),
        (Json(",\n    "),),
        whitespace=Whitespace.FREE,
        has_line_before_calls=True,
    ),
    _COMMAND,
    replace(_COMMAND, name="command-a", content=Span("<|START_TEXT|>", "<|END_TEXT|>")),
    _function_tags("seed-oss", "seed:tool_call", think=MARKS["seed"]),
    _function_tags("mimo", "tool_call"),
    _argument_keys("glm-4.7", ""),
    _hunyuan(""),
    _hunyuan(":opensource"),
    _invokes("deepseek-v3.2", "｜DSML｜", "function_calls", '" string="{is_string}">'),
    _invokes("deepseek-v4", "｜DSML｜", "tool_calls", '" string="{is_string}">'),
    _invokes("deepseek-v4.1", "｜DSML｜ ", "calls", '" string="{is_string}">'),
    _invokes("minimax-m2", "", "minimax:tool_call", '">'),
    _tagged(
        "minimax-m3",
        (f'{_MINIMAX}<invoke name="', _NAME, '">', _ARGUMENTS, f"{_MINIMAX}</invoke>"),
        Calls((_MINIMAX, "<tool_call>\n"), (f"\n{_MINIMAX}</tool_call>",)),
        ("\n",),
        (f"{_MINIMAX}<", ">", f"{_MINIMAX}</{{name}}>"),
        (_MINIMAX,),
        item="item",
        think=MARKS["minimax"],
    ),
    _tagged(
        "step-3",
        (
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="',
            _NAME,
            '">\n',
            _ARGUMENTS,
            "</steptml:invoke><｜tool_call_end｜>",
        ),
        Calls(("<｜tool_calls_begin｜>\n",), ("\n<｜tool_calls_end｜>",)),
        ("\n",),
        ('<steptml:parameter name="', '">', "</steptml:parameter>\n"),
        ("<steptml:parameter", "</steptml:parameter>", "<steptml:invoke", "</steptml:invoke>"),
    ),
    _tagged(
        "minicpm-5",
        ('<function name="', _NAME, '">', _ARGUMENTS, "</function>"),
        Calls(),
        (Slot.BLANKS,),
        ('<param name="', '">', "</param>"),
        ("<param", "</param>", "<function", "</function>"),
        cdata="<&\n",
    ),
    _KIMI_3,
    ToolFormat(
        "gemma-4",
        (("<|tool_call>call:", _NAME, "{", _ARGUMENTS, "}<tool_call|>"),),
        between=(),
        arguments=ArgumentStyle.MARKED,
        literals=Literals(":", ",", ":", ("true", "false", "null"), '<|"|>'),
        reasoning=MARKS["channel"],
    ),
    ToolFormat(
        "lfm2",
        ((_NAME, "(", _ARGUMENTS, ")"),),
        (Calls(("<|tool_call_start|>[",), ("]<|tool_call_end|>",)),),
        (", ",),
        arguments=ArgumentStyle.PYTHON,
        reasoning=_THINK,
    ),
    ToolFormat(
        "olmo-3",
        ((_NAME, "(", _ARGUMENTS, ")"),),
        (Calls(("<function_calls>\n",), ("\n</function_calls>",)),),
        ("\n",),
        arguments=ArgumentStyle.PYTHON,
        literals=Literals(constants=("true", "false", "null")),
        reasoning=_THINK,
    ),
    ToolFormat(
        "minimax-m1",
        (_OBJECT,),
        (Calls(("<tool_calls>\n",), ("\n</tool_calls>",)),),
        ("\n",),
        reasoning=_THINK,
    ),
    ToolFormat(
        "tool-calls",
        (_OBJECT, _WITH_ID),
        (_array("<tool_calls>", "</tool_calls>"),),
        _COMMA,
        id_pattern=r"[A-Za-z0-9_.\-]{1,64}",
        reasoning=_THINK,
    ),
    ToolFormat("nemotron-2", (_OBJECT,), (_array("<TOOLCALL>", "</TOOLCALL>"),), _COMMA, reasoning=_THINK),
    ToolFormat(
        "apertus",
        ((Json('{"'), _NAME, Json('": '), _ARGUMENTS, Json("}")),),
        (_array("<|tools_prefix|>", "<|tools_suffix|>"),),
        _COMMA,
        reasoning=MARKS["inner"],
    ),
    ToolFormat(
        "longcat",
        (("<longcat_tool_call>", "\n", *_OBJECT, "\n</longcat_tool_call>"),),
        reasoning=Span("<longcat_think>", "</longcat_think>"),
    ),
    ToolFormat(
        "internlm-2",
        (("<|action_start|>", "<|plugin|>\n", *_WITH_PARAMETERS, "<|action_end|>"),),
        between=None,
    ),
    ToolFormat("gigachat-3", (("<|function_call|>", *_OBJECT),), between=None),
    ToolFormat("functionary-3.1", (("<function=", _NAME, ">", _ARGUMENTS, "</function>"),), between=()),
    ToolFormat("xlam", (_OBJECT,), (Calls((Json("["),), (Json("]"),)),), _COMMA),
    ToolFormat("json", (_OBJECT,), between=("\n",)),
)

FORMATS: dict[str, ToolFormat] = {each.name: each for each in _LISTED}
"""The formats by name. `json` is for models without a format of their own: bare objects with name and arguments, one a line."""

_SIGNS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("harmony", ("<|channel|>", "<|start|>"), ()),
    ("kimi-k3", ("<|open|>", "<|close|>", "<|sep|>"), ()),
    ("kimi-k2", ("<|tool_calls_section_begin|>",), ()),
    ("deepseek-v3", ("<｜tool▁calls▁begin｜>", "```json"), ()),
    ("deepseek-v3.1", ("<｜tool▁calls▁begin｜>",), ()),
    ("deepseek-v4.1", ("｜DSML｜", " calls>"), ("function_calls>", "tool_calls>")),
    ("deepseek-v4", ("｜DSML｜", "tool_calls>"), ("function_calls>",)),
    ("deepseek-v3.2", ("｜DSML｜", "function_calls>"), ()),
    ("minimax-m3", ("]<]minimax[>[",), ()),
    ("minimax-m2", ("<minimax:tool_call>", "<invoke name="), ()),
    ("step-3", ("<steptml:invoke",), ()),
    ("gemma-4", ("<|tool_call>", "<tool_call|>"), ()),
    ("hunyuan-3-opensource", ("<tool_sep:opensource>",), ()),
    ("hunyuan-3-opensource", ("tool_sep", "':opensource'"), ()),
    ("hunyuan-3", ("<tool_sep>", "<arg_key>"), ()),
    ("glm-4.7", ("<tool_call>", "</arg_key><arg_value>"), ()),
    ("glm-4.5", ("<arg_key>", "<tool_call>"), ()),
    ("seed-oss", ("<seed:tool_call>", "<function="), ()),
    ("qwen-coder", ("<function=", "<parameter="), ()),
    ("longcat", ("<longcat_tool_call>",), ()),
    ("command-a", ("<|START_ACTION|>", "<|START_TEXT|>"), ()),
    ("command-r7b", ("<|START_ACTION|>",), ()),
    ("command-r", ("tool_name", "Action:"), ()),
    ("mistral-args", ("[TOOL_CALLS]", "[ARGS]"), ()),
    ("mistral", ("[TOOL_CALLS]",), ()),
    ("phi-4", ("<|tool_call|>", "<|/tool_call|>"), ()),
    ("phi-4-mini", ("functools",), ()),
    ("granite-3", ("<|tool_call|>",), ()),
    ("apertus", ("<|tools_prefix|>",), ()),
    ("lfm2", ("<|tool_call_start|>",), ()),
    ("nemotron-2", ("<TOOLCALL>",), ()),
    ("internlm-2", ("<|action_start|>", "<|plugin|>"), ()),
    ("gigachat-3", ("<|function_call|>",), ()),
    ("olmo-3", ("<function_calls>", "</function_calls>"), ("<atem:",)),
    ("minimax-m1", ("<tool_calls>\\n", "</tool_calls>"), ()),
    ("tool-calls", ("<tool_calls>[", "</tool_calls>"), ()),
    ("minicpm-5", ("<function name=", "<param name="), ()),
    ("hermes", ("<tool_call>", "</tool_call>"), ()),
    ("functionary-3.1", ("<function=", "</function>"), ("<parameter=", "<tool_call>")),
    ("llama-4", ("<|header_start|>", "func_name1("), ()),
    ("llama-3", ("<|start_header_id|>", "parameters"), ("<tool_call>", ">>>")),
    ("llama-3", ("<|header_start|>", "parameters"), ()),
    ("llama-3", ("<|python_tag|>",), ()),
)
"""For each format, texts that its chat templates contain, and texts that they lack. The first format that fits is taken."""


def detect_format(chat_template: str | None, special_tokens: Iterable[str] = ()) -> ToolFormat | None:
    """The format of a model, from its chat template and the names of its special tokens; None if neither shows one of the catalogue.

    Special tokens are looked at only if the template shows no format: templates may leave the calls to a program.
    """
    for text in (chat_template or "", "\n".join(special_tokens)):
        for name, present, absent in _SIGNS:
            if all(sign in text for sign in present) and not any(sign in text for sign in absent):
                return FORMATS[name]
    return None


def format_named(name: str) -> ToolFormat:
    """The format of this name, or of `name+marks` with other marks of reasoning, or a measured one (see written_format.py).

    Raises:
        GrammarError: there is none; lists those that exist.
    """
    if name.startswith(PREFIX):
        return _measured(name)
    calls, plus, marks = name.partition("+")
    if calls not in FORMATS:
        raise GrammarError(f"format = {name!r}: expected one of {', '.join(FORMATS)}", "format")
    return _composed(calls, marks) if plus else FORMATS[name]


@functools.lru_cache(maxsize=256)
def _composed(calls: str, marks: str) -> ToolFormat:
    if marks not in MARKS:
        raise GrammarError(f"format = {calls}+{marks}: expected one of {', '.join(MARKS)} after +", "format")
    return replace(FORMATS[calls], name=f"{calls}+{marks}", reasoning=MARKS[marks])


@functools.lru_cache(maxsize=64)
def _measured(name: str) -> ToolFormat:
    try:
        return format_from_name(name)
    except ValueError as error:
        raise GrammarError(f"format = {name[:100]!r}: {error}", "format") from None
