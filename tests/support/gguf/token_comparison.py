"""Compares tokenizers read from GGUF files with llama.cpp's, token by token.

    python -m tests.support.gguf.token_comparison --libraries FOLDER --texts 10000 model.gguf tokenizer/directory:qwen2 ...

FOLDER (or the variable RTLANG_TEST_LLAMA_CPP) has the shared libraries of llama.cpp; only its C functions are called, with the vocabulary
of a file and without its weights. A directory with tokenizer.json, or a model of SentencePiece, is first written as a GGUF file that has
only a vocabulary; `:NAME` is its pre-tokenizer. Texts that the two read differently on purpose (tokenizer_json.py) are counted, not
compared. llama.cpp aborts at a character that neither the vocabulary of a `llama` file nor its byte tokens have.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tokenizers

from rtlang.bench.baselines.llama_cpp_library import LlamaCpp, Vocabulary
from rtlang.model.loading.gguf_tokenizer.tokenizer_json import TokenizerParts, tokenizer_parts
from rtlang.model.text.tokenizer import Tokenizer
from tests.support.gguf.vocabularies import gguf_metadata, read_metadata, sentencepiece_metadata, write_vocabulary

LIBRARIES = "RTLANG_TEST_LLAMA_CPP"
_WORDS = [
    *("the", "quick", "don't", "We'll", "I'M", "it's", "naïve", "Größe", "123", "4567", "3.14"),
    *("HTTPServer", "snake_case", "camelCase", "x+y==z", "“quoted”", "—dash…", "and/or"),
]
_CODE = [
    "def add(a, b):\n    return a + b\n",
    "\tif (x != NULL && *p++ == '\\0') {\r\n\t\treturn -1;\r\n\t}\r\n",
    "SELECT * FROM t WHERE \"a\" = 'b';\n\n\n",
    "<div class='x'>&nbsp;</div>\n",
    "#include <stdio.h>\n/* 0x1F */ #version 330\n",
]
_SCRIPTS = [
    "Привет мир",
    "日本語のテキスト",
    "中文分词器",
    "한국어 문장",
    "مرحبا بالعالم",
    "שלום",
    "नमस्ते दुनिया",
    "สวัสดี",
    "Γειά σου",
    "ქართული",
]
_EMOJI = ["😀", "👩‍👩‍👧", "🏳️‍🌈", "🇩🇪", "👍🏽", "❤️", "✓", "™"]
_SPACES = [
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\u2003",
    "\x0b",
    "\x85",
    " " * 7,
    "\n" * 4,
    "\t" * 3,
    " \n ",
]
_ASSIGNED = [
    chr(code)
    for code in range(0x30000)
    if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co") and not 0x3400 <= code < 0xD7B0
]


def random_texts(count: int, seed: int, names: list[str]) -> Iterator[str]:
    """Texts of many kinds; `names` are of tokens that texts may look like."""
    dice = random.Random(seed)
    yield ""

    def part() -> str:
        kind = dice.randrange(12)
        if kind == 0:
            return "".join(dice.choices(_ASSIGNED, k=dice.randint(1, 6)))
        if kind == 1:
            return dice.choice(_CODE)
        if kind == 2:
            return dice.choice(_SCRIPTS)[: dice.randint(1, 12)]
        if kind == 3:
            return dice.choice(_EMOJI)
        if kind in (4, 5):
            return dice.choice(_SPACES) * dice.randint(1, 3)
        if kind == 6:
            return str(dice.randrange(10 ** dice.randint(1, 12)))
        if kind == 7 and names:
            name = dice.choice(names)
            return name if dice.random() < 0.5 else name[: dice.randint(0, len(name))]
        if kind == 8:
            return "".join(
                dice.choices("abcdefghijklmnopqrstuvwxyz'-_.,;:!?()[]{}<>|/\\@#$%^&*+=~`\"", k=dice.randint(1, 9))
            )
        return dice.choice([" ", ""]) + dice.choice(_WORDS)

    for _ in range(count - 1):
        yield "".join(part() for _ in range(dice.randint(1, 10)))


def encoding(parts: TokenizerParts) -> Callable[[str, bool], list[int]]:
    """Encodes a text that starts a sequence, with names of control tokens or without.

    By our tokenizer; by the `tokenizers` library if that is of words, which ours refuses.
    """
    if parts.content["model"]["type"] != "WordPiece":
        tokenizer = Tokenizer.from_parts(
            parts.content, parts.settings, source="a GGUF file", eos_token_ids=parts.eos_token_ids
        )
        return lambda text, special: tokenizer.encode(text, is_start=True, allow_special=special)
    library = tokenizers.Tokenizer.from_str(json.dumps(parts.content))

    def encode(text: str, special: bool) -> list[int]:
        library.encode_special_tokens = not special
        ids: list[int] = library.encode(text, add_special_tokens=False).ids
        return ids

    return encode


class Comparison:
    """One file in both programs."""

    def __init__(self, libraries: Path, path: str) -> None:
        self._llama = Vocabulary(LlamaCpp(libraries), Path(path))
        self.metadata = read_metadata(path)
        self.parts = tokenizer_parts(self.metadata, path)
        content = self.parts.content
        self._encode = encoding(self.parts)
        composed = json.dumps(content["normalizer"]) == '{"type": "NFC"}'
        self._normalize: Callable[[str], str] = (lambda text: unicodedata.normalize("NFC", text)) if composed else str
        self.names = [entry["content"] for entry in content["added_tokens"]]
        self._apart = [
            entry["content"] for entry in content["added_tokens"] if entry["content"] == "</s>" and not entry["special"]
        ]
        self.num_apart = 0

    def difference(self, text: str) -> str | None:
        """How the programs differ on a text, in words; None if they do not, or do so on purpose."""
        if any(name in text for name in self._apart):
            self.num_apart += 1
            return None
        for special in (False, True):
            ours = self._encode(text, special)
            theirs = self._llama.tokens(self._normalize(text), parse_special=special)
            if ours != theirs:
                return f"{text!r} {'with' if special else 'without'} control tokens\n  ours   {ours}\n  theirs {theirs}"
        return None

    def ends(self) -> str:
        """The tokens that end a text, and what differs in llama.cpp."""
        theirs = {index for index in range(len(self.metadata["tokenizer.ggml.tokens"])) if self._llama.is_end(index)}
        ours = self.parts.eos_token_ids

        def shown(ids: set[int] | frozenset[int]) -> str:
            names = self.metadata["tokenizer.ggml.tokens"]
            return ", ".join(f"{index} {names[index]}" for index in sorted(ids)) or "none"

        return f"ends: {shown(ours)}; only in llama.cpp: {shown(theirs - ours)}; only here: {shown(ours - theirs)}"


def _converted(source: Path, pre: str) -> dict[str, Any]:
    """The metadata of a file of SentencePiece, or of a directory with tokenizer.json."""
    if source.is_file():
        return sentencepiece_metadata(source.read_bytes())
    content, settings = (
        json.loads((source / name).read_text(encoding="utf-8")) for name in ("tokenizer.json", "tokenizer_config.json")
    )
    return gguf_metadata(content, settings, pre)


def main(arguments: list[str] | None = None) -> int:
    """Compare the given files; the number of texts that differ is the exit status, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "sources", nargs="+", metavar="FILE", help="GGUF file, directory with tokenizer.json, or model of SentencePiece"
    )
    parser.add_argument("--libraries", default=os.environ.get(LIBRARIES), help="folder of llama.cpp's shared libraries")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5, help="differences to print")
    options = parser.parse_args(arguments)
    if not options.libraries or not Path(options.libraries).is_dir():
        print(f"no libraries of llama.cpp: name their folder by --libraries or {LIBRARIES}; nothing compared")
        return 0
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, source in enumerate(options.sources):
            directory, _, pre = source.partition(":")
            path = directory
            if not directory.endswith(".gguf"):
                path = str(Path(folder) / f"{number}.gguf")
                write_vocabulary(Path(path), _converted(Path(directory), pre or "default"))
            compared = Comparison(Path(options.libraries), path)
            texts = random_texts(options.texts, options.seed, [name for name in compared.names if "unused" not in name])
            found = [difference for text in texts if (difference := compared.difference(text)) is not None]
            print(
                f"{source}: {len(found)} of {options.texts:,} texts differ, {compared.num_apart} left out; {compared.ends()}"
            )
            for difference in found[: options.show]:
                print(difference)
            failures += len(found)
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
