"""The process of a rank other than 0: loads its part of the model, then computes what rank 0 says.

It ends when rank 0 says so, when its standard input ends because the process of rank 0 has ended, or with a code other than 0 when it
fails, which rank 0 notices. SIGINT and SIGTERM are ignored here: rank 0 handles them.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import torch.distributed

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang.contract.process.logs import configure_logs
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.host_runner import HostRunner
from rtlang.model.parallel.group import RankGroup
from rtlang.model.parallel.rank_processes import failure_path, up_key

logger = logging.getLogger(__name__)

FAILED = 71
"""Exit code: the model cannot be loaded, or a step failed."""

dist: Any = torch.distributed


def work(config: RuntimeConfig, rank: int, store_path: Path) -> None:
    """Load the part of a rank, and compute until rank 0 ends it.

    Raises:
        RtlangError: the model cannot be loaded with these settings.
        RuntimeError: another rank has ended.
    """
    store = dist.FileStore(str(store_path), config.tensor_parallel)
    store.set(up_key(rank), "")
    if config.device == "cuda":
        torch.cuda.set_device(rank)
    group = RankGroup.connect(store_path, rank, config.tensor_parallel, config.device)
    runner = HostRunner(config, group) if config.device == "cpu" else DeviceRunner(config, group=group)
    runner.load()
    runner.follow()


def _end_with_rank_0() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Run a rank. The first line of standard input says which."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    start = json.loads(sys.stdin.buffer.readline())
    rank, store_path = start["rank"], Path(start["store"])
    configure_logs(start["level"], is_json=start["is_json"], process=f"rank {rank}")
    threading.Thread(target=_end_with_rank_0, daemon=True).start()
    code = 0
    try:
        work(RuntimeConfig(**start["settings"]), rank, store_path)
    except RtlangError as error:
        found = {"code": error.code, "message": error.message, "facts": error.facts}
        failure_path(store_path, rank).write_text(json.dumps(found), encoding="utf-8")
        code = FAILED
    except Exception as error:
        logger.error("rank %d ends: %s: %s", rank, type(error).__name__, error, exc_info=error)
        code = FAILED
    logging.shutdown()
    os._exit(code)


if __name__ == "__main__":
    main()
