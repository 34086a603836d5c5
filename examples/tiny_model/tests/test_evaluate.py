"""The evaluation on the model of the package: forms hold, figures repeat, and the command writes what it says."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_model.evaluation import evaluate as embedded
from tiny_model.evaluation.scores import Judge
from tiny_model.evaluation.tasks import KNOWN, TASKS, Form, Question, Task, questions

import rtlang as rt

BY_KEY = {task.key: task for task in TASKS}


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.Runtime]:
    with rt.Runtime(dtype="float32", num_threads=1, cache_bytes=64 << 20) as running:
        yield running


def test_a_constrained_answer_has_its_form(runtime: rt.Runtime) -> None:
    for key in ("sum", "sentiment", "sheet"):
        asked = questions(BY_KEY[key], KNOWN, 3)
        for question, text in zip(
            asked, embedded.answers(runtime, BY_KEY[key], asked, is_constrained=True), strict=True
        ):
            assert question.form is not None
            if question.form.options is not None:
                assert text in question.form.options
            elif question.form.schema is not None:
                assert list(json.loads(text)) == list(json.loads(question.expected))
            else:
                assert text.isdigit()


def test_a_plain_text_is_continued_to_the_end_of_its_line(runtime: rt.Runtime) -> None:
    asked = [
        Question([("text", "Review: I love it.\nSentiment: positive\nReview: I hate it.\nSentiment: ")], "negative")
    ]
    (text,) = embedded.answers(runtime, BY_KEY["sentiment"], asked, is_constrained=False)
    assert text
    assert "\n" not in text


def test_answers_do_not_depend_on_who_else_is_asked(runtime: rt.Runtime) -> None:
    asked = questions(BY_KEY["next-step"], KNOWN, 4)
    together = embedded.answers(runtime, BY_KEY["next-step"], asked, is_constrained=False)
    alone = [embedded.answers(runtime, BY_KEY["next-step"], [each], is_constrained=False)[0] for each in asked]
    assert together == alone


def test_a_question_that_is_refused_counts_as_wrong(runtime: rt.Runtime, caplog: pytest.LogCaptureFixture) -> None:
    asked = [Question([("user", "x " * 5000)], "x", Form(regex="x")), Question([("user", "Hi")], "x")]
    task = Task("t", "a task", lambda draw: asked[0], Judge.EXACT)
    assert embedded.answers(runtime, task, asked, is_constrained=False)[0] == ""
    assert "counted as wrong" in caplog.text


def test_the_rows_of_a_task_repeat(runtime: rt.Runtime) -> None:
    rows = embedded.rows_of(runtime, BY_KEY["sum"], 4)
    assert [row.draws for row in rows] == list(BY_KEY["sum"].draws)
    assert all(row.constrained is not None and row.constrained.num_asked == 4 for row in rows)
    assert rows == embedded.rows_of(runtime, BY_KEY["sum"], 4)


def test_a_vote_is_compared_with_a_sample_of_the_same_temperature(runtime: rt.Runtime) -> None:
    voted = embedded.votes(runtime, 2)
    assert voted.greedy.num_asked == 2
    assert tuple(row.temperature for row in voted.by_temperature) == embedded.VOTE_TEMPERATURES
    assert all((row.one_sample.num_asked, row.vote.num_asked) == (2, 2) for row in voted.by_temperature)
    assert voted == embedded.votes(runtime, 2)
    assert f"a vote of {embedded.VOTES} such samples" in str(voted)
    assert str(voted).count("\n| ") == 1 + len(embedded.VOTE_TEMPERATURES)


def test_the_command_prints_the_table_and_writes_all_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    embedded.main(["--count", "2", "--tasks", "sum", "--threads", "1", "--markdown", "--json", str(file)])
    printed = capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert printed.count("| sum, product or quotient |") == 2 == len(figures["rows"])
    assert figures["count"] == figures["rows"][0]["free"]["num_asked"] == 2
    assert figures["checkpoint"] == "rtlang:tiny"
    assert figures["votes"] is None


def test_an_unknown_task_or_count_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--tasks", "nothing"], ["--count", "0"]):
        with pytest.raises(SystemExit):
            embedded.main(wrong)
    assert "nothing" in capsys.readouterr().err


def test_what_could_not_be_measured_or_written_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, code, reason in (
        (["--json", str(tmp_path)], 2, "no file can be there"),
        (["--json", str(tmp_path / "nowhere" / "x.json")], 2, "no file can be there"),
        (["--checkpoint", str(tmp_path / "nowhere")], 1, "no such directory"),
        (["--dtype", "int9"], 1, "dtype = 'int9'"),
    ):
        with pytest.raises(SystemExit) as ended:
            embedded.main(wrong)
        assert ended.value.code == code
        assert reason in capsys.readouterr().err
