"""Options of the chat template as data, as text and from the settings of a runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, GraphError, ParameterError
from rtlang.contract.graph.template_options import TemplateOptions, template_settings
from rtlang.contract.request_graph import RoleEnd, RoleStart, Text, nodes_from_plain, nodes_to_plain


def test_options_cross_as_text_and_within_graphs() -> None:
    options = TemplateOptions("x", {"thinking": False, "é": [1]})
    assert TemplateOptions.from_text(options.text or "") == options
    assert TemplateOptions().text is None
    node = Text(0, None, (RoleStart("user", None, options.text), "a", RoleEnd()))
    plain = nodes_to_plain([node])
    assert plain[0]["parts"][0] == {"role": "user", "template_options": options.plain}
    assert nodes_from_plain(plain) == [node]


@pytest.mark.parametrize("given", [3, "x", {"chat_template": 3}, {"other": 1}, {"chat_template_kwargs": {"tools": 1}}])
def test_malformed_options_of_a_graph_are_refused(given: Any) -> None:
    with pytest.raises(GraphError, match="template"):
        nodes_from_plain(
            [{"kind": "text", "id": 0, "parent": None, "parts": [{"role": "user", "template_options": given}]}]
        )
    for text in ("{", "[]", "3"):
        with pytest.raises(ParameterError, match="template_options"):
            TemplateOptions.from_text(text)


def test_a_runtime_has_options_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "chat.jinja"
    path.write_text("{{ messages }}")
    config = RuntimeConfig(chat_template=str(path), chat_template_kwargs='{"enable_thinking": false}')
    assert template_settings(config) == TemplateOptions("{{ messages }}", {"enable_thinking": False})
    assert template_settings(RuntimeConfig()) == TemplateOptions()
    for wrong in (
        RuntimeConfig(chat_template=str(tmp_path / "none.jinja")),
        RuntimeConfig(chat_template=str(tmp_path)),
        RuntimeConfig(chat_template_kwargs="{"),
        RuntimeConfig(chat_template_kwargs="[1]"),
        RuntimeConfig(chat_template_kwargs='{"messages": 1}'),
    ):
        with pytest.raises(ConfigError, match="chat_template"):
            template_settings(wrong)
