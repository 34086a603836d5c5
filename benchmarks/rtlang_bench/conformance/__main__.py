"""The command: runs all checks against a server and prints a table. Exit status 0 if none fails."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from rtlang_bench.conformance import connection_checks, resume_checks, stream_checks  # noqa: F401  (they register their checks)
from rtlang_bench.conformance.wire import CHECKS, CheckError, Server, SkipError

PATH = "/v1/stream"
KEY_VARIABLE = "RTLANG_API_KEY"


def address(url: str) -> str:
    """The address of the WebSocket of a server."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    path = parts.path.rstrip("/")
    return f"{scheme}://{parts.netloc}{path if path.endswith(PATH) else path + PATH}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rtlang_bench.conformance", description=__doc__)
    parser.add_argument("url", help="ws, wss, http or https address of the server")
    parser.add_argument("--only", metavar="TEXT", help="run only checks whose section or claim contains this")
    options = parser.parse_args(arguments)
    server = Server(address(options.url), os.environ.get(KEY_VARIABLE))
    counts = {"pass": 0, "FAIL": 0, "skip": 0}
    for entry in CHECKS:
        if options.only and options.only not in f"{entry.section} {entry.claim}":
            continue
        started, note = time.monotonic(), ""
        try:
            entry.run(server)
            outcome = "pass"
        except SkipError as error:
            outcome, note = "skip", str(error)
        except (CheckError, OSError, KeyError, TypeError, ValueError, IndexError) as error:
            reason = str(error) if isinstance(error, CheckError) else f"{type(error).__name__}: {error}"
            outcome, note = "FAIL", reason
        except Exception as error:  # of the WebSocket library: a refused handshake, a broken frame
            outcome, note = "FAIL", f"{type(error).__name__}: {error}"
        counts[outcome] += 1
        seconds = time.monotonic() - started
        print(f"{outcome}  {entry.section:<5} {seconds:6.2f} s  {entry.claim}{f': {note}' if note else ''}", flush=True)
    print(", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    return 1 if counts["FAIL"] or not counts["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
