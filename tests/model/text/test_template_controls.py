"""Variables that turn the thought on and off: templates as model makers write them, rendered with the wishes of a request."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.chat_template import TemplateEnvironment
from rtlang.model.text.history import chat_prompt
from rtlang.model.text.template_controls import control_variables, read_template, soft_switch
from rtlang.runtime.scripted_runtime import CharacterTokenizer

OFF, LOW, HIGH, MOST = (
    {"thinks": False, "budget": 0},
    {"thinks": True, "effort": "low"},
    {"thinks": True, "effort": "high"},
    {"thinks": True, "effort": "xhigh"},
)
SEED = "{% if thinking_budget is defined %}{{ thinking_budget }} tokens{% endif %}"
# By the family that writes its template this way: the source, and what it gets for each wish.
TEMPLATES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "qwen": (
        "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}",
        {"enable_thinking": False},
        *[{"enable_thinking": True}] * 3,
    ),
    "deepseek": (
        "{% if not thinking is defined %}{% set thinking = enable_thinking | default(false) %}{% endif %}"
        "{% if thinking and reasoning_effort is defined and reasoning_effort == 'max' %}Think hard.{% endif %}",
        {"thinking": False, "enable_thinking": False},
        *[{"thinking": True, "enable_thinking": True, "reasoning_effort": each} for each in ("low", "high", "max")],
    ),
    "kimi": (
        "{% if thinking is undefined %}{% set thinking = true %}{% endif %}"
        "{% if thinking_effort is undefined %}{% set thinking_effort = 'max' %}{% endif %}"
        "{% if thinking and thinking_effort not in ['low', 'high', 'max'] %}{{ raise_exception('effort') }}{% endif %}",
        {"thinking": False},
        *[{"thinking": True, "thinking_effort": each} for each in ("low", "high", "max")],
    ),
    "hunyuan": (
        "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'no_think' %}"
        "{% elif reasoning_effort not in ['high', 'low', 'no_think'] %}{{ raise_exception('effort') }}{% endif %}",
        {"reasoning_effort": "no_think"},
        *[{"reasoning_effort": each} for each in ("low", "high", "high")],
    ),
    "minimax": (
        "{% if thinking_mode == 'disabled' %}a{% elif thinking_mode == 'enabled' %}b{% elif thinking_mode == 'adaptive' %}{% endif %}",
        {"thinking_mode": "disabled"},
        *[{"thinking_mode": "enabled"}] * 3,
    ),
    "harmony": (
        "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}Reasoning: {{ reasoning_effort }}",
        {},
        *[{"reasoning_effort": each} for each in ("low", "high", "high")],
    ),
    "table": (
        "{{ {'low': 'a', 'medium': 'b'}[reasoning_effort | default('low')] }}",
        {},
        *[{"reasoning_effort": each} for each in ("low", "medium", "medium")],
    ),
    "cohere": (
        "{% set skip_thinking = skip_thinking | default(false) %}{{ reasoning }}{{ skip_thinking }}",
        {"reasoning": False, "skip_thinking": True},
        *[{"reasoning": True, "skip_thinking": False}] * 3,
    ),
    "seed": (SEED, {"thinking_budget": 0}, {}, {}, {}),
    "none": ("{{ messages[0].content }}", {}, {}, {}, {}),
    "invalid": ("{% if %}", {}, {}, {}, {}),
}


@pytest.fixture(scope="module")
def environment() -> TemplateEnvironment:
    return TemplateEnvironment(datetime.datetime(2026, 1, 1))


def test_each_template_gets_the_values_that_it_knows(environment: TemplateEnvironment) -> None:
    for family, (source, *expected) in TEMPLATES.items():
        reading = read_template(environment, source)
        for controls, variables in zip((OFF, LOW, HIGH, MOST), expected, strict=True):
            assert control_variables(reading, controls) == variables, (family, controls)
            if family != "invalid":
                environment.begin()
                environment.compiled(source).render(messages=[{"content": "a"}], **variables)
        assert control_variables(reading, {}) == {}
    assert control_variables(read_template(environment, SEED), {"thinks": True, "budget": 90}) == {
        "thinking_budget": 90
    }
    spoken = read_template(environment, "{{ verbosity }}")
    assert control_variables(spoken, {"verbosity": "low"}) == {"verbosity": "low"}


def test_a_text_of_the_user_turns_the_thought_off_where_no_variable_does(environment: TemplateEnvironment) -> None:
    shown = "{{ m.role + m.content.replace('/no_think', '') }}"
    loop = "{% for m in messages %}{% if '/no_think' in m.content %}<off>{% endif %}" + shown + "{% endfor %}"
    assert soft_switch(read_template(environment, loop), OFF) == "/no_think"
    assert soft_switch(read_template(environment, loop), HIGH) == ""
    assert soft_switch(read_template(environment, loop + "{{ enable_thinking }}"), OFF) == ""
    tokenizer = CharacterTokenizer()
    chat = ChatTemplate(tokenizer, loop, {}).with_settings(None, TemplateOptions(controls=OFF).text)
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes"},
        {"role": "user", "content": "So"},
    ]
    written = tokenizer.decode(chat_prompt(chat, messages, "closed", lambda size: None))
    assert written == "userHiassistantYes<off>userSo "


def test_variables_that_are_named_come_before_wishes() -> None:
    tokenizer = CharacterTokenizer()
    options = TemplateOptions(variables={"enable_thinking": True}, controls=OFF)
    chat = ChatTemplate(tokenizer, "{{ enable_thinking }} {{ thinking }}", {}, variables={"thinking": "on"})
    assert chat.with_settings(None, options.text).render([], adds_prompt=True) == "True False"
    assert chat.render([], adds_prompt=True) == " on"
