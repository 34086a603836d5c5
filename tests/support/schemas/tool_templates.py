"""Minimal chat templates that write an assistant's message as the published templates of each family do, and nothing else."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from rtlang.model.text.chat_template import TemplateEnvironment
from tests.support.long_tests import is_long

_HERMES = """
{%- for c in m.tool_calls %}
{%- if loop.first and m.content or not loop.first %}{{ '\\n' }}{% endif %}
{{- '<tool_call>\\n{"name": "' ~ c.function.name ~ '", "arguments": ' ~ (c.function.arguments | tojson) ~ '}\\n</tool_call>' }}
{%- endfor %}"""
_THINK = "{% if m.reasoning_content %}{{ '<think>\\n' ~ m.reasoning_content ~ '\\n</think>\\n\\n' }}{% endif %}{{ m.content }}"
_LIST = """
{%- for c in m.tool_calls %}
{{- '{"name": "' ~ c.function.name ~ '", "arguments": ' ~ (c.function.arguments | tojson) ~ '}' }}
{%- if not loop.last %}{{ ', ' }}{% endif %}
{%- endfor %}"""

TEMPLATES: dict[str, str] = {
    "hermes": _THINK + _HERMES,
    "qwen-coder": _THINK
    + """{% if m.content %}{{ '\\n' }}{% endif %}
{%- for c in m.tool_calls %}
{{- '\\n<tool_call>\\n<function=' ~ c.function.name ~ '>\\n' }}
{%- for k, v in c.function.arguments.items() %}
{{- '<parameter=' ~ k ~ '>\\n' }}
{{- v | tojson if v is mapping or (v is sequence and v is not string) else v | string }}
{{- '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>' }}
{%- endfor %}""",
    "llama-3": """{{ m.content }}
{%- for c in m.tool_calls %}
{{- '{"name": "' ~ c.function.name ~ '", "parameters": ' ~ (c.function.arguments | tojson) ~ '}' }}
{%- endfor %}<|eot_id|>""",
    "llama-4": """{{ m.content }}
{%- if m.tool_calls %}{{ '[' }}
{%- for c in m.tool_calls %}
{{- c.function.name ~ '(' }}
{%- for k, v in c.function.arguments.items() %}{{ k ~ '=' ~ ('%r' | format(v)) }}{% if not loop.last %}{{ ', ' }}{% endif %}{% endfor %}
{{- ')' }}{% if not loop.last %}{{ ', ' }}{% endif %}
{%- endfor %}{{ ']' }}{% endif %}<|eot|>""",
    "mistral": """{{ m.content }}
{%- if m.tool_calls %}{{ '[TOOL_CALLS] [' }}
{%- for c in m.tool_calls %}
{{- (c.function | tojson)[:-1] ~ ', "id": "' ~ c.id[-9:] ~ '"}' }}{% if not loop.last %}{{ ', ' }}{% endif %}
{%- endfor %}{{ ']' }}{% endif %}</s>""",
    "mistral-args": """
{%- if m.reasoning_content %}{{ '[THINK]' ~ m.reasoning_content ~ '[/THINK]' }}{% endif %}{{ m.content }}
{%- for c in m.tool_calls %}{{ '[TOOL_CALLS]' ~ c.function.name ~ '[ARGS]' ~ (c.function.arguments | tojson) }}{% endfor %}</s>""",
    "deepseek-v3": """
{%- if m.reasoning_content %}{{ '<think>\\n' ~ m.reasoning_content ~ '\\n</think>\\n\\n' }}{% endif %}{{ m.content }}
{%- if m.tool_calls %}{{ '<｜tool▁calls▁begin｜>' }}
{%- for c in m.tool_calls %}
{%- if not loop.first %}{{ '\\n' }}{% endif %}
{{- '<｜tool▁call▁begin｜>' ~ c.type ~ '<｜tool▁sep｜>' ~ c.function.name ~ '\\n```json\\n' ~ (c.function.arguments | tojson) }}
{{- '\\n```<｜tool▁call▁end｜>' }}
{%- endfor %}{{ '<｜tool▁calls▁end｜>' }}{% endif %}<｜end▁of▁sentence｜>""",
    "deepseek-v3.1": """
{%- if m.reasoning_content %}{{ '<think>' ~ m.reasoning_content ~ '</think>' }}{% endif %}{{ m.content }}
{%- if m.tool_calls %}{{ '<｜tool▁calls▁begin｜>' }}
{%- for c in m.tool_calls %}
{{- '<｜tool▁call▁begin｜>' ~ c.function.name ~ '<｜tool▁sep｜>' ~ (c.function.arguments | tojson) ~ '<｜tool▁call▁end｜>' }}
{%- endfor %}{{ '<｜tool▁calls▁end｜>' }}{% endif %}<｜end▁of▁sentence｜>""",
    "harmony": """
{%- if m.reasoning_content %}{{ '<|channel|>analysis<|message|>' ~ m.reasoning_content ~ '<|end|><|start|>assistant' }}{% endif %}
{%- if m.tool_calls %}
{%- set c = m.tool_calls[0] %}
{{- ' to=functions.' ~ c.function.name ~ '<|channel|>commentary json<|message|>' ~ (c.function.arguments | tojson) ~ '<|call|>' }}
{%- else %}{{ '<|channel|>final<|message|>' ~ m.content ~ '<|return|>' }}{% endif %}""",
    "glm-4.5": """
{%- if m.reasoning_content %}{{ '\\n<think>' ~ m.reasoning_content ~ '</think>' }}{% endif %}
{%- if m.content %}{{ '\\n' ~ m.content }}{% endif %}
{%- for c in m.tool_calls %}
{{- '\\n<tool_call>' ~ c.function.name ~ '\\n' }}
{%- for k, v in c.function.arguments.items() %}
{{- '<arg_key>' ~ k ~ '</arg_key>\\n<arg_value>' ~ (v if v is string else v | tojson) ~ '</arg_value>\\n' }}
{%- endfor %}
{{- '</tool_call>' }}
{%- endfor %}""",
    "kimi-k2": """{% if m.reasoning_content %}{{ '<think>' ~ m.reasoning_content ~ '</think>' }}{% endif %}{{ m.content }}
{%- if m.tool_calls %}{{ '<|tool_calls_section_begin|>' }}
{%- for c in m.tool_calls %}
{{- '<|tool_call_begin|>functions.' ~ c.function.name ~ ':' ~ loop.index0 ~ '<|tool_call_argument_begin|>' }}
{{- (c.function.arguments | tojson) ~ '<|tool_call_end|>' }}
{%- endfor %}{{ '<|tool_calls_section_end|>' }}{% endif %}<|im_end|>""",
    "phi-4": "{{ m.content }}{% if m.tool_calls %}{{ '<|tool_call|>[' }}"
    + _LIST
    + "{{ ']<|/tool_call|>' }}{% endif %}<|end|>",
    "phi-4-mini": "{{ m.content }}{% if m.tool_calls %}{{ 'functools[' }}" + _LIST + "{{ ']' }}{% endif %}<|end|>",
    "granite-3": "{{ m.content }}{% if m.tool_calls %}{{ '<|tool_call|>[' }}"
    + _LIST
    + "{{ ']' }}{% endif %}<|end_of_text|>",
    "command-r": """{{ m.content }}
{%- if m.tool_calls %}{{ '\\nAction: ```json\\n[\\n' }}
{%- for c in m.tool_calls %}
{{- '    {\\n        "tool_name": "' ~ c.function.name ~ '",\\n        "parameters": ' ~ (c.function.arguments | tojson) ~ '\\n    }' }}
{%- if not loop.last %}{{ ',\\n' }}{% endif %}
{%- endfor %}{{ '\\n]```' }}{% endif %}<|END_OF_TURN_TOKEN|>""",
    "command-r7b": """
{%- if m.reasoning_content %}{{ '<|START_THINKING|>' ~ m.reasoning_content ~ '<|END_THINKING|>' }}{% endif %}
{%- if m.tool_calls %}{{ '<|START_ACTION|>[\\n' }}
{%- for c in m.tool_calls %}
{{- '    {"tool_call_id": "' ~ loop.index0 ~ '", "tool_name": "' ~ c.function.name ~ '", "parameters": ' }}
{{- (c.function.arguments | tojson) ~ '}' }}{% if not loop.last %}{{ ',' }}{% endif %}{{ '\\n' }}
{%- endfor %}{{ ']<|END_ACTION|>' }}
{%- else %}{{ '<|START_RESPONSE|>' ~ m.content ~ '<|END_RESPONSE|>' }}{% endif %}<|END_OF_TURN_TOKEN|>""",
    "json": """{{ m.content }}{% if m.content and m.tool_calls %}{{ '\\n' }}{% endif %}
{%- for c in m.tool_calls %}
{{- '{"name": "' ~ c.function.name ~ '", "arguments": ' ~ (c.function.arguments | tojson) ~ '}' }}
{%- if not loop.last %}{{ '\\n' }}{% endif %}
{%- endfor %}""",
}
_THOUGHT = "{% if m.reasoning_content %}{{ '<think>' ~ m.reasoning_content ~ '</think>' }}{% endif %}{{ m.content }}"
_EACH = "{%- for c in m.tool_calls %}{% set f = c.function %}"
_TEXT = "(v if v is string else v | tojson)"
_CDATA = "('<![CDATA[' ~ v ~ ']]>' if v is string and ('<' in v or '&' in v or '\\n' in v) else v if v is string else v | tojson)"


def _arguments(written: str) -> str:
    """A loop over the arguments of a call."""
    return "{% for k, v in f.arguments.items() %}{{ " + written + " }}{% endfor %}"


def _invokes(calls: str, tag: str, argument: str) -> str:
    return (
        _THOUGHT
        + "{% if m.tool_calls %}{{ '\\n\\n<"
        + calls
        + ">\\n' }}"
        + _EACH
        + "{{ '<"
        + tag
        + "invoke name=\"' ~ f.name ~ '\">\\n' }}"
        + _arguments(f"'<{tag}parameter name=\"' ~ k ~ {argument} ~ {_TEXT} ~ '</{tag}parameter>\\n'")
        + "{{ '</"
        + tag
        + "invoke>\\n' }}{% endfor %}{{ '</"
        + calls
        + ">' }}{% endif %}"
    )


def _functions(tag: str, think: str) -> str:
    return (
        _THOUGHT.replace("think>", f"{think}>")
        + _EACH
        + "{{ '\\n<"
        + tag
        + ">\\n<function=' ~ f.name ~ '>\\n' }}"
        + _arguments(f"'<parameter=' ~ k ~ '>' ~ {_TEXT} ~ '</parameter>\\n'")
        + "{{ '</function>\\n</"
        + tag
        + ">' }}{% endfor %}"
    )


def _hunyuan(suffix: str) -> str:
    tags = (
        _THOUGHT
        + "{% if m.tool_calls %}{{ '<tool_calls>\\n' }}"
        + _EACH
        + "{% if not loop.first %}{{ '\\n' }}{% endif %}{{ '<tool_call>' ~ f.name ~ '<tool_sep>\\n' }}"
        + _arguments(f"'<arg_key>' ~ k ~ '</arg_key>\\n<arg_value>' ~ {_TEXT} ~ '</arg_value>\\n'")
        + "{{ '</tool_call>' }}{% endfor %}{{ '\\n</tool_calls>' }}{% endif %}"
    )
    for name in ("think", "tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value"):
        tags = tags.replace(f"{name}>", f"{name}{suffix}>")
    return tags


def _listed(begin: str, end: str) -> str:
    return _THOUGHT + "{% if m.tool_calls %}{{ '" + begin + "' }}" + _LIST + "{{ '" + end + "' }}{% endif %}"


_PYTHON = """{{ f.name ~ '(' }}
{%- for k, v in f.arguments.items() %}{{ k ~ '=' ~ ('%r' | format(v)) }}{% if not loop.last %}{{ ', ' }}{% endif %}{% endfor %}
{{- ')' }}"""
_NAMESPACE = "]<]minimax[>["
_DSML = "｜DSML｜"
_IS_STRING = """'" string="' ~ ('true' if v is string else 'false') ~ '">'"""

TEMPLATES |= {
    "seed-oss": _functions("seed:tool_call", "seed:think"),
    "mimo": _functions("tool_call", "think"),
    "glm-4.7": _THOUGHT
    + _EACH
    + "{{ '<tool_call>' ~ f.name }}"
    + _arguments(f"'<arg_key>' ~ k ~ '</arg_key><arg_value>' ~ {_TEXT} ~ '</arg_value>'")
    + "{{ '</tool_call>' }}{% endfor %}",
    "hunyuan-3": _hunyuan(""),
    "hunyuan-3-opensource": _hunyuan(":opensource"),
    "deepseek-v3.2": _invokes(f"{_DSML}function_calls", _DSML, _IS_STRING),
    "deepseek-v4": _invokes(f"{_DSML}tool_calls", _DSML, _IS_STRING),
    "deepseek-v4.1": _invokes(f"{_DSML} calls", f"{_DSML} ", _IS_STRING),
    "minimax-m2": _invokes("minimax:tool_call", "", "'\">'"),
    "minimax-m3": "{%- macro element(k, v, ns) -%}{{ ns ~ '<' ~ k ~ '>' }}"
    "{%- if v is mapping %}{% for name, inner in v.items() %}{{ element(name, inner, ns) }}{% endfor %}"
    "{%- elif v is sequence and v is not string %}{% for inner in v %}{{ element('item', inner, ns) }}{% endfor %}"
    "{%- else %}{{ v if v is string else v | tojson }}{% endif %}{{ ns ~ '</' ~ k ~ '>' }}{%- endmacro -%}"
    + "{%- set ns = '"
    + _NAMESPACE
    + "' -%}"
    + _THOUGHT.replace("think>", "mm:think>")
    + "{% if m.tool_calls %}{{ ns ~ '<tool_call>\\n' }}"
    + _EACH
    + "{{ ns ~ '<invoke name=\"' ~ f.name ~ '\">' }}"
    + _arguments("element(k, v, ns)")
    + "{{ ns ~ '</invoke>\\n' }}{% endfor %}{{ ns ~ '</tool_call>' }}{% endif %}",
    "step-3": _THOUGHT
    + "{% if m.tool_calls %}{{ '<｜tool_calls_begin｜>\\n' }}"
    + _EACH
    + "{{ '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"' ~ f.name ~ '\">\\n' }}"
    + _arguments(f"'<steptml:parameter name=\"' ~ k ~ '\">' ~ {_TEXT} ~ '</steptml:parameter>\\n'")
    + "{{ '</steptml:invoke><｜tool_call_end｜>\\n' }}{% endfor %}{{ '<｜tool_calls_end｜>' }}{% endif %}",
    "minicpm-5": _THOUGHT
    + _EACH
    + "{{ '\\n<function name=\"' ~ f.name ~ '\">' }}"
    + _arguments(f"'<param name=\"' ~ k ~ '\">' ~ {_CDATA} ~ '</param>'")
    + "{{ '</function>' }}{% endfor %}",
    "kimi-k3": "{%- macro open(name) -%}{{ '<|open|>' ~ name ~ '<|sep|>' }}{%- endmacro -%}"
    "{%- macro close(name) -%}{{ '<|close|>' ~ name ~ '<|sep|>' }}{%- endmacro -%}"
    "{%- macro kind(v) -%}{{ 'string' if v is string else 'boolean' if v is boolean else 'null' if v is none "
    "else 'number' if v is number else 'object' if v is mapping else 'array' }}{%- endmacro -%}"
    "{% if m.reasoning_content %}{{ open('think') ~ m.reasoning_content ~ close('think') }}{% endif %}"
    "{% if m.content or not m.tool_calls %}{{ open('response') ~ m.content ~ close('response') }}{% endif %}"
    "{% if m.tool_calls %}{{ open('tools') }}"
    + _EACH
    + "{{ open('call tool=\"' ~ f.name ~ '\" index=\"' ~ loop.index ~ '\"') }}"
    + _arguments(f"open('argument key=\"' ~ k ~ '\" type=\"' ~ kind(v) ~ '\"') ~ {_TEXT} ~ close('argument')")
    + "{{ close('call') }}{% endfor %}{{ close('tools') }}{% endif %}<|end_of_msg|>",
    "gemma-4": "{%- macro literal(v) -%}{%- if v is string %}{{ '<|\"|>' ~ v ~ '<|\"|>' }}"
    "{%- elif v is mapping %}{{ '{' }}{% for k, inner in v.items() %}{{ ',' if not loop.first }}{{ k ~ ':' ~ literal(inner) }}"
    "{% endfor %}{{ '}' }}{%- elif v is sequence %}{{ '[' }}{% for inner in v %}{{ ',' if not loop.first }}{{ literal(inner) }}"
    "{% endfor %}{{ ']' }}{%- else %}{{ v | tojson }}{% endif %}{%- endmacro -%}"
    "{% if m.reasoning_content %}{{ '<|channel>thought\\n' ~ m.reasoning_content ~ '<channel|>' }}{% endif %}{{ m.content }}"
    + _EACH
    + "{{ '<|tool_call>call:' ~ f.name ~ literal(f.arguments) ~ '<tool_call|>' }}{% endfor %}",
    "lfm2": _THOUGHT
    + "{% if m.tool_calls %}{{ '<|tool_call_start|>[' }}"
    + _EACH
    + "{{ ', ' if not loop.first }}"
    + _PYTHON
    + "{% endfor %}{{ ']<|tool_call_end|>' }}{% endif %}",
    "olmo-3": _THOUGHT
    + "{% if m.tool_calls %}{{ '<function_calls>\\n' }}"
    + _EACH
    + _PYTHON.replace("'%r' | format(v)", "v | tojson")
    + "{{ '\\n' }}{% endfor %}{{ '</function_calls>' }}{% endif %}",
    "minimax-m1": _listed("<tool_calls>\\n", "\\n</tool_calls>").replace("{{ ', ' }}", "{{ '\\n' }}"),
    "tool-calls": _listed("<tool_calls>[", "]</tool_calls>"),
    "nemotron-2": _listed("<TOOLCALL>[", "]</TOOLCALL>"),
    "apertus": "{{ m.content }}{% if m.tool_calls %}{{ '<|tools_prefix|>[' }}"
    + _EACH
    + "{{ ', ' if not loop.first }}{{ '{\"' ~ f.name ~ '\": ' ~ f.arguments | tojson ~ '}' }}"
    + "{% endfor %}{{ ']<|tools_suffix|>' }}{% endif %}",
    "longcat": (_THINK + _HERMES).replace("think>", "longcat_think>").replace("tool_call>", "longcat_tool_call>"),
    "internlm-2": "{{ m.content }}"
    + _EACH
    + "{{ '<|action_start|><|plugin|>\\n{\"name\": \"' ~ f.name ~ '\", \"parameters\": ' ~ f.arguments | tojson ~ '}<|action_end|>' }}"
    + "{% endfor %}",
    "gigachat-3": "{{ m.content }}"
    + _EACH
    + "{{ '<|function_call|>{\"name\": \"' ~ f.name ~ '\", \"arguments\": ' ~ f.arguments | tojson ~ '}' }}{% endfor %}",
    "functionary-3.1": "{{ m.content }}"
    + _EACH
    + "{{ '<function=' ~ f.name ~ '>' ~ f.arguments | tojson ~ '</function>' }}{% endfor %}",
    "xlam": _listed("[", "]").replace("<think>", "").replace("</think>", ""),
}
TEMPLATES["command-a"] = TEMPLATES["command-r7b"].replace("_RESPONSE|>", "_TEXT|>")
_ENDS = (
    "<|eot_id|>",
    "<|eot|>",
    "</s>",
    "<｜end▁of▁sentence｜>",
    "<|call|>",
    "<|return|>",
    "<|im_end|>",
    "<|end|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end_of_msg|>",
)

FORMATS_OF_EACH_KIND = (
    tuple(TEMPLATES)
    if is_long()
    else (
        *("hermes", "qwen-coder", "llama-3", "llama-4", "mistral", "mistral-args", "deepseek-v3", "harmony", "glm-4.5"),
        *(
            "kimi-k2",
            "granite-3",
            "command-r7b",
            "deepseek-v3.2",
            "minimax-m3",
            "kimi-k3",
            "gemma-4",
            "olmo-3",
            "minicpm-5",
            "xlam",
        ),
    )
)
"""For tests that take long in each format: all of them where long tests were asked for, else one of each kind."""
HAS_ONE_CALL = ("harmony", "llama-3", "internlm-2", "gigachat-3")
"""Formats whose templates write one call in a message."""
HAS_NO_CONTENT_BEFORE_CALLS = ("harmony", "command-r7b", "command-a")


def render(
    name: str, content: str, reasoning: str, calls: Sequence[tuple[str, dict[str, Any]]], call_id: str = "abcDEF123"
) -> str:
    """The message of an assistant as the template of a format writes it, without the end token."""
    environment = TemplateEnvironment(datetime.datetime(2025, 1, 1))
    template = environment.compiled(TEMPLATES[name])
    environment.begin()
    tool_calls = [
        {"id": call_id, "type": "function", "function": {"name": call, "arguments": arguments}}
        for call, arguments in calls
    ]
    text = template.render(m={"content": content, "reasoning_content": reasoning, "tool_calls": tool_calls})
    for end in _ENDS:
        text = text.removesuffix(end)
    return text
