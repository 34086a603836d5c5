"""Texts for grammars: published ones that are installed beside the benchmarks, files from a folder, and random walks where there are none.

A text is short enough to be followed in a fraction of a second. The same arguments give the same texts.
"""

from __future__ import annotations

import ast
import json
import random
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from rtlang_grammars.api.rtlang_backend import RtlangGrammar

MIN_CHARS, MAX_CHARS = 40, 1500
_NUM_STEPS = 60
_PLAIN_SHARE = 0.9


def texts_of(name: str, count: int, folder: Path | None) -> list[str]:
    """Up to `count` texts of a grammar.

    Args:
        name: of a library grammar, or the stem of a GBNF file.
        folder: files in `folder/name/` are the texts where there is such a folder.
    """
    if folder is not None and (folder / name).is_dir():
        paths = sorted(path for path in (folder / name).iterdir() if path.is_file())
        return [path.read_text(encoding="utf-8") for path in paths[:count]]
    found: Iterable[str] = ()
    if name == "python3":
        found = _python_definitions(Path(sysconfig.get_path("stdlib")))
    elif name == "yaml_subset":
        found = _files(Path(sysconfig.get_path("purelib")), "*.y*ml")
    elif name in ("json", "json_arr"):
        is_array = name == "json_arr"
        found = (
            text for text in _json_documents(Path(sysconfig.get_path("purelib"))) if not is_array or text[0] == "["
        )
    return [text for text, _ in zip(found, range(count), strict=False)]


def _python_definitions(folder: Path) -> Iterator[str]:
    """Functions and classes of the standard library, one of each module."""
    for path in sorted(folder.glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="ignore")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list:
                text = (ast.get_source_segment(source, node) or "") + "\n"
                if 8 * MIN_CHARS <= len(text) <= MAX_CHARS:
                    yield text
                    break


def _files(folder: Path, pattern: str) -> Iterator[str]:
    for path in sorted(folder.rglob(pattern)):
        text = path.read_text(encoding="utf-8", errors="ignore") if path.is_file() else ""
        if MIN_CHARS <= len(text) <= MAX_CHARS:
            yield text


def _json_documents(folder: Path) -> Iterator[str]:
    """Objects and arrays of installed packages, in the spelling of `json.dumps`."""
    for text in _files(folder, "*.json"):
        try:
            document = json.loads(text)
        except ValueError:
            continue
        if isinstance(document, dict | list) and document:
            yield json.dumps(document, ensure_ascii=False)


def random_walks(grammar: RtlangGrammar, count: int) -> list[str]:
    """Texts of a grammar of this library, sampled with its masks and then completed.

    Args:
        grammar: it caches what it sees, so measure another object.
    """
    vocabulary = grammar.machine.index.vocabulary
    row = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    is_plain = np.array([text.isascii() and len(text) > 1 for text in vocabulary.token_bytes])
    is_end = np.zeros(len(is_plain), dtype=np.bool_)
    is_end[[token_id for token_id in vocabulary.eos_token_ids if token_id < len(is_end)]] = True
    found = []
    for seed in range(count):
        rng, matcher, tokens = random.Random(seed), grammar.matcher(), list[int]()
        while len(tokens) < _NUM_STEPS and not matcher.is_terminated:
            matcher.fill_bitmask(row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[: len(is_plain)])
            plain = allowed[is_plain[allowed]]
            longer = allowed[~is_end[allowed]]
            if len(plain) and rng.random() < _PLAIN_SHARE:
                allowed = plain
            elif len(longer):
                allowed = longer
            token = int(allowed[rng.randrange(len(allowed))])
            matcher.accept_token(token)
            tokens.append(token)
        tokens += matcher.shortest_completion(1 << 12) or []
        found.append(vocabulary.text_of(tokens).decode("utf-8", "ignore"))
    return [text for text in dict.fromkeys(found) if text]
