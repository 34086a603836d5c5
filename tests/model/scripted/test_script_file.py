"""Mistakes in scripts: the error names the file, the line, the field and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rtlang.contract.errors import ConfigError
from rtlang.model.scripted.script_file import read_script, script_of, script_path

WHOLE = """
format: deepseek-v3.1
max_model_len: 4096
first_token_s: 0.5
tokens_per_s: 20
rules:
  - when: {user: hello, system: "^You", tools: [a]}
    captures: {name: "I am (.*)"}
    repeats: true
    replies:
      - {thought: hm, content: text, calls: [{name: a, arguments: {x: [1, null]}, id: c1}], delay_s: 0}
      - {content: then, error: {kind: internal, message: broken}}
      - {error: overloaded}
"""
MISTAKES = [
    ("[]", "s:1': .*expected a map with format, max_model_len"),
    ("rules: []", "s:1: rules': .*at least one rule"),
    ("rules:\n  - replies: []", r"s:2: rules\[0\].replies': .*at least one reply"),
    ("rules:\n  - replies: [a]\n    wen: {}", r"s:3: rules\[0\].wen': .*unknown field; expected a map with when"),
    ("rules:\n - replies:\n   - content: 1", r"s:3: rules\[0\].replies\[0\].content': 1: expected text; quote it"),
    ("rules:\n - replies:\n   - {}", r"s:3: .*expected text or one of thought, content, calls, error"),
    ("rules:\n - replies:\n   - {calls: [{name: f, arguments: []}]}", r"calls\[0\].arguments': \[\]: expected a map"),
    ("rules:\n - replies:\n   - {calls: [{arguments: {}}]}", r"calls\[0\].name': None: expected text"),
    ("rules:\n - replies:\n   - {calls: [{name: f, arguments: {at: 2020-01-01}}]}", "plain JSON values"),
    ("rules:\n - replies: [a]\n   when:\n     user: '('", r"s:4: rules\[0\].when.user': .*regular expression"),
    ("rules:\n - replies: [{error: never}]", r"error.kind': 'never': expected one of overloaded, context_length"),
    ("rules: [{replies: [a], repeats: 1}]", "repeats': 1: expected true or false"),
    ("tokens_per_s: 0\nrules: [{replies: [a]}]", "s:1: tokens_per_s': 0: expected a number from"),
    ("first_token_s: 100\nrules: [{replies: [a]}]", "first_token_s': 100: expected a number from 0 to 60"),
    ("max_model_len: true\nrules: [{replies: [a]}]", "max_model_len': True: expected an integer"),
    ("format: herms\nrules: [{replies: [a]}]", "s:1: format': 'herms': expected one of hermes, "),
    ("format: mistral\nrules: [{replies: [{thought: a}]}]", "thought': 'a': the format mistral has no thoughts"),
    ("format: harmony\nrules: [{replies: [{calls: [{name: f}, {name: f}]}]}]", "one call in a reply"),
    ("format: command-a\nrules: [{replies: [{content: x, calls: [{name: f}]}]}]", "no content before calls"),
    ("rules: [\n{]", "s:2': expected YAML"),
    ("rules: &a [*a]", "expected"),
]


def test_a_script_is_read_the_same_from_yaml_and_json(tmp_path: Path) -> None:
    as_json = tmp_path / "script.json"
    as_json.write_text(json.dumps(yaml.safe_load(WHOLE), indent="\t"), encoding="utf-8")  # YAML does not allow tabs
    found, script = read_script(as_json), script_of(WHOLE, "script.json")
    assert (script.format, script.max_model_len, script.first_token_s, script.tokens_per_s) == (
        "deepseek-v3.1", 4096, 0.5, 20.0,
    )  # fmt: skip
    first, second, third = script.rules[0].replies
    assert (first.thought, first.content, first.calls[0].arguments, first.delay_s) == (
        "hm",
        "text",
        {"x": [1, None]},
        0.0,
    )
    assert second.failure is not None
    assert third.failure is not None
    assert (second.failure.kind, second.failure.message, third.failure.kind) == ("internal", "broken", "overloaded")
    assert first.place == "script.json:11: rules[0].replies[0]"
    assert [each.content for each in found.rules[0].replies] == [each.content for each in script.rules[0].replies]
    assert [each.calls for each in found.rules[0].replies] == [each.calls for each in script.rules[0].replies]


def test_mistakes_name_their_place_and_what_is_allowed(tmp_path: Path) -> None:
    for text, said in MISTAKES:
        with pytest.raises(ConfigError, match=said):
            script_of(text, "s")
    with pytest.raises(ConfigError, match="'s:2': expected JSON"):
        script_of('{"rules":\n x}', "s", is_json=True)
    with pytest.raises(ConfigError, match="expected a readable file in UTF-8"):
        read_script(tmp_path / "missing.yaml")


def test_a_model_names_a_script_by_its_scheme() -> None:
    assert script_path("rtlang:tiny") is None
    assert script_path("script:a/b.yaml") == Path("a/b.yaml")
