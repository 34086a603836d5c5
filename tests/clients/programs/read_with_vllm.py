"""Reads texts of calls with the parsers of vLLM: lines of JSON from standard input to standard output.

    {"parser": "glm47", "tools": [...], "marks": ["<tool_call>", ...], "text": "..."}  ->  [["name", {arguments}], ...] or "why not"

The tokenizer is one that has the marks of the format and single characters; the parsers look nothing else up. That of
harmony reads tokens of its own encoding, whose file is in the folder TIKTOKEN_ENCODINGS_BASE.
"""

import json
import logging
import re
import sys

for name in (
    "torchvision",
    "torchaudio",
    "torchcodec",
):  # of no use here, and built for another torch in some environments
    sys.modules[name] = None

logging.disable(logging.CRITICAL)

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.entrypoints.openai.parser.harmony_utils import get_encoding  # noqa: E402
from vllm.parser import ParserManager  # noqa: E402
from vllm.tool_parsers import ToolParserManager  # noqa: E402


class Marks:
    """A tokenizer whose tokens are marks and characters."""

    chat_template = None
    eos_token_id = 0

    def __init__(self, marks):
        self.init_kwargs = {}
        self.vocab = {mark: 0x120000 + i for i, mark in enumerate(marks)}
        self.names = {number: mark for mark, number in self.vocab.items()}
        self.pattern = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))) + "|.", re.DOTALL)
        self.all_special_tokens = list(marks)
        self.all_special_ids = list(self.names)

    def get_vocab(self):
        return dict(self.vocab)

    def encode(self, text, **options):
        return [self.vocab.get(piece, ord(piece[0])) for piece in self.pattern.findall(text)]

    def decode(self, ids, **options):
        ids = [ids] if isinstance(ids, int) else ids
        return "".join(self.names.get(each) or chr(each) for each in ids)

    def convert_tokens_to_ids(self, tokens):
        return self.vocab.get(tokens) if isinstance(tokens, str) else [self.vocab.get(each) for each in tokens]

    def convert_ids_to_tokens(self, ids, **options):
        return [self.names.get(each) or chr(each) for each in ids]

    def tokenize(self, text, **options):
        return self.pattern.findall(text)


def read_whole(case, request):
    """The calls that vLLM's parser of whole outputs reads, for formats that have no parser of calls alone."""
    is_harmony = case["parser"] == "openai"
    made = ParserManager.get_parser(case["parser"], enable_auto_tools=True, is_harmony=is_harmony)
    ids = get_encoding().encode(case["text"], allowed_special="all") if is_harmony else ()
    parser = made(Marks(case["marks"]), request.tools)
    _, _, calls = parser.parse(case["text"], request, enable_auto_tools=True, model_output_token_ids=ids)
    return [[each.name, json.loads(each.arguments or "{}")] for each in calls or []]  # Cohere's has no text for {}


def read(case):
    request = ChatCompletionRequest(
        model="m", messages=[{"role": "user", "content": "x"}], tools=case["tools"], tool_choice="auto"
    )
    if case["parser"] in ("openai", "cohere_command3", "cohere_command4"):
        return read_whole(case, request)
    parser = ToolParserManager.get_tool_parser(case["parser"])(Marks(case["marks"]), request.tools)
    found = parser.extract_tool_calls(case["text"], request)
    return [[each.function.name, json.loads(each.function.arguments)] for each in found.tool_calls]


for line in sys.stdin:
    try:
        answer = read(json.loads(line))
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"[:500]
    print(json.dumps(answer), flush=True)
