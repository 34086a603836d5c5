"""The end of a JSON value is found wherever the text is cut."""

from __future__ import annotations

import json
import random

from rtlang_grammars.formats.json_scan import JsonScan
from tests.support.schemas.tool_calls import text


def random_value(rng: random.Random, depth: int) -> object:
    kind = rng.randrange(4 if depth else 2)
    if kind == 2:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 3:
        return {text(rng, ()): random_value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return text(rng, ()) + '\\"}{' if kind else rng.randrange(99)


def test_the_value_grows_to_its_end_and_no_further() -> None:
    rng = random.Random(7)
    for _ in range(200):
        value = json.dumps({"a": random_value(rng, 3)}, ensure_ascii=rng.random() < 0.5)
        whole = f'xy{value}}}]"{{more'
        scan, seen = JsonScan(2), ""
        assert JsonScan(0).value(f" \n{value} ") == value
        at = 0
        while at < len(whole):
            at += rng.randrange(1, 9)
            found = scan.value(whole[:at])
            assert found == whole[2 : min(max(at, 2), 2 + len(value))]
            assert found.startswith(seen)
            seen = found
        assert seen == value
