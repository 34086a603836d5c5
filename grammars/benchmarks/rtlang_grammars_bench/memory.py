"""Peak memory of a backend, measured in a fresh process that holds the vocabulary, the backend and nothing else.

The process reads its input from files, follows every instance like the speed benchmark, and prints its peak.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars_bench.rivals import create_engine

Encoded = list[tuple[Any, list[list[int]]]]
"""Schemas, and the tokens of each of their instances."""


def peak_megabytes(name: str, vocabulary: Vocabulary, rows: Encoded) -> int:
    """The peak of resident memory of a process that follows all instances with one backend.

    Raises:
        subprocess.CalledProcessError: the process failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        store(Path(directory), vocabulary, rows)
        command = [sys.executable, "-m", "rtlang_grammars_bench.memory", name, directory]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        return int(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def store(directory: Path, vocabulary: Vocabulary, rows: Encoded) -> None:
    """Write the input of the process."""
    lengths = np.array([len(text) for text in vocabulary.token_bytes], dtype=np.int32)
    (directory / "tokens").write_bytes(b"".join(vocabulary.token_bytes))
    np.save(directory / "lengths.npy", lengths)
    ends, specials = sorted(vocabulary.eos_token_ids), sorted(vocabulary.special_token_ids)
    about = {"ends": ends, "specials": specials, "vocab_size": vocabulary.vocab_size}
    (directory / "about.json").write_text(json.dumps(about))
    if vocabulary.tokenizer_json is not None:
        (directory / "tokenizer.json").write_text(vocabulary.tokenizer_json, encoding="utf-8")
    with (directory / "rows.jsonl").open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def load(directory: Path) -> Vocabulary:
    """Read the stored vocabulary."""
    about = json.loads((directory / "about.json").read_text())
    data, ends = (directory / "tokens").read_bytes(), np.cumsum(np.load(directory / "lengths.npy")).tolist()
    texts = tuple(data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True))
    path = directory / "tokenizer.json"
    text = path.read_text(encoding="utf-8") if path.exists() else None
    return Vocabulary(texts, frozenset(about["ends"]), frozenset(about["specials"]), about["vocab_size"], text)


def follow(name: str, directory: Path) -> int:
    """Follow all instances; returns the peak of resident memory of this process in MB."""
    vocabulary = load(directory)
    backend = create_engine(name, vocabulary)
    words = np.zeros(vocabulary.num_mask_words, dtype=np.int32)
    with (directory / "rows.jsonl").open() as file:
        for line in file:
            schema, texts = json.loads(line)
            try:
                grammar = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)))
            except GrammarError:
                continue
            for ids in texts:
                matcher = grammar.matcher()
                matcher.fill_bitmask(words)
                for token_id in ids:
                    if not matcher.accept_token(token_id):
                        break
                    matcher.fill_bitmask(words)
    return _peak()


def _peak() -> int:
    """Peak memory in MB. `getrusage`, which also covers the parent process, is used only where /proc is missing."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) >> 10


if __name__ == "__main__":
    print(follow(sys.argv[1], Path(sys.argv[2])))
