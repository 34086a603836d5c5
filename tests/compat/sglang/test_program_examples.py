"""Programs of the kinds that the frontend's documentation shows, on the model of the package.

Greedy texts are compared with the same program written in this language.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import Any

import pytest

import rtlang as rt
import rtlang.compat.sglang as sgl
from rtlang.compat.sglang import assistant, assistant_begin, assistant_end, function, gen, system, user

QUESTIONS = ["How much is the lamp?", "What color is the mug?", "Is the chair in stock?"]
CATALOG = "You work in a shop. Catalog:\n- lamp: 40 dollars, red, 3 in stock\n- mug: 8 dollars, blue, 0 in stock"


def native(body: Any, backend: sgl.Runtime, **arguments: Any) -> rt.Result[Any]:
    return rt.program(body).run(**arguments, runtime=backend.target)


def test_a_chat_of_several_turns(backend: sgl.Runtime) -> None:
    @function
    def turns(s, first, second):  # type: ignore[no-untyped-def]
        s += system(CATALOG)
        s += user(first)
        s += assistant(gen("answer_1", max_tokens=16))
        with s.user():
            s += second
        s += assistant_begin()
        s += gen("answer_2", max_tokens=16)
        s += assistant_end()

    def same(s: rt.State, first: str, second: str) -> Any:
        s += rt.system(CATALOG)
        s += rt.user(first)
        s += rt.assistant(rt.gen("answer_1", max_tokens=16))
        s += rt.user(second)
        s += rt.assistant(rt.gen("answer_2", max_tokens=16))
        return s.messages()

    state = turns.run(first=QUESTIONS[0], second=QUESTIONS[1], temperature=0)
    expected = native(same, backend, first=QUESTIONS[0], second=QUESTIONS[1])
    assert (state["answer_1"], state["answer_2"]) == (expected["answer_1"], expected["answer_2"])
    assert [m["role"] for m in state.messages()] == ["system", "user", "assistant", "user", "assistant"]
    assert [m["content"] for m in state.messages()] == [m["content"].lstrip() for m in expected.value]
    text = state.text()
    assert text.startswith(f"<|system|>{CATALOG}<|end|>")
    assert text.endswith(f"<|assistant|>{state['answer_2']}<|end|>")


def test_questions_with_examples_in_a_batch(backend: sgl.Runtime) -> None:
    @function
    def answer(s, question):  # type: ignore[no-untyped-def]
        s += "Questions with answers.\n\nQ: What is 2 plus 3?\nA: 5\nQ: What is 4 plus 1?\nA: 5\n"
        s += "Q: " + question + "\n"
        s += "A:" + gen("answer", stop="\n", temperature=0, max_tokens=8)

    def same(s: rt.State, question: str) -> None:
        s += "Questions with answers.\n\nQ: What is 2 plus 3?\nA: 5\nQ: What is 4 plus 1?\nA: 5\n"
        s += "Q: " + question + "\nA:" + rt.gen("answer", stop="\n", max_tokens=8)

    states = answer.run_batch([{"question": each} for each in QUESTIONS], progress_bar=False)
    assert [state["answer"] for state in states] == [native(same, backend, question=q)["answer"] for q in QUESTIONS]
    assert all("\n" not in state["answer"] for state in states)


@pytest.mark.parametrize("method", [None, sgl.greedy_token_selection, sgl.unconditional_likelihood_normalized])
def test_true_or_false_with_examples(method: Any, backend: sgl.Runtime) -> None:
    choices = ["True", "False", "Unknown"]

    @function
    def judge(s, statement):  # type: ignore[no-untyped-def]
        s += "Statement: A mug is a cup.\nAnswer: True\nStatement: " + statement + "\n"
        s += "Answer: " + gen("answer", choices=choices, choices_method=method)

    def same(s: rt.State, statement: str, name: str) -> None:
        s += "Statement: A mug is a cup.\nAnswer: True\nStatement: " + statement + "\nAnswer: "
        s += rt.select("answer", choices, method=name)

    names = {
        None: "token_length_normalized",
        sgl.greedy_token_selection: "greedy_token_selection",
        sgl.unconditional_likelihood_normalized: "unconditional_likelihood_normalized",
    }
    statement = "Berlin is a city."
    expected = native(same, backend, statement=statement, name=names[method])
    assert judge.run(statement=statement)["answer"] == expected["answer"]


def test_json_written_field_by_field(backend: sgl.Runtime) -> None:
    @function
    def city(s):  # type: ignore[no-untyped-def]
        s += "Describe Paris as JSON.\n"
        with s.var_scope("json_output"):
            s += "{\n"
            s += '  "name": ' + gen(regex=sgl.REGEX_STR, max_tokens=12) + ",\n"
            s += '  "population": ' + gen(regex=sgl.REGEX_INT, stop=[" ", "\n"], max_tokens=8) + ",\n"
            s += '  "area": ' + sgl.gen_int("area", max_tokens=6) + ",\n"
            s += '  "latitude": ' + gen(dtype=float, max_tokens=8) + ",\n"
            s += '  "country": ' + sgl.gen_string(max_tokens=12) + "\n"
            s += "}"
        s += "\nIs it large? " + gen("large", dtype=bool)

    for temperature in (0.0, 1.0):
        state = city.run(temperature=temperature)
        lines = [
            r"\{",
            r'  "name": "[\w\s]*",',
            r'  "population": [-+]?\d+,',
            rf'  "area": {re.escape(state["area"])},',
            r'  "latitude": [-+]?\d*\.?\d+,',
            r'  "country": "[\w\s]*"',
            r"\}",
        ]
        assert re.fullmatch("\n".join(lines), state["json_output"])
        assert re.fullmatch(r"[-+]?\d+", state["area"])  # without the blank that ended it
        assert state["large"] in ("True", "False")


def test_one_pattern_for_a_whole_object(backend: sgl.Runtime) -> None:
    pattern = r'\{\n"name": "[A-Za-z ]{1,12}",\n"house": "(Red|Blue)",\n"year": [1-9][0-9]{0,3}\n\}'

    @function
    def character(s, name):  # type: ignore[no-untyped-def]
        s += name + " is a character. As JSON:\n" + gen("out", max_tokens=96, regex=pattern)

    for state in character.run_batch([("Mira",), ("Tom",)]):
        assert json.loads(state["out"])["house"] in ("Red", "Blue")


def test_a_schema(backend: sgl.Runtime) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }

    @function
    def person(s):  # type: ignore[no-untyped-def]
        s += user("Describe a person as JSON.")
        s += assistant(gen("person", json_schema=json.dumps(schema), max_tokens=60))

    found = json.loads(person.run(temperature=0)["person"])
    assert set(found) == {"name", "age"}
    assert isinstance(found["age"], int)


def test_a_tool_in_the_text(backend: sgl.Runtime) -> None:
    calls = []

    def calculate(expression: str) -> str:
        calls.append(expression)
        return str(len(expression))

    @function
    def tool_use(s, lhs, rhs):  # type: ignore[no-untyped-def]
        s += "calculate(1+2)=3\ncalculate(3*4)=12\n"
        s += "What is " + str(lhs) + " times " + str(rhs) + "? calculate("
        s += gen("expression", stop=")", regex=r"[0-9*+]{3,9}", max_tokens=10) + ") = "
        with s.var_scope("answer"):
            s += calculate(s["expression"])

    state = tool_use(lhs=257, rhs=983, temperature=0)
    assert calls == [state["expression"]]
    assert state["answer"] == str(len(state["expression"]))
    assert state.text().endswith(f"calculate({state['expression']}) = {state['answer']}")


def test_an_agent_that_reasons_and_acts(backend: sgl.Runtime) -> None:
    @function
    def react(s, question):  # type: ignore[no-untyped-def]
        s += "Question: " + question + "\n"
        for i in range(1, 4):
            s += f"Thought {i}:" + gen(stop=[".", "\n"], max_tokens=8) + ".\n"
            s += f"Action {i}: " + sgl.select(f"action_{i}", ["Search", "Finish"])
            if s[f"action_{i}"] == "Finish" or i == 3:
                s += " [" + gen("answer", stop="]", max_tokens=8) + "].\n"
                break
            s += " [" + gen(stop="]", max_tokens=8) + "].\n"
            s += f"Observation {i}: nothing.\n"

    state = react.run(question="Who made the lamp?", temperature=0.5)
    assert state["answer"] in state.text()
    assert 1 <= sum(f"action_{i}" in state for i in range(1, 4)) <= 3
    assert state.error() is None


def test_several_samples_of_one_text(backend: sgl.Runtime) -> None:
    @function
    def sample(s, question, count):  # type: ignore[no-untyped-def]
        s += "Question: " + question + "\n"
        forks = s.fork(count)
        forks += "Reasoning:" + gen("reasoning", stop="\n", max_tokens=12) + "\n"
        forks += "Tip:" + gen("tip", choices=["keep", "drop"]) + "\n"
        forks.join()

    state = sample.run(question="Is it good?", count=5, temperature=1.0)
    assert len(state["reasoning"]) == len(state["tip"]) == 5
    assert len(set(state["reasoning"])) > 1
    assert set(state["tip"]) <= {"keep", "drop"}


def test_tips_that_are_expanded_side_by_side(backend: sgl.Runtime) -> None:
    @function
    def tips(s, topic):  # type: ignore[no-untyped-def]
        s += "Tips for " + topic + ":\n"
        for i in range(1, 4):
            s += f"{i}." + gen(max_tokens=6, stop=[".", "\n"]) + ".\n"
        forks = s.fork(3)
        for i in range(3):
            forks[i] += f"Tip {i + 1} in detail:"
            forks[i] += gen("detailed_tip", 12, stop=["\n\n"])
        forks.join()
        s += "In detail:\n"
        for i in range(3):
            s += f"Tip {i + 1}:" + forks[i]["detailed_tip"] + "\n"
        s += "In summary," + gen("summary", max_tokens=8)

    def same(s: rt.State, topic: str) -> Any:
        s += "Tips for " + topic + ":\n"
        for i in range(1, 4):
            s += f"{i}." + rt.gen(max_tokens=6, stop=[".", "\n"]) + ".\n"
        forks = s.fork(3)
        for i in range(3):
            forks[i] += f"Tip {i + 1} in detail:" + rt.gen("detailed_tip", 12, stop=["\n\n"])
        s += "In detail:\n"
        for i in range(3):
            s += rt.text(f"Tip {i + 1}:", forks[i]["detailed_tip"], "\n")
        s += "In summary," + rt.gen("summary", max_tokens=8)
        return s.text()

    state = tips.run(topic="a good day", temperature=0)
    assert state.text() == native(same, backend, topic="a good day").value
    assert state["detailed_tip"] == [state_tip for state_tip in state["detailed_tip"] if state_tip in state.text()]


def test_a_question_about_documents_that_were_read_apart(backend: sgl.Runtime) -> None:
    documents = ["Ethan is a father.", "Noah is a cook.", "Oliver is a clerk."]

    @function
    def ask(s, question):  # type: ignore[no-untyped-def]
        s += "Remember these statements.\n"
        forks = s.fork(len(documents))
        forks += lambda i: f"Statement {i}: " + documents[i] + "\n"
        forks.join(mode="concate_and_append")
        s += "Question: " + question + "\nAnswer:" + gen("answer", max_tokens=8, temperature=0)

    def same(s: rt.State) -> None:
        s += "Remember these statements.\n"
        for i, document in enumerate(documents):
            s += f"Statement {i}: {document}\n"
        s += "Question: Who cooks?\nAnswer:" + rt.gen("answer", max_tokens=8)

    assert ask.run("Who cooks?")["answer"] == native(same, backend)["answer"]


def test_a_tree_of_thoughts(backend: sgl.Runtime) -> None:
    def propose(s, question, branches):  # type: ignore[no-untyped-def]
        s += user("Plan for: " + question)
        forks = s.fork(branches)
        forks += assistant(gen("plan", max_tokens=8, temperature=0.9))
        return forks

    def execute(s, branches):  # type: ignore[no-untyped-def]
        s += user("Carry out this plan.")
        forks = s.fork(branches)
        forks += assistant(gen("solution", max_tokens=8, temperature=0.9))
        return forks

    def grade(s):  # type: ignore[no-untyped-def]
        s += user("Grade it from 0 to 9.")
        s += assistant(gen("score", regex="[0-9]", max_tokens=2))

    @function
    def tree(s, question, branches):  # type: ignore[no-untyped-def]
        solutions = []
        for plan in propose(s, question, branches):
            for solution in execute(plan, branches):
                grade(solution)
                solutions.append(solution)
        best = max(solutions, key=lambda each: int(each["score"]))
        s += assistant("The best: " + best["solution"])
        return [each["score"] for each in solutions]

    states = tree.run_batch([{"question": q, "branches": 2} for q in QUESTIONS], num_threads=3)
    for state in states:
        assert len(state.ret_value) == 4
        assert all(len(score) == 1 and score.isdigit() for score in state.ret_value)
        assert state.messages()[-1]["content"].startswith("The best: ")


def test_an_essay_that_is_judged_from_several_sides(backend: sgl.Runtime) -> None:
    @function
    def judge(s, essay):  # type: ignore[no-untyped-def]
        s += system("You judge essays.")
        s += user("Essay: " + essay)
        sides = ["clarity", "style", "evidence"]
        forks = s.fork(len(sides))
        for fork, side in zip(forks, sides, strict=True):
            fork += assistant("About " + side + ": " + gen("judgement", max_tokens=8))
        forks.join()
        s += assistant(
            "Judgements:\n" + "\n".join(s["judgement"]) + "\nGrade: " + gen("grade", choices=["A", "B", "C"])
        )

    state = judge.run(essay="Lamps are red.", temperature=0)
    assert len(state["judgement"]) == 3
    assert all(each in state.text() for each in state["judgement"])
    assert state["grade"] in "ABC"


def test_answers_that_begin_with_each_of_the_likeliest_tokens(backend: sgl.Runtime) -> None:
    @function
    def decode(s, question, k):  # type: ignore[no-untyped-def]
        s += user("Question: " + question + "\nAnswer:")
        s += assistant_begin()
        first, forks = s.fork(1)[0], s.fork(k)
        first += gen("top", max_tokens=0, return_logprob=True, top_logprobs_num=k, return_text_in_logprobs=True)
        tokens = first.get_meta_info("top")["output_top_logprobs"][0]
        for fork, (_, token_id, text) in zip(forks, tokens, strict=True):
            fork += [token_id] if text else ""
            fork += gen("answer", temperature=0, max_tokens=6, return_logprob=True, top_logprobs_num=2, ignore_eos=True)
        forks.join()
        gaps = []
        for fork in forks:
            pairs = fork.get_meta_info("answer")["output_top_logprobs"]
            gaps.append(sum(math.exp(one[0]) - math.exp(two[0]) for one, two in pairs) / len(pairs))
        s["gaps"], s["texts"] = gaps, [fork.messages() or fork.text() for fork in forks]
        s["firsts"] = [text for _, _, text in tokens]

    state = decode.run(question="How much is the lamp?", k=4)
    assert len(state["answer"]) == 4
    assert all(0 <= gap <= 1 for gap in state["gaps"])
    assert len(set(state["firsts"])) == 4


def test_a_streamed_answer(backend: sgl.Runtime) -> None:
    @function
    def ask(s, question):  # type: ignore[no-untyped-def]
        s += system(CATALOG)
        s += user(question)
        s += assistant(gen("answer", max_tokens=12))

    expected = ask.run(QUESTIONS[0], temperature=0)
    state = ask.run(QUESTIONS[0], temperature=0, stream=True)
    assert "".join(state.text_iter()) == expected.text()
    chunks = list(ask.run(QUESTIONS[0], temperature=0, stream=True).text_iter("answer"))
    assert "".join(chunks) == expected["answer"]
    assert len(chunks) > 1

    async def several() -> list[str]:
        async def one(question: str) -> str:
            found = ask.run(question, temperature=0, stream=True)
            return "".join([chunk async for chunk in found.text_async_iter("answer")])

        return await asyncio.gather(*map(one, QUESTIONS))

    assert asyncio.run(several()) == [
        state["answer"] for state in ask.run_batch([(q,) for q in QUESTIONS], temperature=0)
    ]


def test_a_constrained_text_streams_without_what_ends_it(backend: sgl.Runtime) -> None:
    @function
    def number(s):  # type: ignore[no-untyped-def]
        s += "The number of days in a year is " + sgl.gen_int("days", max_tokens=6) + " days."

    for _ in range(3):
        state = number.run(stream=True)
        assert "".join(state.text_iter("days")) == state["days"]
        assert "".join(number.run(stream=True, temperature=0).text_iter()) == number.run(temperature=0).text()
