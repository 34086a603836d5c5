"""First use on a new machine: `python -m rtlang_grammars_bench.first_use [--tokenizer FILE]`.

Starts new processes of the installed library, each with cache directories of its own: with empty ones, with those that the process before
has filled, with none that can be written to, and four processes at once; and one that interprets its schema while another process
compiles the code (`rtlang_grammars.api.precompile`), as servers do. Prints seconds of CPU (all threads and child processes), and the
wall time from the start of the process to the first mask and token of a JSON schema, and of a grammar with a lexer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

NUM_AT_ONCE = 4
_TIMEOUT_S = 300
_STARTED, _IN_BACKGROUND = "RTLANG_FIRST_USE_STARTED", "RTLANG_FIRST_USE_IN_BACKGROUND"
_FIGURES = ("cpu_s", "import_s", "mask_s", "token_s", "lexed_mask_s", "lexed_token_s")


def child(tokenizer: Path | None) -> dict[str, float]:
    """What a new process measures: seconds since it was started."""
    started = float(os.environ[_STARTED])
    figures: dict[str, float] = {}

    def note(name: str) -> None:
        figures[name] = time.time() - started

    import numpy as np

    from rtlang_grammars.api import precompile
    from rtlang_grammars.api.rtlang_backend import RtlangBackend
    from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
    from rtlang_grammars.spec.vocabulary import Vocabulary

    note("import_s")
    if _IN_BACKGROUND in os.environ:
        precompile.start_background_compile()
    if tokenizer is None:
        tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
        vocabulary = Vocabulary(tokens, frozenset((256,)), frozenset((256,)), 257)
    else:
        from rtlang_grammars_bench.speed import read_vocabulary

        vocabulary, _ = read_vocabulary(tokenizer)
    row = np.empty(vocabulary.num_mask_words, dtype=np.int32)
    schema = '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}'
    grammar = 'start: NAME "=" NUMBER (";" start)?\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n'
    backend: RtlangBackend | None = None
    for kind, source, prefix in [
        (ConstraintKind.JSON_SCHEMA, schema, ""),
        (ConstraintKind.LARK, grammar, "lexed_"),
    ]:
        constraint, is_compiled = Constraint(kind, source), threading.Event()
        if not precompile.is_ready(vocabulary.vocab_size, constraint, is_compiled.set):
            is_compiled.wait(_TIMEOUT_S)
        if backend is None:
            backend = RtlangBackend.create(vocabulary)
        matcher = backend.compile(constraint).matcher()
        matcher.fill_bitmask(row)
        note(f"{prefix}mask_s")
        first = int(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))[0])
        if not matcher.accept_token(first):
            raise RuntimeError(f"a token of the first mask is refused: {first}")
        note(f"{prefix}token_s")
    return figures


def start(environment: dict[str, str], tokenizer: Path | None) -> subprocess.Popen[str]:
    """A new process that measures itself."""
    command = [sys.executable, "-m", "rtlang_grammars_bench.first_use", "--child"]
    if tokenizer is not None:
        command += ["--tokenizer", str(tokenizer)]
    return subprocess.Popen(
        command,
        env={**environment, _STARTED: str(time.time())},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def measure(environment: dict[str, str], tokenizer: Path | None, num_processes: int = 1) -> list[dict[str, float]]:
    """The figures of some processes that start at once; the CPU time of all of them is that of the first.

    Raises:
        RuntimeError: a process failed, with what it wrote.
    """
    before = os.times()
    processes = [start(environment, tokenizer) for _ in range(num_processes)]
    outputs = [process.communicate(timeout=_TIMEOUT_S) for process in processes]
    for process, (_, errors) in zip(processes, outputs, strict=True):
        if process.returncode:
            raise RuntimeError(errors)
    after = os.times()
    figures: list[dict[str, float]] = [json.loads(text) for text, _ in outputs]
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return [{"cpu_s": spent if each is figures[0] else 0.0, **each} for each in figures]


def report(tokenizer: Path | None) -> dict[str, dict[str, float]]:
    """The largest figures of each situation."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:

        def environment(name: str) -> dict[str, str]:
            base = Path(folder) / name
            return {**os.environ, "NUMBA_CACHE_DIR": str(base / "code"), "RTLANG_CACHE_DIR": str(base / "cache")}

        (Path(folder) / "file").touch()  # a file is no folder, not even for root
        situations: list[tuple[str, dict[str, str], int]] = [
            ("empty cache", environment("one"), 1),
            ("again", environment("one"), 1),
            ("empty cache, compiled in the background", {**environment("background"), _IN_BACKGROUND: "1"}, 1),
            ("nothing can be written", {**environment("file"), "HOME": "/nonexistent"}, 1),
            (f"{NUM_AT_ONCE} at once, empty cache", environment("many"), NUM_AT_ONCE),
        ]
        for name, variables, num_processes in situations:
            figures = measure(variables, tokenizer, num_processes)
            found[name] = {figure: max(each[figure] for each in figures) for figure in _FIGURES}
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the figures as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json; default: a vocabulary of 257 tokens")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options: Any = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(child(options.tokenizer)))
        return
    print("| seconds | CPU | import | first mask | first token | lexer: first mask | first token |")
    print("|---|---|---|---|---|---|---|")
    for name, figures in report(options.tokenizer).items():
        print(f"| {name} | " + " | ".join(f"{figures[each]:.2f}" for each in _FIGURES) + " |")


if __name__ == "__main__":
    main()
