"""How variables are seen."""

from __future__ import annotations

import pytest

from rtlang.contract.errors import TraceError
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Arg, Part, Ref, RoleEnd, RoleStart
from rtlang.lang.lazy_values.values import Value, parts_of
from rtlang.lang.output_types.types import TEXT
from rtlang.lang.program_state.variables import Plain, Variable, generated, messages_of, view
from rtlang.lang.recordings.driver import AheadOfTime
from rtlang.lang.recordings.recording import Recording


def test_a_generated_variable_is_lazy_in_all_its_views() -> None:
    recording = Recording(AheadOfTime(is_async=False))
    node_id = recording.add_generate(None, "x", SamplingParams(n=2), TEXT)
    variable = generated(recording, node_id, 1, "'x'", None, is_text=True)
    views = [view(variable, which, "x") for which in ("value", "text", "meta")]
    assert all(isinstance(each, Value) for each in views)
    assert parts_of(views[0]) == parts_of(views[1]) == (Ref(node_id, 1),)


def test_a_text_under_a_lark_grammar_has_a_tree() -> None:
    recording = Recording(AheadOfTime(is_async=False))
    constraint = Constraint(ConstraintKind.LARK, 'start: "a"')
    node_id = recording.add_generate(None, "x", SamplingParams(), TEXT)
    assert isinstance(view(generated(recording, node_id, 0, "'x'", constraint, is_text=True), "tree", "x"), Value)
    for variable in (generated(recording, node_id, 0, "'x'", None, is_text=True), Plain("a")):
        with pytest.raises(TraceError, match="has no tree"):
            view(variable, "tree", "x")


def test_lists_are_seen_item_by_item_and_gaps_stay_gaps() -> None:
    variable: Variable = [Plain(1), [Plain("a"), None]]
    assert view(variable, "value", "x") == [1, ["a", None]]
    assert view(variable, "text", "x") == ["1", ["a", None]]
    with pytest.raises(TraceError, match="'x'"):
        view(variable, "meta", "x")


def test_messages_are_the_parts_between_roles() -> None:
    parts: list[Part] = [
        "before",
        RoleStart("user"),
        "a",
        Ref(3, 1),
        "b",
        RoleEnd(),
        "between",
        RoleStart("assistant"),
        Ref(4),
    ]
    assert messages_of(parts, lambda node_id, choice: f"<{node_id}.{choice}>") == [
        {"role": "user", "content": "a<3.1>b"},
        {"role": "assistant", "content": "<4.0>"},
    ]
    with pytest.raises(TraceError, match="input"):
        messages_of([RoleStart("user"), Arg("name")], lambda node_id, choice: "")
