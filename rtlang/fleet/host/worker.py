"""The process of the engine: a `Runtime` that takes graphs from a socket and sends their events back.

It ends with code 0 when the socket ends, and with ENGINE_FAILED when its engine cannot go on; the server's process then starts another
one. SIGINT and SIGTERM are ignored here: the server's process handles them. What it works on is in memory that the server's process reads
after its end, and its stacks are written there at a crash and at SIGUSR1 (`fleet/engines/work_record.py`).
"""

from __future__ import annotations

import faulthandler
import logging
import mmap
import os
import signal
import socket
import sys

from rtlang.contract.accounts.tracing import flush_spans
from rtlang.contract.process.logs import LogFormat, configure_logs
from rtlang.fleet.host.engine_host import EngineHost


def main() -> None:
    """Run a worker. The arguments are the file descriptors of its socket and its record, and the level and the form of its log lines."""
    connection_fd, work_fd, stack_fd = map(int, sys.argv[1].split(","))
    faulthandler.enable(stack_fd)
    faulthandler.register(signal.SIGUSR1, stack_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    configure_logs(sys.argv[2], is_json=LogFormat(sys.argv[3]) is LogFormat.JSON, process="engine")
    host = EngineHost(work=memoryview(mmap.mmap(work_fd, 0)).cast("Q"))
    host.serve(socket.socket(fileno=connection_fd))
    host.close()
    flush_spans()
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
