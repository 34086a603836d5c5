"""Names, scopes, roles, forks and joins."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.request_graph import name_of, path_of
from rtlang.lang.program_state.state_record import MAX_PROGRAM_DEPTH
from rtlang.testing import ScriptedRuntime
from tests.support.programs.fake_target import FakeTarget, answer, by_name


def run(body: Any, **options: Any) -> rt.Result:
    return rt.program(body).run(**options)


def assert_refused(body: Any, *words: str) -> None:
    """The body is refused with a TraceError that names a line of this file."""
    with pytest.raises(rt.TraceError) as caught:
        rt.program(body).graph()
    assert caught.value.location is not None
    assert caught.value.location.startswith(f"{__file__}:")
    for word in words:
        assert word in str(caught.value)


def test_a_name_may_be_generated_again(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        values = []
        for _ in range(3):
            s += rt.gen("x")
            values.append(s["x"])
        s += rt.select("x", ["a"])
        return values, s["x"], s.all("x")

    result = run(body)
    values, last, every = result.value
    assert len(set(values)) == 3
    assert (last, every) == ("a", [*values, "a"])
    assert (result["x"], result.all("x")) == (last, every)
    assert [path_of(node) for node in result.graph.nodes] == ["x", "x#2", "x#3", "x#4"]
    again = pickle.loads(pickle.dumps(result))
    assert (again["x"], again.all("x")) == (last, every)
    with pytest.raises(KeyError, match="'y'"):
        result.all("y")


def test_scopes_and_forks_have_names_of_their_own(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += rt.gen("x")
        with s.scope("inner"):
            s += "-" + rt.gen("x")
            assert "x" in s
            with s.scope("deep"):
                s += rt.gen("y")
                s.set("seen", s["x"])
        s.fork(1)[0].__iadd__(rt.gen("x"))

    result = run(body)
    outer = answer("", "x")
    inner = answer(f"{outer}-", "inner.x")
    assert result["x"] == outer
    assert result["inner.x"] == inner
    assert result["inner.deep.seen"] == inner
    deep = answer(f"{outer}-{inner}", "inner.deep.y")
    assert result["inner.deep.y"] == result["inner.deep"] == deep
    assert result["inner"] == f"-{inner}{deep}"


def test_a_scope_is_a_span_of_text(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += "before "
        with s.scope("span"):
            s += rt.user("said ", 3) + rt.gen("x")
        s += rt.text(" again: ", s["span"]) + rt.gen("end")

    result = run(body)
    x = answer("before <user>said 3</>", "span.x")
    assert result["span"] == result.text("span") == f"said 3{x}"
    assert result["end"] == answer(f"before <user>said 3</>{x} again: said 3{x}", "end")
    assert result.breaks == ()


def test_a_scope_may_be_opened_again(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        for text in ("x", "y"):
            with s.scope("a"):
                s += text + rt.gen("v")
        return s.text("a"), s["a.v"]

    result = run(body)
    first = answer("x", "a.v")
    second = answer(f"x{first}y", "a.v")
    assert result.value == (f"y{second}", second)
    assert [path_of(node) for node in result.graph.nodes if name_of(node)] == ["a/v", "a#2/v"]


def test_variables_can_be_set_and_read(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s.set("plain", {"a": [1]})
        s.set("plain", [2])
        s += rt.gen("x")
        s.set("alias", s["x"])
        return "plain" in s, "nothing" in s, 3 in s, s["plain"], s.text("plain")

    result = run(body)
    assert result.value == (True, False, False, [2], "[2]")
    assert result["alias"] == result["x"]
    assert result.breaks == ()


def test_an_unknown_variable_names_the_known_ones() -> None:
    def body(s: Any) -> None:
        s += rt.gen("x")
        s["y"]

    assert_refused(body, "'y'", "x")


@pytest.mark.parametrize("wrong", ["", None, 3])
def test_names_are_non_empty_strings(wrong: Any) -> None:
    assert_refused(lambda s: s.set(wrong, 1), "name")
    assert_refused(lambda s: s.scope(wrong), "name")
    if wrong is not None:
        assert_refused(lambda s: rt.gen(wrong), "name")


def test_long_names_are_refused() -> None:
    assert_refused(lambda s: s.__iadd__(rt.gen("x" * 257)), "256")


def test_messages_are_what_was_said(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += "outside " + rt.system("Be brief.")
        with s.user():
            s += "One, "
            s += "two."
        s += rt.assistant("Well: ", rt.gen("x"))
        s += rt.tool("42")
        return s.messages()

    result = run(body)
    expected = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One, two."},
        {"role": "assistant", "content": f"Well: {result['x']}"},
        {"role": "tool", "content": "42"},
    ]
    assert result.value == result.messages == expected
    assert result.breaks == ()


def test_all_roles_have_blocks(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        for block in (s.system, s.user, s.assistant, s.tool):
            with block() as inside:
                assert inside is s
                s += "x"
        s += rt.gen("end")

    assert run(body)["end"] == answer("<system>x</><user>x</><assistant>x</><tool>x</>", "end")


def test_messages_do_not_nest() -> None:
    def expression(s: Any) -> None:
        s += rt.user(rt.assistant("x"))

    def block(s: Any) -> None:
        with s.user():
            s += rt.user("x")

    def blocks(s: Any) -> None:
        with s.user(), s.assistant():
            s += "x"

    for body in (expression, block, blocks):
        assert_refused(body, "inside a user message")


def test_an_error_inside_a_block_is_the_bodys_own() -> None:
    def body(s: Any) -> None:
        with s.user(), s.scope("x"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rt.program(body).graph()


def test_side_branches_leave_no_empty_message(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        s += rt.user("Ideas?")
        s += rt.assistant(rt.gen("idea", n=2))
        s += rt.user("More") + rt.gen("end")

    result = run(body)
    assert result["idea"] == [answer("<user>Ideas?</><assistant>", "idea", choice) for choice in range(2)]
    assert result["end"] == answer("<user>Ideas?</><user>More</>", "end")


def test_forks_continue_one_sequence(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += "root "
        forks = s.fork(3)
        assert len(forks) == 3
        for number, fork in enumerate(forks):
            fork += rt.text(number, ": ") + rt.gen("x")
        forks += "!"
        forks += ["a", rt.gen("y"), rt.text("c")]
        forks += lambda index: rt.text("#", index) + rt.gen("z")
        s += "main " + rt.gen("x")
        return forks["x"], forks[1]["y"], [state["z"] for state in forks[1:]]

    xs, y, zs = run(body).value
    assert xs == [answer(f"root {index}: ", "x") for index in range(3)]
    assert y == answer(f"root 1: {xs[1]}!", "y")
    assert zs == [answer(f"root 1: {xs[1]}!{y}#1", "z"), answer(f"root 2: {xs[2]}!c#2", "z")]


def test_joining_makes_lists_and_the_children_stay_readable(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += rt.gen("before")
        forks = s.fork(3)
        forks += rt.gen("x")
        forks[0] += rt.gen("only")
        forks[2].set("note", "n")
        forks.join()
        assert s["only"][1] is None
        return s["x"], forks[1]["x"], forks[1]["before"], s["note"], s.meta("only")[0].usage

    result = run(body)
    x = answer(result["before"], "x")
    assert result.value[:4] == ([x] * 3, x, result["before"], [None, None, "n"])
    assert result["only"] == [answer(result["before"] + x, "only"), None, None]
    assert result.text("x") == [x] * 3
    assert "before" in result
    assert len(result.meta("x")) == 3


def test_joined_states_do_not_grow_and_join_once() -> None:
    def grows(s: Any) -> None:
        forks = s.fork(2)
        forks.join()
        forks[0].__iadd__("x")

    def opens(s: Any) -> None:
        forks = s.fork(2)
        forks.join()
        with forks[0].user():
            pass

    def joins(s: Any) -> None:
        forks = s.fork(2)
        forks.join()
        forks.join()

    for body in (grows, opens, joins):
        assert_refused(body, "joined")


def test_forks_fork_and_an_empty_state_forks(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        outer = s.fork(2)
        for number, state in enumerate(outer):
            state += str(number)
            inner = state.fork(2)
            inner += rt.gen("x", seed=1)
            inner.join()
        outer.join()

    result = run(body)
    assert result["x"] == [[answer("0", "x")] * 2, [answer("1", "x")] * 2]
    assert result.breaks == ()


def test_rounds_of_forks_may_use_one_name(target: FakeTarget) -> None:
    def body(s: Any) -> None:
        for number in range(2):
            forks = s.fork(2)
            forks += rt.text(number) + rt.gen("idea")
            forks.join()
            s += rt.text(*s["idea"])
        s += rt.gen("end")

    result = run(body)
    first = answer("0", "idea")
    second = answer(f"{first}{first}1", "idea")
    assert result["idea"] == [second, second]
    assert result["end"] == answer(f"{first}{first}{second}{second}", "end")


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", 5000])
def test_forks_are_a_sensible_number(wrong: Any) -> None:
    assert_refused(lambda s: s.fork(wrong), "fork(n)")


def test_a_list_for_forks_has_one_item_each() -> None:
    def body(s: Any) -> None:
        forks = s.fork(2)
        forks += ["a", "b", "c"]

    assert_refused(body, "a list of 3 items; expected 2 items")


def test_a_fork_cannot_be_replaced() -> None:
    def body(s: Any) -> None:
        forks = s.fork(2)
        forks[0] = s

    assert_refused(body, "replaced")


def test_the_number_of_forks_may_be_generated(target: FakeTarget) -> None:
    target.script = by_name({"n": "3"})

    def body(s: Any) -> int:
        s += rt.gen("n", type=int)
        return len(s.fork(s["n"]))

    result = run(body)
    assert (result.value, len(result.breaks)) == (3, 1)


def test_a_copy_is_independent(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += "a" + rt.gen("x")
        other = s.copy()
        other += "b" + rt.gen("y")
        s += "c" + rt.gen("y")
        return other["x"], other["y"], s["y"]

    x, theirs, ours = run(body).value
    assert theirs == answer(f"a{x}b", "y")
    assert ours == answer(f"a{x}c", "y")


def test_a_copied_state_replaces_variables_of_its_own(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += rt.gen("x")
        other = s.copy()
        other += "-" + rt.gen("x")
        return s["x"], other["x"]

    result = run(body)
    assert result.value == (answer("", "x"), answer(f"{answer('', 'x')}-", "x"))


def test_forks_bind_programs(target: FakeTarget) -> None:
    @rt.program
    def answers(s: Any, question: str) -> None:
        s += question + rt.gen("a")

    def body(s: Any) -> None:
        forks = s.fork(2)
        forks += [answers.bind("p"), answers.bind("q")]
        forks.join()

    assert run(body)["answers.a"] == [answer("p", "answers.a"), answer("q", "answers.a")]


def test_a_span_and_a_set_variable_have_no_meta() -> None:
    def span(s: Any) -> None:
        with s.scope("a"):
            s += "x"
        s.meta("a")

    def plain(s: Any) -> None:
        s.set("a", 1)
        s.meta("a")

    for body in (span, plain):
        assert_refused(body, "meta")


def test_a_state_is_not_a_sequence() -> None:
    assert_refused(lambda s: list(s), "s[name]")


def test_a_state_shows_where_it_is(target: FakeTarget) -> None:
    def body(s: Any) -> str:
        s += "a" + rt.gen("x")
        return repr(s)

    assert run(body).value == "<state after node 1 with variables ['x']>"


def test_a_caught_exception_leaves_no_open_message(target: FakeTarget) -> None:
    @rt.program
    def body(s: Any) -> Any:
        s += rt.system("Be brief.")
        for _ in range(2):
            try:
                with s.user():
                    s += "dropped "
                    s += rt.gen("inner" if "inner" not in s else "again")
                    raise ValueError
            except ValueError:
                pass
        with pytest.raises(rt.TraceError):
            s += rt.user("also dropped", rt.gen("n" * 1_000))
        s += rt.user("kept")
        s += rt.assistant(rt.gen("end"))
        return s.messages()

    result = body.run()
    assert [(each["role"], each["content"]) for each in result.value[:2]] == [("system", "Be brief."), ("user", "kept")]
    assert result.value[2] == {"role": "assistant", "content": result["end"]}
    assert result["end"] == answer("<system>Be brief.</><user>kept</><assistant>", "end")
    assert result["inner"] == answer("<system>Be brief.</><user>dropped ", "inner")


@pytest.mark.parametrize("is_forked", [False, True])
def test_a_message_may_be_given_up_after_a_value_in_it_was_read(is_forked: bool, target: FakeTarget) -> None:
    @rt.program
    def body(s: Any) -> Any:
        s += "Rules."
        try:
            with s.user():
                s += "dropped " + rt.gen("inner")
                if is_forked:
                    fork = s.fork(1)[0]
                    fork += rt.gen("beside")
                    assert str(fork["beside"])
                assert str(s["inner"])  # what was recorded so far is submitted here
                raise ValueError
        except ValueError:
            s += " Go on:" + rt.gen("end")
        return s.text()

    result = body.run()
    assert result["end"] == answer("Rules. Go on:", "end")
    assert result["inner"] == answer("Rules.<user>dropped ", "inner")
    assert result.value == f"Rules. Go on:{result['end']}"


def test_recursion_of_programs_ends_at_a_stated_depth_whatever_the_names(target: FakeTarget) -> None:
    @rt.program
    def down(s: Any, levels: int) -> int:
        s += rt.gen("x")
        return down(s, levels - 1) + 1 if levels else 0  # type: ignore[no-any-return]

    down._body.function.__name__ = "a_name_of_some_length_" * 9
    assert down.run(MAX_PROGRAM_DEPTH).value == MAX_PROGRAM_DEPTH
    assert len(max(down.run(MAX_PROGRAM_DEPTH).names, key=len)) > 19_000
    with pytest.raises(rt.TraceError, match="101 programs deep; at most 100") as caught:
        down.run(MAX_PROGRAM_DEPTH + 1)
    assert caught.value.location.startswith(__file__)


def test_forks_do_not_hide_the_depth(target: FakeTarget) -> None:
    @rt.program
    def down(s: Any) -> None:
        down(s.fork(1)[0])

    with pytest.raises(rt.TraceError, match="deep"):
        down.run()


def test_forks_can_be_concatenated(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += "Tips:"
        forks = s.fork(3)
        for number, fork in enumerate(forks, 1):
            fork += rt.text(" ", number, ". ") + rt.gen("tip")
        forks.join("concat")
        s += rt.text(" Best: ", rt.gen("best"))
        return forks["tip"]

    result = run(body)
    tips = [answer(f"Tips: {number}. ", "tip") for number in (1, 2, 3)]
    text = "Tips:" + "".join(f" {number}. {tip}" for number, tip in enumerate(tips, 1)) + " Best: "
    assert result.breaks == ()
    assert result["tip"] == result.value == tips
    assert result.text() == text + answer(text, "best")
    assert result["best"] == answer(text, "best")


def test_messages_of_forks_can_be_concatenated(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += rt.system("Be brief.")
        forks = s.fork(2)
        forks += lambda index: rt.user(f"q{index}") + rt.assistant(rt.gen("a"))
        forks.join("concat")
        with s.user():
            inner = s.fork(2)
            inner += ["one ", "two"]
            inner.join("concat")
        return s.messages()

    result = run(body)
    first, second = (fork["a"] for fork in result.forks[0])
    assert [each["content"] for each in result.value] == ["Be brief.", "q0", first, "q1", second, "one two"]


def test_loops_in_forks_are_waited_for(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        (fork,) = forks = s.fork(1)

        def step(b: Any) -> Any:
            b += "x" + rt.gen("y")
            return b["y"]

        rt.repeat(step, at_most=2, state=fork)
        forks.join("concat")
        s += "!"
        return s.text()

    with ScriptedRuntime({"y": ["1", "2"]}) as scripted:
        result = run(body, runtime=scripted)
    assert result.value == "x1x2!"
    assert len(result.breaks) == 1


def test_a_wrong_concatenation_says_why(target: FakeTarget) -> None:
    def opens(s: Any) -> None:
        forks = s.fork(1)
        block = forks[0].user()
        block.__enter__()
        forks.join("concat")

    assert_refused(opens, "fork 0 has user message open, but none is open")
    with pytest.raises(rt.ParameterError, match='mode = \'concate_and_append\': expected "gather" or "concat"'):
        run(lambda s: s.fork(1).join("concate_and_append"))


def test_values_can_be_appended_to_lists(target: FakeTarget) -> None:
    def body(s: Any) -> Any:
        s += "A" + rt.gen("a")
        s.append("facts", "plain")
        s.append("facts", s["a"])
        forks = s.fork(2)
        for number, fork in enumerate(forks):
            fork += rt.gen("b")
            fork.append("facts", number)
        assert rt.value(s["facts"]) == ["plain", answer("A", "a")]
        forks.join()
        s.append("b", "last")
        s.set("given", [1])
        s.append("given", {"key": s["a"]})
        s += rt.text(*s["b"])
        return s["facts"], s.text("b")

    result = run(body)
    a = answer("A", "a")
    b = answer(f"A{a}", "b")
    assert result["facts"] == [["plain", a, 0], ["plain", a, 1]]
    assert result["b"] == [b, b, "last"]
    assert result["given"] == [1, {"key": a}]
    assert result.value == (result["facts"], result["b"])


def test_what_is_no_list_cannot_be_appended_to(target: FakeTarget) -> None:
    def plain(s: Any) -> None:
        s.set("x", 3)
        s.append("x", 4)

    def made(s: Any) -> None:
        s += rt.gen("x", type=list[int])
        s.append("x", 4)

    def expression(s: Any) -> None:
        s.append("x", rt.gen("y"))

    assert_refused(plain, "append('x'): the variable is 3; expected a list")
    assert_refused(made, "append('x'): the variable is a generated value")
    assert_refused(expression, "append('x') got rt.gen('y')")


def test_the_text_of_a_sequence_with_a_loop_that_has_ended_can_be_read() -> None:
    @rt.program
    def body(s: rt.State) -> tuple[str, str]:
        def turn(inner: rt.State) -> Any:
            inner += rt.gen("y")
            return inner["y"]

        s += "B"
        turns = rt.repeat(turn, at_most=2)
        s += "."
        return str(turns), str(s.text())

    with ScriptedRuntime({"y": ["one", "two"]}) as runtime:
        assert body.run(runtime=runtime).value == ("two", "Bonetwo.")


def test_messages_with_a_loop_that_has_ended_can_be_returned() -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        def turn(inner: rt.State) -> Any:
            inner += rt.user("?") + rt.assistant(rt.gen("y"))
            return inner["y"]

        rt.value(rt.repeat(turn, at_most=2))
        s += rt.user("!") + rt.assistant(rt.gen("z"))
        return s.messages()

    with ScriptedRuntime({"y": ["one", "two"], "z": "end"}) as runtime:
        contents = [each["content"] for each in body.run(runtime=runtime).value]
    assert contents == ["?", "one", "?", "two", "!", "end"]
