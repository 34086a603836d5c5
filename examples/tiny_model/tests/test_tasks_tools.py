"""Tool calls name a listed tool and take their arguments from the request."""

import json
import re
from itertools import islice, product

import pytest
from tiny_model.corpus.kinds import SLOT
from tiny_model.corpus.tasks_tools import FILLS, HELD_RUNS, THEMES, TOOLS, Tool, calls, tool_call
from tiny_model.corpus.tools_requests import WORDINGS, request_by, request_for
from tiny_model.corpus.words import Draw, choices


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_call_names_a_listed_tool_and_its_parameters(split: str) -> None:
    draw = Draw(13, split)  # type: ignore[arg-type]
    for _ in range(1500):
        messages = tool_call(draw)
        turns = [message for message in messages if message[0] != "system"]
        for (_, request), (_, answer) in zip(turns[::2], turns[1::2], strict=True):
            if re.match("(Tool result|Result|The tool returned): ", request):
                [(key, value)] = json.loads(request.split(": ", 1)[1]).items()
                assert answer == f"The {key} is {value}."
                continue
            call = json.loads(answer)
            assert list(call) == ["name", "arguments"]
            line = next(line for line in messages[0][1].split("\n") if re.search(rf"(?<!\w){call['name']}[(\":]", line))
            for key, value in call["arguments"].items():
                assert key in line
                assert str(value) in request, (value, request)


def test_there_are_many_tools_with_their_own_requests() -> None:
    assert len({tool.name for tool in TOOLS}) == len(TOOLS) >= 60
    for tool in TOOLS:
        assert len(tool.known) >= 5
        assert len(tool.held) >= 2
        assert not set(tool.known) & set(tool.held)
        assert len(tool.others) == len(tool.parameters)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_way_to_say_a_request_tells_each_argument_once(tool: Tool) -> None:
    draw = Draw(2)
    values = {key: FILLS[fill](draw) for key, fill in tool.parameters}
    for request in (*tool.known, *tool.held):
        for ways in islice(product(*choices(request)), 500):
            said = "".join(ways)
            assert sorted(SLOT.findall(said)) == sorted(values)
            assert "  " not in said
            assert not re.search(r"[\[\]]| [.,?!]", said)
            assert all(str(value) in said.format_map(values) for value in values.values())


def runs(text: str) -> set[tuple[str, ...]]:
    """All runs of five words or placeholders."""
    parts = [part.strip(".,?!:").lower() for part in text.split()]
    return {tuple(parts[index : index + 5]) for index in range(len(parts) - 4)}


def test_held_out_requests_are_new_but_their_words_are_known() -> None:
    known = [said for tool in TOOLS for request in tool.known for said in sayings(request)]
    vocabulary = {word for said in known for word in re.findall(r"[a-z']+", said.lower())}
    for tool in TOOLS:
        trained = {run for request in tool.known for said in sayings(request) for run in runs(said)}
        for request in tool.held:
            assert not runs(request) & trained, request
            assert set(re.findall(r"[a-z']+", request.lower())) <= vocabulary, request


def sayings(request: str) -> list[str]:
    return ["".join(ways) for ways in islice(product(*choices(request)), 500)]


def test_a_list_often_holds_tools_of_one_theme() -> None:
    themes = {
        name: index for index, theme in enumerate(THEMES) for tool in theme for name in (tool.name, *tool.other_names)
    }
    draw, alike = Draw(4), 0
    for _ in range(400):
        found = {themes.get(call.name, -index) for index, call in enumerate(calls(draw), 1)}
        alike += len(found) == 1
    assert alike > 60


def spellings(tool: Tool) -> dict[str, tuple[str, ...]]:
    return {key: (key, *others) for (key, _), others in zip(tool.parameters, tool.others, strict=True)}


def test_every_tool_has_clauses_of_its_own_parameters() -> None:
    assert set(WORDINGS) == {tool.name for tool in TOOLS}
    for tool in TOOLS:
        told = WORDINGS[tool.name]
        for line in (*told.do, *told.noun, *told.say, *told.adjuncts):
            for ways in product(*choices(line)):
                said = "".join(ways)
                assert set(SLOT.findall(said)) <= {key for key, _ in tool.parameters}, said
                assert not re.search(r"[\[\]/]|  | [.?!]", said), said


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_composed_request_tells_each_argument_once_and_has_no_run_of_a_held_one(tool: Tool) -> None:
    draw, fills = Draw(3), dict(tool.parameters)
    held = {run for each in TOOLS for request in each.held for said in sayings(request) for run in runs(said)}
    found = {request_for(draw, WORDINGS[tool.name], spellings(tool), fills, HELD_RUNS) for _ in range(200)}
    assert len(found) > 80
    for request in found:
        assert sorted(SLOT.findall(request)) == sorted(fills), request
        assert not runs(request) & held, request
        assert not re.search(r"  |,,| [.,:?!]|[.?!][.,?!]|\(\(", request), request


def test_a_request_by_name_tells_the_name_and_every_argument() -> None:
    draw, arguments = Draw(4), {"first_day": "Monday", "bilo": 27.5, "city": "oslo"}
    for deed in (None, "paint the lamp"):
        for _ in range(500):
            request = request_by(draw, "gurtly", deed, arguments)
            assert all(part in request.lower() for part in (deed or "gurtly", "city", "bilo")), request
            assert all(part in request for part in ("Monday", "27.5", "oslo")), request
            assert deed or "gurtly" in request, request
            assert not re.search(r"  |,,|[{}]", request), request


def test_training_alone_puts_requests_together() -> None:
    known = {said for tool in TOOLS for request in tool.held for said in sayings(request)}
    assert known == {request for tool in TOOLS for request in tool.held}  # held requests have no choices
    draw = Draw(8, "train", wordings="test")
    names = {tool.name: tool for tool in TOOLS}
    patterns = {
        name: [re.sub(r"\\\{\w+\\\}", ".+", re.escape(held).replace(r"\ ", " ")) for held in tool.held]
        for name, tool in names.items()
    }
    checked = 0
    for call in (call for _ in range(100) for call in calls(draw)):
        if call.name in patterns:
            checked += 1
            assert any(re.search(each.rstrip(".!?\\"), call.request, re.I) for each in patterns[call.name]), call
    assert checked > 100
