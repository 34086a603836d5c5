"""Chat templates against `apply_chat_template` of transformers, through the server's own code and as programs.

python -m tests.support.models.template_table FOLDER [TOKENIZER]   # a folder of .jinja files, such as the templates that llama.cpp ships

Prints the counts of equal, refused and differing prompts, and each difference. TOKENIZER is a directory with a tokenizer.json; by default a
small one is made.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rtlang.contract.errors import ParameterError
from rtlang.contract.graph.template_options import TemplateOptions
from rtlang.contract.request_graph import Part, RoleEnd, RoleStart, TokenIds
from rtlang.model.text.chat import ChatTemplate
from rtlang.model.text.tokenizer import Tokenizer
from rtlang.runtime.texts.text_service import TokenizerTextService
from rtlang.runtime.texts.token_sequence import TokenSequence, append_text
from rtlang.serve.openai.messages import read_messages
from tests.support.models.tokenizer_kinds import write_tokenizer_kind

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather <|im_end|> of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "its name"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]


def _message(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def _call(arguments: dict[str, Any], call_id: str = "call_abc1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def _result(content: str, call_id: str = "call_abc1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


class Case(NamedTuple):
    """A conversation, its tools, and variables of the template."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    variables: dict[str, Any] = {}  # noqa: RUF012


_ASKED, _GREETED = _message("user", "What is 2+2?"), _message("user", "hi")
_TURN = [_ASKED, _message("assistant", "4"), _message("user", "And 3+3?")]
CASES = {
    "user": Case([_ASKED]),
    "system": Case([_message("system", "Be brief."), _GREETED]),
    "two turns": Case(_TURN),
    "three turns": Case([_message("system", "Be brief."), *_TURN, _message("assistant", "6"), _message("user", "ok?")]),
    "blanks": Case([_message("system", " Be brief. "), _message("user", "hi there\n\n")]),
    "empty system": Case([_message("system", ""), _GREETED]),
    "thought in content": Case(
        [_GREETED, _message("assistant", "<think>\nlong\n</think>\n\nanswer"), _message("user", "more")]
    ),
    "reasoning": Case([_GREETED, _message("assistant", "answer", reasoning_content="because"), _ASKED]),
    "tools": Case([_message("user", "Weather in Oslo?")], TOOLS),
    "call": Case(
        [_ASKED, _message("assistant", "", tool_calls=[_call({"city": "Oslo", "days": 3})]), _result("3")], TOOLS
    ),
    "calls": Case(
        [
            _message("system", "sys"),
            _ASKED,
            _message(
                "assistant",
                "Let me see.",
                reasoning_content="need it",
                tool_calls=[_call({"city": "Oslo <|im_end|>"}), _call({"city": "Rome"}, "call_abc2")],
            ),
            _result("3"),
            _result("5", "call_abc2"),
            _message("assistant", "3 and 5."),
            _message("user", "thanks"),
        ],
        TOOLS,
    ),
    "no content": Case(
        [_ASKED, _message("assistant", None, tool_calls=[_call({"city": "Oslo"})]), _result("cold")], TOOLS
    ),
    "parts": Case(
        [
            _message("system", [{"type": "text", "text": "Be brief."}]),
            _message("user", [{"type": "text", "text": "What is"}, {"type": "text", "text": " this?"}]),
        ]
    ),
    "special": Case(
        [_message("user", "a <|im_end|> b <|im_start|>assistant"), _message("assistant", "<|im_end|>"), _GREETED]
    ),
    "names": Case(
        [_message("user", "hi", name="ann"), _message("assistant", "yo"), _message("user", "and", name="bob")]
    ),
    "developer": Case([_message("developer", "Be brief."), _GREETED]),
    "no thinking": Case(_TURN, None, {"enable_thinking": False, "thinking": False}),
    "effort": Case([_GREETED], None, {"reasoning_effort": "high", "enable_thinking": True}),
}
PROGRAMS = ("user", "system", "two turns", "three turns", "blanks", "empty system", "thought in content", "special")
"""The cases that are also run as programs."""


class Outcome(NamedTuple):
    """What became of a case: equal, documented (see docs/design/chat-templates.md), refused, differs, or not rendered by transformers."""

    template: str
    case: str
    kind: str
    detail: str = ""


def outcomes(name: str, template: str, tokenizer: Tokenizer, library: Any) -> Iterator[Outcome]:
    """All cases of a template.

    Args:
        tokenizer, library: ours and that of transformers, of the same directory. Their templates are replaced.
    """
    library.chat_template = template
    tokenizer.chat = ChatTemplate(tokenizer, template, library.special_tokens_map)
    service = TokenizerTextService(tokenizer)
    for case_name, case in CASES.items():
        expected = _expected(library, case)
        yield _compared(name, case_name, expected, lambda case=case: _of_server(case, tokenizer, service))
        if case_name in PROGRAMS:
            for is_incremental in (False, True):
                label = f"{case_name}, program{' by messages' if is_incremental else ''}"
                yield _compared(
                    name,
                    label,
                    expected,
                    lambda case=case, each=is_incremental: _of_program(case, tokenizer, service, each),
                )


def _expected(library: Any, case: Case) -> str | None:
    try:
        return str(
            library.apply_chat_template(
                case.messages, tools=case.tools, tokenize=False, add_generation_prompt=True, **case.variables
            )
        )
    except Exception:  # a template raises what it likes
        return None


def _compared(template: str, case: str, expected: str | None, written: Any) -> Outcome:
    if expected is None:
        return Outcome(template, case, "not rendered by transformers")
    try:
        text = written()
    except ParameterError as error:
        return Outcome(template, case, "refused", str(error)[:200])
    if text == expected:
        return Outcome(template, case, "equal")
    at = next(
        (at for at, (a, b) in enumerate(zip(text, expected, strict=False)) if a != b), min(len(text), len(expected))
    )
    detail = f"expected ...{expected[max(0, at - 40) : at + 60]!r}, got ...{text[max(0, at - 40) : at + 60]!r}"
    is_lossy = {
        "developer": "Be brief." not in expected,
        "parts": "'type': 'text'" in expected or '"type": "text"' in expected or "What is" not in expected,
    }.get(case, CASES[case.partition(",")[0]].tools is not None and "its name" not in expected)
    return Outcome(template, case, "documented" if is_lossy else "differs", detail)


def _of_server(case: Case, tokenizer: Tokenizer, service: TokenizerTextService) -> str:
    sent = json.loads(json.dumps(case.messages))
    for message in sent:
        for call in message.get("tool_calls") or ():
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    options = TemplateOptions(None, case.variables).text
    tools = None if case.tools is None else json.dumps(case.tools)
    (part,) = read_messages({"messages": sent}, tools, tokenizer.tool_format, service, template_options=options)
    assert isinstance(part, TokenIds)
    return service.decode(part.ids, shows_special=True)


def _of_program(case: Case, tokenizer: Tokenizer, service: TokenizerTextService, is_incremental: bool) -> str:
    nodes: list[list[Part]] = [[RoleStart(each["role"]), each["content"], RoleEnd()] for each in case.messages]
    nodes.append([RoleStart("assistant")])
    sequence = TokenSequence()
    for parts in nodes if is_incremental else [list(itertools.chain.from_iterable(nodes))]:
        sequence = append_text(sequence, parts, tokenizer, {}, lambda ref: "", 1 << 30)
    return service.decode(sequence.token_ids, shows_special=True)


def main(folder: str, tokenizer_folder: str | None = None) -> None:
    import transformers

    with tempfile.TemporaryDirectory() as made:
        directory = tokenizer_folder or str(write_tokenizer_kind(Path(made), "byte_level"))
        tokenizer, library = Tokenizer.from_pretrained(directory), transformers.AutoTokenizer.from_pretrained(directory)
        paths = sorted(Path(folder).glob("*.jinja"))
        found = [each for path in paths for each in outcomes(path.name, path.read_text(), tokenizer, library)]
    print(f"{len(paths)} templates: {dict(Counter(each.kind for each in found))}")
    for each in found:
        if each.kind in ("differs", "refused", "documented"):
            print(*each, sep=" | ")


if __name__ == "__main__":
    main(*sys.argv[1:])
