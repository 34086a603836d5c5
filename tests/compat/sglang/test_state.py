"""The semantics of states: variables, names, forks, joins, scopes and messages, with scripted texts; no model is involved."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang.pieces import without_cut
from rtlang.testing import ScriptedRuntime


def run(body: Any, answers: dict[str | None, Any] | None = None, **options: Any) -> sgl.ProgramState:
    """Run a body on scripted answers."""
    return sgl.function(body).run(backend=ScriptedRuntime(answers or {}, checks=False), **options)


def test_a_value_is_a_string_that_ends_before_its_stop() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "Q: 2 + 2?\nA:" + sgl.gen("answer", stop="\n") + "\nEnd"
        assert type(s["answer"]) is str

    state = run(body, {"answer": " 4"})
    assert state["answer"] == " 4"
    assert state.text() == "Q: 2 + 2?\nA: 4\nEnd"


def test_a_name_may_be_used_again_and_the_later_value_wins() -> None:
    def body(s: sgl.ProgramState) -> list[str]:
        seen = []
        for _ in range(3):
            s += sgl.gen("x") + ";"
            seen.append(s["x"])
        return seen

    scripted = ScriptedRuntime({"x": ["a", "b", "c"]}, checks=False)
    state = sgl.function(body).run(backend=scripted)
    assert state.ret_value == ["a", "b", "c"]
    assert (state["x"], state.text()) == ("c", "a;b;c;")


def test_generations_without_a_name_are_part_of_the_text_only() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "1." + sgl.gen(max_tokens=4) + "\n2." + sgl.gen(max_tokens=4)

    state = run(body, {"gen #1": "one", "gen #2": "two"})
    assert state.text() == "1.one\n2.two"


def test_a_missing_variable_names_the_existing_ones() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += sgl.gen("a")
        s["b"] = 7
        assert [name in s for name in "abc"] == [True, True, False]

    state = run(body, {"a": "x"})
    with pytest.raises(sgl.MissingVariableError, match="'c' does not exist; existing variables: a, b"):
        state["c"]
    with pytest.raises(KeyError):
        state.get_var("c")


def test_set_variables_have_any_value_and_no_meta_information() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += sgl.gen("n")
        s["n"] = int(s["n"])
        s.set_var("list", [1, 2])

    state = run(body, {"n": "12"})
    assert (state["n"], state.get_var("list"), state.get_meta_info("list")) == (12, [1, 2], None)


def test_a_scope_is_the_text_of_all_that_was_appended_inside() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "before "
        with s.var_scope("json"):
            s += '{"name": ' + sgl.gen("name") + ', "age": ' + sgl.gen() + "}"
        s += " after"

    state = run(body, {"name": '"Ada"', "gen #1": "36"})
    assert state["json"] == '{"name": "Ada", "age": 36}'
    assert state["name"] == '"Ada"'  # names inside are not prefixed


def test_forks_have_the_variables_of_their_parent_and_join_gathers_new_ones() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "Topic." + sgl.gen("topic")
        forks = s.fork(3)
        forks += lambda i: f" Tip {i}:" + sgl.gen("tip")
        assert [fork["topic"] for fork in forks] == ["T"] * 3
        forks[1] += sgl.gen("extra")
        forks.join()
        assert s["tip"] == ["a", "b", "c"]
        assert s["extra"] == ["e"]  # only the forks that have it
        assert s["topic"] == "T"
        s += "Best:" + sgl.gen("best")

    state = run(body, {"topic": "T", "tip": lambda prompt: "abc"[int(prompt[-2])], "extra": "e", "best": "b"})
    assert state.text() == "Topic.TBest:b"


def test_join_can_append_the_texts_of_the_forks() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "Facts.\n"
        forks = s.fork(2)
        forks += ["One: ", "Two: "]
        forks += sgl.gen("fact")
        forks += "\n"
        forks.join("concate_and_append")
        s += "Answer:" + sgl.gen("answer")

    scripted = ScriptedRuntime({"fact": lambda prompt: prompt[-5:-2].lower(), "answer": "z"}, checks=False)
    state = sgl.function(body).run(backend=scripted)
    assert state.text() == "Facts.\nOne: one\nTwo: two\nAnswer:z"
    assert scripted.prompts("answer") == ["Facts.\nOne: one\nTwo: two\nAnswer:"]
    assert "fact" not in state


def test_messages_of_forks_are_appended_as_messages() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += sgl.user("Hi")
        forks = s.fork(2)
        forks += lambda i: sgl.assistant(f"{i}" + sgl.gen("reply")) + sgl.user(f"And {i}?")
        forks.join("concate_and_append")

    state = run(body, {"reply": lambda prompt: "ab"[int(prompt[-1])]})
    roles = [message["role"] for message in state.messages()]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert [message["content"] for message in state.messages()][1:] == ["0a", "And 0?", "1b", "And 1?"]


def test_another_mode_of_join_and_position_offsets_are_refused() -> None:
    def joined(s: sgl.ProgramState) -> None:
        s += "x"
        s.fork(2).join("sum")

    with pytest.raises(rt.ParameterError, match='\'sum\': expected "gather_variable" or "concate_and_append"'):
        run(joined)

    def offset(s: sgl.ProgramState) -> None:
        s.fork(2, position_ids_offset=[0, 1])

    with pytest.raises(rt.ParameterError, match="position_ids_offset"):
        run(offset)


def test_a_copy_is_a_fork_that_is_joined_behind_the_block() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "a"
        with s.copy() as aside:
            aside += "b" + sgl.gen("thought")
        s += "c" + sgl.gen("said")

    scripted = ScriptedRuntime({"thought": "t", "said": "s"}, checks=False)
    state = sgl.function(body).run(backend=scripted)
    assert state["thought"] == ["t"]
    assert (scripted.prompts("thought"), scripted.prompts("said")) == (["ab"], ["ac"])


def test_messages_may_be_written_in_four_ways() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += sgl.system("Be brief.")
        s += sgl.user_begin() + "One" + sgl.user_end()
        s.assistant("Two" + sgl.gen("a"))
        with s.user():
            s += " Three"
            s += "!"
        s += sgl.assistant_begin()
        s += sgl.gen("b")
        s += sgl.assistant_end()
        s += sgl.user()
        s += sgl.assistant_begin() + "open"

    state = run(body, {"a": "A", "b": "B"})
    assert state.messages() == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "TwoA"},
        {"role": "user", "content": "Three!"},  # without blanks in front
        {"role": "assistant", "content": "B"},
        {"role": "user", "content": ""},
    ]


def test_a_message_cannot_be_nested_or_end_as_another() -> None:
    def nested(s: sgl.ProgramState) -> None:
        s += sgl.user("a" + sgl.assistant("b"))

    with pytest.raises(rt.TraceError, match="cannot start inside a user message"):
        run(nested)

    def crossed(s: sgl.ProgramState) -> None:
        s += sgl.user_begin() + "a" + sgl.assistant_end()

    with pytest.raises(rt.TraceError, match="a assistant message cannot end here, where user message is open"):
        run(crossed)


def test_a_caught_exception_in_a_message_leaves_no_open_message() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += sgl.system("Be brief.")
        try:
            with s.user():
                s += "lost" + sgl.gen("lost")
                raise LookupError
        except LookupError:
            s += sgl.user("kept")
        s += sgl.assistant(sgl.gen("a"))

    scripted = ScriptedRuntime({"lost": "x", "a": "b"}, checks=False)
    state = sgl.function(body).run(backend=scripted)
    assert [message["content"] for message in state.messages()] == ["Be brief.", "kept", "b"]
    assert "lost" not in scripted.prompts("a")[0]
    assert state["lost"] == "x"


def test_threads_of_the_body_may_each_have_a_fork() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "Count:"
        forks = s.fork(12)

        def work(number: int) -> str:
            fork = forks[number]
            for _ in range(5):
                fork += f" {number}" + sgl.gen("x")
                fork["last"] = fork["x"]
            return str(fork["last"])

        with ThreadPoolExecutor(6) as pool:
            s["found"] = list(pool.map(work, range(12)))
        forks.join()

    for stream in (False, True):
        state = run(body, {"x": lambda prompt: f"<{prompt.count(' ')}>"}, stream=stream)
        assert state["found"] == ["<5>"] * 12
        assert state["last"] == ["<5>"] * 12


@pytest.mark.parametrize("text", ["ab", "ab\n", "abc--d", "a-b--", "--", "-", "x\n--y"])
def test_a_growing_text_never_shows_what_is_cut_off_later(text: str) -> None:
    cuts = ("\n", "--")
    final = text.split("\n")[0].split("--")[0]
    for end in range(len(text) + 1):
        assert final.startswith(without_cut(text[:end], cuts))
    shown = without_cut(text + "z", cuts)
    assert shown == final or shown == final + "z"


def test_n_texts_are_a_list_and_the_sequence_goes_on_with_the_first() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "Q:" + sgl.gen("answers", n=3) + "."

    state = run(body, {"answers": ["a", "b", "c"]})
    assert state["answers"] == ["a", "b", "c"]
    assert state.text() == "Q:a."
    assert [info["completion_tokens"] for info in state.get_meta_info("answers")]


def test_values_choose_the_branch() -> None:
    def body(s: sgl.ProgramState, question: str) -> None:
        s += "To answer " + question + " I use a " + sgl.gen("tool", choices=["calculator", "search engine"]) + ". "
        if s["tool"] == "calculator":
            s += "The expression is" + sgl.gen("expression")
        elif s["tool"] == "search engine":
            s += "The key word is" + sgl.gen("word")

    state = run(body, {"tool": "search engine", "word": " x"}, question="it")
    assert ("word" in state, "expression" in state) == (True, False)


def test_the_error_of_a_generation_is_raised_by_reading_it_and_kept() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("good")
        s += "b" + sgl.gen("bad")
        s += "c" + sgl.gen("behind")

    state = run(body, {"good": "g", "bad": rt.RequestError("no"), "behind": "x"})
    assert state["good"] == "g"
    with pytest.raises(rt.RequestError, match=r"no .*generation 'bad' at .*test_state.py"):
        state["bad"]
    with pytest.raises(rt.RequestError, match="generation 'bad'"):
        state["behind"]
    assert isinstance(state.error(), rt.RequestError)
    state.sync()  # raises nothing


def test_the_error_of_a_joined_fork_is_that_of_the_state() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "x"
        forks = s.fork(3)
        forks += lambda i: f"{i}" + sgl.gen("y")
        forks.join()

    def answer(prompt: str) -> str:
        if prompt.endswith("1"):
            raise rt.RequestError("no")
        return "fine"

    state = run(body, {"y": answer})
    assert isinstance(state.error(), rt.RequestError)


def test_a_state_without_errors_has_none() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("x")

    assert run(body, {"x": "y"}).error() is None


@pytest.mark.parametrize(
    ("item", "hint"), [(None, "None"), ({"a": 1}, "a dict"), (rt.gen("x"), "an rt.gen expression; use sgl.gen")]
)
def test_what_cannot_be_appended_is_refused(item: Any, hint: str) -> None:
    def body(s: sgl.ProgramState) -> None:
        s += item

    with pytest.raises(rt.TraceError, match=f"cannot append {hint}"):
        run(body)


def test_the_text_of_a_state_shows_in_its_str() -> None:
    def body(s: sgl.ProgramState) -> None:
        s += "a" + sgl.gen("x")

    state = run(body, {"x": "y"})
    assert str(state) == "ProgramState(ay)"
    assert repr(state) == "<ProgramState with variables ['x']>"
