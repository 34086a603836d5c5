"""Histories that fit into a number of tokens. Brute force and the tokenizer of transformers are the oracles."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rtlang as rt
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime


@pytest.fixture
def scripted() -> Iterator[ScriptedRuntime]:
    with ScriptedRuntime() as found:
        yield found


Messages = list[dict[str, Any]]


def fitted(runtime: Any, source: Any, max_tokens: int, **options: Any) -> Messages:
    @rt.program
    def body(s: Any) -> Any:
        s += rt.fit(source, max_tokens, **options)
        return s.messages()

    found: Messages = body.run(runtime=runtime).value
    return found


def num_chars(messages: Messages) -> int:
    """The plain framing, one token per character, with the beginning of an answer."""
    return sum(len(f"{each['role'].capitalize()}: {each['content']}\n") for each in messages) + len("Assistant: ")


def turn(number: int) -> Messages:
    return [{"role": "user", "content": f"q{number}"}, {"role": "assistant", "content": f"answer {number}"}]


LONG = {"role": "assistant", "content": "a long answer " * 10}
HISTORY: Messages = [{"role": "system", "content": "Be kind."}, *turn(1), *turn(2), *turn(3)]


def test_what_fits_stays_as_it_is(scripted: ScriptedRuntime) -> None:
    assert fitted(scripted, HISTORY, num_chars(HISTORY)) == HISTORY
    assert fitted(scripted, [], 50) == []


def test_the_oldest_turns_are_dropped_and_the_system_stays(scripted: ScriptedRuntime) -> None:
    kept = [HISTORY[0], *turn(2), *turn(3)]
    assert fitted(scripted, HISTORY, num_chars(HISTORY) - 1) == kept
    assert fitted(scripted, HISTORY, num_chars(kept)) == kept
    assert fitted(scripted, HISTORY, num_chars(kept) - 1) == [HISTORY[0], *turn(3)]
    assert fitted(scripted, HISTORY, num_chars(HISTORY[:1]), keep=0) == HISTORY[:1]


def test_what_must_stay_and_does_not_fit_is_an_error(scripted: ScriptedRuntime) -> None:
    least = num_chars([HISTORY[0], *turn(3)])
    with pytest.raises(
        rt.ParameterError, match=rf"max_tokens = {least - 1}: .*the last turn, which stay, have {least} tokens"
    ):
        fitted(scripted, HISTORY, least - 1)
    with pytest.raises(rt.ParameterError, match="the last 3 turns"):
        fitted(scripted, HISTORY, num_chars(HISTORY) - 1, keep=3)


def test_random_histories_fit_as_brute_force_says(scripted: ScriptedRuntime) -> None:
    words = random.Random(3)
    for _ in range(25):
        turns: list[Messages] = []
        for number in range(words.randint(1, 6)):
            messages: Messages = [{"role": "user", "content": "u" * words.randint(1, 9)}]
            for step in range(words.randint(0, 3)):
                call = {"id": f"{number}{step}", "function": {"name": "f", "arguments": "{}"}}
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "r" * words.randint(1, 9)})
            messages.append({"role": "assistant", "content": "a" * words.randint(1, 9)})
            turns.append(messages)
        system: Messages = [{"role": "system", "content": "s"}] * words.randint(0, 1)
        keep = words.randint(0, 2)
        limit = words.randint(20, 400)

        def plain(number: int) -> Messages:
            """The messages without so many turns, with calls as text."""
            rest = [*system, *(message for each in turns[number:] for message in each)]  # noqa: B023
            return [
                {"role": each["role"], "content": each["content"] or '{"name": "f", "arguments": {}}'} for each in rest
            ]

        given = [*system, *(message for each in turns for message in each)]
        most = max(len(turns) - keep, 0)
        expected = next((plain(number) for number in range(most + 1) if num_chars(plain(number)) <= limit), None)
        if expected is None:
            with pytest.raises(rt.ParameterError, match="max_tokens"):
                fitted(scripted, given, limit, keep=keep)
        else:
            assert fitted(scripted, given, limit, keep=keep) == expected


def test_a_result_of_a_tool_stays_with_its_call_across_messages_of_the_user(scripted: ScriptedRuntime) -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    history: Messages = [
        *turn(1),
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": "one moment", "tool_calls": [call]},
        {"role": "user", "content": "still there?"},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ]
    kept = fitted(scripted, history, num_chars(HISTORY) - 1)
    assert [each["role"] for each in kept] == ["user", "assistant", "user", "tool"]


@rt.program
def summary(s: Any, messages: Messages, max_tokens: int) -> Any:
    """The policy of these tests: the old messages, and a question."""
    s += rt.messages(messages)
    s += rt.user("Summarize.")
    s += rt.assistant(rt.gen("summary", max_tokens))
    return s["summary"]


def test_a_program_summarizes_the_dropped_turns_in_the_same_graph() -> None:
    with ScriptedRuntime({"summary.summary": "Two questions.", "answer": "Yes."}) as scripted:

        @rt.program
        def body(s: Any) -> Any:
            s += rt.fit([*HISTORY[:3], LONG, *HISTORY[3:]], 130, policy=summary, summary_tokens=20)
            s += rt.user("Sure?")
            s += rt.assistant(rt.gen("answer"))
            return s.messages()

        result = body.run(runtime=scripted)
        assert len(result.breaks) == 1
        assert result.value == [
            HISTORY[0],
            {"role": "user", "content": "Summary of the earlier conversation:\nTwo questions.\n\nq3"},
            turn(3)[1],
            {"role": "user", "content": "Sure?"},
            {"role": "assistant", "content": "Yes."},
        ]
        (request,) = [each for each in scripted.requests if each.name == "summary.summary"]
        assert request.node.params.max_tokens == 20
        assert request.prompt.startswith("User: q1\nAssistant: answer 1\nAssistant: a long")
        assert "system" not in request.prompt.lower()
        assert fitted(scripted, HISTORY, 500, policy=summary) == HISTORY


def test_with_no_turn_left_the_summary_is_a_message(scripted: ScriptedRuntime) -> None:
    found = fitted(
        scripted, HISTORY, 90, policy=lambda messages, max_tokens: f"{len(messages)} messages", keep=0, summary_tokens=5
    )
    assert found == [HISTORY[0], {"role": "user", "content": "Summary of the earlier conversation:\n6 messages"}]
    with pytest.raises(rt.TraceError, match=r"rt.fit\(\): the policy returned 3"):
        fitted(scripted, HISTORY, 90, policy=lambda messages, max_tokens: 3, keep=0, summary_tokens=5)


def test_async_programs_await_it() -> None:
    @rt.program
    async def short(s: Any, messages: Messages, max_tokens: int) -> Any:
        s += rt.gen("short", max_tokens)
        return await s["short"]

    with ScriptedRuntime({"short.short": "so"}) as scripted:

        @rt.program
        async def body(s: Any) -> Any:
            s += await rt.fit([*HISTORY[:3], LONG, *HISTORY[3:]], 160, policy=short)
            return s.messages()

        assert body.run(runtime=scripted).value[1]["content"].endswith("\nso\n\nq3")


def test_generated_contents_are_counted_when_they_are_known() -> None:
    with ScriptedRuntime({"a": "long " * 20}) as scripted:

        @rt.program
        def body(s: Any) -> Any:
            other = s.fork(1)[0]
            other += rt.gen("a", max_tokens=200)
            s += rt.fit([{"role": "user", "content": other["a"]}, *turn(2)], 60)
            return s.messages()

        result = body.run(runtime=scripted)
        assert result.value == turn(2)
        assert len(result.breaks) == 1


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(page_size=1) as found:
        yield found


@rt.program
def asked(s: Any, history: Any, limit: int) -> Any:
    s += rt.fit(history, limit)
    s += rt.user("And now?")
    s += rt.assistant(rt.gen("answer", max_tokens=4))
    return s.messages()


def test_a_result_that_fits_goes_on_with_its_tokens(runtime: rt.Runtime) -> None:
    first = asked.run(HISTORY, 500, runtime=runtime)
    meta = first.meta("answer")
    num_known = meta.usage.prompt_tokens + len(meta.token_ids)
    second = asked.run(first, 500, runtime=runtime)
    assert second.meta("answer").usage.cached_tokens >= num_known - 1
    assert second.messages[: len(first.messages)] == first.messages
    third = asked.run(second, second.meta("answer").usage.prompt_tokens, runtime=runtime)
    assert third.messages[0] == HISTORY[0]
    assert len(third.messages) < len(second.messages) + 2


def test_tokens_are_those_of_the_chat_template(runtime: rt.Runtime) -> None:
    """transformers counts the same, and so does a server."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(runtime.model_directory))
    kept = [HISTORY[0], *turn(2), *turn(3)]
    exact = len(tokenizer.apply_chat_template(kept, add_generation_prompt=True, tokenize=True, return_dict=False))
    with running_server(runtime) as url, rt.connect(url) as remote:
        for target in (runtime, remote):
            assert fitted(target, HISTORY, exact) == kept
            assert fitted(target, HISTORY, exact - 1) == [HISTORY[0], *turn(3)]


def test_a_recording_repeats_the_decision_without_a_model(runtime: rt.Runtime, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    long_history = [*HISTORY, *turn(4), *turn(5)]
    with rt.record(path, runtime) as recorder:
        found = [asked.run(given, 60, runtime=recorder).value for given in (HISTORY, long_history)]
    with rt.replay(path) as replay:
        again = [asked.run(given, 60, runtime=replay).value for given in (HISTORY, long_history)]
    assert again == found
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 0}, "max_tokens = 0: expected an integer of at least 1"),
        ({"keep": -1}, "keep = -1"),
        ({"policy": "forget"}, "policy = 'forget'"),
        ({"policy": summary, "summary_tokens": 60}, "summary_tokens = 60: expected less than max_tokens = 60"),
        ({"source": [{"role": "user", "content": rt.gen("x")}]}, "a generation has no tokens to count yet"),
    ],
)
def test_wrong_arguments_are_named(scripted: ScriptedRuntime, options: dict[str, Any], words: str) -> None:
    given = {"source": HISTORY, "max_tokens": 60} | options
    with pytest.raises(rt.ParameterError) as caught:
        fitted(scripted, given.pop("source"), given.pop("max_tokens"), **given)
    assert words in str(caught.value)


def test_it_works_inside_a_running_program_only() -> None:
    with pytest.raises(rt.TraceError, match="only inside a program"):
        rt.fit(HISTORY, 10)

    @rt.program
    def body(s: Any) -> None:
        s += rt.fit(HISTORY, 10)

    with pytest.raises(rt.TraceError, match="graph break"):
        body.graph()
