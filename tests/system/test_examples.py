"""Every example runs as it stands, on the model that comes with the package, and prints what it promises."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import running_server

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
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
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with rt.Runtime() as runtime, running_server(runtime, ServeConfig(port=0)) as url:
        out = output_of("websocket_client", capsys, monkeypatch, url)
    stories = re.findall(r"^(.+) \((\d+) pieces\): (.+)$", out, re.MULTILINE)
    assert {about for about, _, _ in stories} == {"a shy fox", "a brave robot", "a dragon named Brix"}
    assert all(int(count) > 10 and len(text) > 80 for _, count, text in stories)


def test_the_agent_calls_a_tool_and_reads_its_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = output_of("agent", capsys, monkeypatch, "--model", "rtlang:tiny", "How much is the lamp?")
    roles = [line.partition(":")[0] for line in out.splitlines()]
    assert roles[:4] == ["system", "user", "assistant", "tool"]
    assert re.search(r'assistant: \{"name": "(look_up|order)", "arguments"', out)
    assert re.search(r'tool: \{"(price|ordered|error)": ', out)
    assert out.splitlines()[-1].startswith("=> ")


def test_the_agent_tells_the_model_what_went_wrong() -> None:
    agent = load("agent")
    call = rt.ToolCall("order", {"item": agent.Item.MUG, "quantity": 1}, {}, function=agent.order)
    assert agent.result_of(call) == '{"error": "ValueError: 1 pieces of mug are not in stock"}'
