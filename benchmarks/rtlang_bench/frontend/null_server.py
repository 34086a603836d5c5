"""`rtlang serve` with the engine of null_engine.py: the frontend of a server, and nothing else.

python -m rtlang_bench.frontend.null_server --port 0 --rate 5
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from rtlang.contract.config import RuntimeConfig, ServeConfig
from rtlang.fleet.engines.engine_target import EngineTarget
from rtlang.fleet.engines.launcher import ProcessLauncher
from rtlang.serve.server import Server, TokenizerInfo
from rtlang_bench.frontend.null_engine import RATE_VARIABLE

MODULE = "rtlang_bench.frontend.null_server"


def main() -> None:
    """Serve until SIGINT."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=5.0, help="tokens per second of each stream")
    options = parser.parse_args()
    launcher = ProcessLauncher(
        module="rtlang_bench.frontend.null_engine", environment={RATE_VARIABLE: str(options.rate)}
    )
    with EngineTarget((launcher,), RuntimeConfig()) as target:
        info = TokenizerInfo("null", target.vocab_size, target.max_model_len)
        server = Server(target, info, ServeConfig(port=options.port), metrics=target.metrics)

        def announce() -> None:
            sys.stdout.write(f"serving null at {server.url}\n")
            sys.stdout.flush()

        asyncio.run(server.serve(handle_signals=True, on_listening=announce))


if __name__ == "__main__":
    main()
