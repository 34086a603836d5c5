"""Minimal chat templates that write an assistant's message as the published templates of each family do, and nothing else."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from rtlang.model.text.chat_template import TemplateEnvironment

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
)

HAS_ONE_CALL = ("harmony", "llama-3")
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
