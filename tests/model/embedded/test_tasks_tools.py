"""Tool calls name a listed tool and take their arguments from the request."""

import json
import re

import pytest

from rtlang.model.embedded.tasks_tools import FILLS, TOOLS, tool_call
from rtlang.model.embedded.words import Draw


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
    assert len({tool.name for tool in TOOLS}) == len(TOOLS) >= 30
    draw = Draw(1)
    for tool in TOOLS:
        values = {key: FILLS[fill](draw) for key, fill in tool.parameters}
        assert len(tool.known) >= 3
        assert not set(tool.known) & set(tool.held)
        for request in (*tool.known, *tool.held):
            assert all(str(value) in request.format_map(values) for value in values.values())
