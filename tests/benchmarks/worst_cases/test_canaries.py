"""What a bystander notices."""

from __future__ import annotations

import threading
from collections import Counter

import rtlang as rt
from rtlang.contract.config import ServeConfig
from rtlang.serve.server import TokenizerInfo, running_server
from rtlang_bench.worst_cases.canaries import Canaries


def test_all_probes_are_measured_and_none_fails() -> None:
    kinds: Counter[str] = Counter()
    errors: list[str] = []
    enough = threading.Event()

    def tell(kind: str, begun: float, ended: float, error: str) -> None:
        assert ended >= begun
        kinds[kind] += 1
        if error:
            errors.append(f"{kind}: {error}")
        if all(kinds[each] >= 2 for each in ("schema", "tokenize", "tokens")):
            enough.set()

    with (
        rt.Runtime(num_pages=400) as runtime,
        running_server(runtime, ServeConfig(port=0), TokenizerInfo("tiny")) as url,
    ):
        canaries = Canaries(url, "key", tell)
        canaries.start()
        assert enough.wait(60.0)
        canaries.stop()
        assert runtime.stats()["num_generated_tokens"] > 0
    assert errors == []


def test_a_server_that_is_gone_is_an_error_of_every_probe() -> None:
    failed: set[str] = set()
    enough = threading.Event()

    def tell(kind: str, begun: float, ended: float, error: str) -> None:
        if error:
            failed.add(kind)
        if failed >= {"stream", "schema", "tokenize", "tokens"}:
            enough.set()

    canaries = Canaries("ws://127.0.0.1:9", "key", tell)
    canaries.start()
    assert enough.wait(30.0)
    canaries.stop()
