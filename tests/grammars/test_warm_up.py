"""Code ahead of time: after a warm-up a process compiles nothing more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = """
import sys
sys.path[:0] = [{paths}]
from rtlang_grammars.warm_up import warm_up
assert warm_up() > 0
from numba.core import event
from rtlang_grammars.bench import byte_level_vocabulary
from rtlang_grammars.engine_backend import EngineBackend
from rtlang_grammars.spec import Constraint, ConstraintKind
from rtlang_grammars.vocabulary import Vocabulary
import numpy as np
vocabulary = Vocabulary((b"a", b"b", b'"', b"{{", b"}}", b":", b"ab", b""), frozenset((7,)), frozenset((7,)), 8)
with event.install_recorder("numba:compile") as recorder:
    backend = EngineBackend.create(vocabulary)
    row = np.zeros(1, dtype=np.int32)
    for kind, source in [("regex", "a+b"), ("lark", 'start: "a" start "b" | "b"'), ("json_schema", '{{"type": "string", "minLength": 1}}')]:
        matcher = backend.compile(Constraint(ConstraintKind(kind), source)).matcher()
        for token in matcher.shortest_completion(50):
            matcher.fill_bitmask(row)
            matcher.forced_tokens()
            assert matcher.accept_token(token)
        assert matcher.is_accepting
assert not recorder.buffer, [str(each) for _, each in recorder.buffer][:5]
"""


def test_nothing_is_compiled_after_a_warm_up() -> None:
    paths = ", ".join(repr(str(ROOT / part)) for part in ("", "kernels", "grammars"))
    found = subprocess.run(
        [sys.executable, "-c", CODE.format(paths=paths)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
