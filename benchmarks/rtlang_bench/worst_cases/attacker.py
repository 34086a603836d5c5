"""Sends cases to a server. Run as a process of its own, so that its work does not show in what the canaries measure:

    python -m rtlang_bench.worst_cases.attacker URL SEED WIDTH UNTIL NUMBER...

with the key in RTLANG_ATTACKER_KEY. For each case it prints a line of JSON when it begins and when it has ended, with the time of
`time.monotonic`, which is also that of UNTIL: no case begins later. Cases run `WIDTH` at a time, so that most of 10,000 take no time of
their own.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from rtlang_bench.worst_cases.cases import make_case
from rtlang_bench.worst_cases.sender import send_case

KEY_VARIABLE = "RTLANG_ATTACKER_KEY"


class Attack:
    """Cases that are sent by several threads.

    Args:
        tell: called with a map when a case begins and when it has ended, by one thread at a time.
    """

    def __init__(self, url: str, key: str, seed: int, cases: Iterable[int], tell: Any) -> None:
        self._url, self._key, self._seed, self._tell = url, key, seed, tell
        self._cases: Iterator[int] = iter(cases)
        self._lock = threading.Lock()
        self._until = math.inf

    def run(self, width: int, until: float = math.inf) -> None:
        """Send the cases, `width` at a time; none begins after `until`."""
        self._until = until
        threads = [threading.Thread(target=self._work) for _ in range(width)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                number = next(self._cases, None)
            if number is None or time.monotonic() > self._until:
                return
            case = make_case(self._seed, number)
            self._say(case=number, begun=time.monotonic(), name=f"{case.kind}:{case.name}")
            endings = send_case(self._url, self._key, case)
            wrong = [each.text for each in endings if each.is_wrong]
            shown = sorted({each.text for each in endings})
            self._say(case=number, ended=time.monotonic(), ends=shown[:4], wrong=wrong[:2])

    def _say(self, **fields: Any) -> None:
        with self._lock:
            self._tell(fields)


def _print(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main(url: str, seed: str, width: str, until: str, *numbers: str) -> None:
    """Carry out the cases."""
    attack = Attack(url, os.environ[KEY_VARIABLE], int(seed), map(int, numbers), _print)
    attack.run(int(width), float(until))


if __name__ == "__main__":
    os.nice(5)
    main(*sys.argv[1:])
