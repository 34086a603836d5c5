"""Every example runs as it stands, on the model that comes with the package, and prints what it promises."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import rtlang as rt
from rtlang.cassette.file import MAGIC, MAKER
from rtlang.cassette.records import decode_records
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def _next_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """As scripts, the examples find `options.py` in their own folder."""
    monkeypatch.syspath_prepend(EXAMPLES)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with rt.Runtime() as runtime, running_server(runtime, ServeConfig(port=0)) as url:
        yield url


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their annotations there
    spec.loader.exec_module(module)
    return module


def output_of(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr("sys.argv", [name, *arguments])
    load(name).main()
    return capsys.readouterr().out


def test_character_prints_a_sheet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = output_of("character", capsys, monkeypatch)
    assert re.match(r"Mira, \d+, pilot from Oslo: \w+, \w+", out)


def test_sentiment_labels_every_review(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = output_of("sentiment", capsys, monkeypatch).splitlines()
    assert [line.split()[0] for line in lines] == ["positive", "negative", "positive", "negative"]
    assert all(re.search(r"\( *\d+%\)", line) for line in lines)


def test_tree_of_thought_ends_with_an_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("tree_of_thought", capsys, monkeypatch)
    assert re.search(r"answer: \d+", out)
    share = re.search(r"(\d+)% of the prompt tokens were already computed", out)
    assert share is not None
    assert int(share[1]) >= 50


def test_the_beam_search_is_drawn_from_its_events(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = output_of("beam_search", capsys, monkeypatch, "--html", f"{tmp_path}/tree.html")
    *rows, last = out.splitlines()
    found = [re.fullmatch(r" *(-\d+\.\d+) ([> ]) ( *)(['\"].*['\"])", row) for row in rows]
    steps = [(len(each[3]) // 4, each[2] == ">", float(each[1]), each[4]) for each in found if each is not None]
    assert len(steps) == len(rows) == 3 + 6 + 6
    assert [sum(is_kept for depth, is_kept, _, _ in steps if depth == each) for each in range(3)][2] == 0
    ends = [step for step in steps if step[0] == 2]
    assert last.startswith("=> ")
    assert last.endswith(max(ends, key=lambda step: step[2])[3].strip("'\""))
    page = (tmp_path / "tree.html").read_text(encoding="utf-8")
    assert page.count("<div") == 15
    again = output_of("beam_search", capsys, monkeypatch)
    assert again == out  # the seed gives every fork its own noise, the same each time


def test_chat_streams_an_answer_to_every_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("chat", capsys, monkeypatch)
    assert out.count("> ") == 4
    assert re.search(r"> How much is the lamp\?\nThe lamp costs \d+ dollars", out)


def test_extract_reads_every_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = output_of("extract", capsys, monkeypatch)
    rows = re.findall(r"^ *(\d+) x (\w[\w ]*?) +([\d.]+)  .+, \w+", out, re.MULTILINE)
    assert [(int(count), float(price)) for count, _, price in rows] == [(12, 34.5), (3, 8), (25, 1.75), (6, 15)]


def test_extract_takes_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "orders.txt"
    path.write_text("Please send 7 blue lamps to Ada in Rome. The price is 12 dollars each.\n\n")
    assert re.search(r"^ *7 x ", output_of("extract", capsys, monkeypatch, str(path)), re.MULTILINE)


def test_the_websocket_client_streams_three_stories(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("websocket_client", capsys, monkeypatch, address)
    stories = re.findall(r"^(.+) \((\d+) pieces\): (.+)$", out, re.MULTILINE)
    assert {about for about, _, _ in stories} == {"a shy fox", "a brave robot", "a dragon named Brix"}
    assert all(int(count) > 10 and len(text) > 80 for _, count, text in stories)


def test_the_agent_calls_a_tool_and_reads_its_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("agent", capsys, monkeypatch, "--model", "rtlang:tiny", "How much is the lamp?")
    roles = [line.partition(":")[0] for line in out.splitlines()]
    assert roles[:4] == ["system", "user", "assistant", "tool"]
    assert re.search(r'assistant: \{"name": "(look_up|order|delivery)", "arguments"', out)
    assert re.search(r'tool: \{"(price|ordered|item|error)": ', out)
    assert out.splitlines()[-1].startswith("=> ")


def test_the_agent_tells_the_model_what_went_wrong() -> None:
    agent = load("agent")
    call = rt.ToolCall("order", {"item": agent.Item.MUG, "quantity": 1}, {}, function=agent.order)
    assert agent.result_of(call) == '{"error": "ValueError: 1 pieces of mug are not in stock"}'


@pytest.mark.parametrize("where", ["local", "server"])
def test_rag_computes_less_with_shared_documents_first(
    where: str, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("rag", capsys, monkeypatch, *(("--connect", address) if where == "server" else ()))
    written, free = (int(count) for count in re.findall(r"(\d+) of \d+ prompt tokens were already computed", out))
    assert free > written
    for answer in ("40 dollars", "green", "We have 9", "31 dollars", "sold out", "95 dollars", "white", "We have 40"):
        assert answer in out


def test_the_judge_names_the_best_answer_in_one_submission(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("judge", capsys, monkeypatch)
    grades = re.findall(r"^([> ]) +(\d+) points: correct ([1-5]), clear ([1-5]), short ([1-5])$", out, re.MULTILINE)
    assert len(grades) == 4
    totals = [int(total) for _, total, *_ in grades]
    assert totals == [sum(map(int, scores)) for _, _, *scores in grades]
    assert [mark for mark, *_ in grades].index(">") == totals.index(max(totals))
    found = re.search(r"^(\d+) graph breaks, (\d+) of (\d+) prompt tokens cached$", out, re.MULTILINE)
    assert found is not None
    assert int(found[1]) == 0
    assert int(found[2]) > 0.8 * int(found[3])


def test_best_of_generates_fewer_tokens_and_decides_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("best_of", capsys, monkeypatch)
    counts = re.findall(r"\((\d+) of (\d+) tokens generated, (\d+)% saved\)", out)
    assert len(counts) == 3
    assert all(int(generated) <= int(whole) for generated, whole, _ in counts)
    assert int(counts[0][0]) < int(counts[0][1])
    assert int(counts[2][0]) < int(counts[2][1])
    example = load("best_of")
    with rt.Runtime() as runtime:
        for program in (example.likeliest, example.majority):
            assert program.run(True, runtime=runtime).value == program.run(False, runtime=runtime).value


@pytest.mark.long
def test_an_extraction_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    cassette = tmp_path / "killed.jsonl.cassette"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "kernels", "grammars"))
    }

    def command(out: Path) -> list[str]:
        return [sys.executable, str(EXAMPLES / "extract_many.py"), "--rows", "100", "--out", str(out)]

    def counts(out: Path) -> tuple[int, int, int]:
        done = subprocess.run(command(out), env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        found = re.search(r"100 rows, (\d+) with an error\n(\d+) were there, (\d+) are new\n$", done.stdout)
        assert found is not None, done.stdout
        return int(found[1]), int(found[2]), int(found[3])

    running = subprocess.Popen(command(killed), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while (not cassette.exists() or cassette.stat().st_size < 15_000) and running.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert running.poll() is None, "it ended before it could be killed"
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert not killed.exists()  # no half of an output
    data = cassette.read_bytes()
    finished = sum(1 for _ in decode_records(data, MAGIC, MAKER, AssertionError)) - 1  # the first one names the model
    assert 10 < finished < 95

    assert counts(killed) == (2, finished, 100 - finished)  # no finished row is computed again
    assert counts(whole) == (2, 0, 100)
    assert killed.read_bytes() == whole.read_bytes()
    lines = [json.loads(line) for line in whole.read_text(encoding="utf-8").splitlines()]
    assert [line["row"] for line in lines] == list(range(100))
    assert [line["row"] for line in lines if "error" in line] == [49, 99]
    texts = load("extract_many").texts(100)
    right = [f" {line.get('quantity')} " in text for line, text in zip(lines, texts, strict=True)]
    assert sum(right) > 90
