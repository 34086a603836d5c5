"""Joins this process to a Ray cluster, or reports within bounded time why it cannot.

`ray.init` waits for minutes for a head that does not answer, and then ends the process. So the head is asked first (head.py), and
`ray.init` runs on a thread of its own, whose time is bounded as well.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import ray
from ray._private import worker
from ray._private.services import canonicalize_bootstrap_address

from rtlang.contract.errors import ConnectionLostError
from rtlang.fleet.ray.engine_actor import NAMESPACE
from rtlang.fleet.ray.head import LOCAL, check_cluster, check_head, one_line

logger = logging.getLogger(__name__)

INIT_TIMEOUT_S = 60.0
"""Seconds that `ray.init` may take with a head that answers; a busy machine needs several."""
_LOCAL_STORE_BYTES = 100 << 20  # nothing of ours goes through Ray's object store


def join_ray(address: str, *, num_cpus: int | None = None) -> bool:
    """Connect this process to Ray unless it is; returns whether it started a Ray of its own.

    Args:
        address: HOST:PORT of a cluster, AUTO or LOCAL.
        num_cpus: processors that a local Ray may give away; all of the machine by default.
    Raises:
        ConfigError: the address has another form.
        ConnectionLostError: there is no cluster at this address, or joining it failed or took too long.
    """
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    log_messages_of_nodes()
    options: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "configure_logging": False}
    if address == LOCAL:
        ray.init(
            "local",
            num_cpus=num_cpus,
            include_dashboard=False,
            object_store_memory=_LOCAL_STORE_BYTES,
            _node_ip_address="127.0.0.1",
            **options,
        )
        return True
    given = check_cluster(address)
    head = canonicalize_bootstrap_address(given)  # Ray may take the address of this machine for that of loopback
    if head is not None and head != given:
        check_head(head)
    _init_within(INIT_TIMEOUT_S, given, options)
    return False


def head_in_use() -> str:
    """HOST:PORT of the head of the cluster that this process has joined."""
    address: str = ray.get_runtime_context().gcs_address
    return address


def leave_ray() -> None:
    """Disconnect this process from Ray; ends a Ray that it started."""
    ray.shutdown()


def log_messages_of_nodes() -> None:
    """Let messages of nodes to this process go to its log, one line each.

    Ray prints them to standard output. That of a node that has died is the end of its log: the state of its tables.
    """
    worker.print_to_stdstream = _log_message


def _log_message(data: Mapping[str, Any], *_: object, **__: object) -> None:
    logger.warning("Ray (%s): %s", data.get("pid"), one_line("\n".join(data.get("lines") or ())))


def _init_within(timeout_s: float, address: str, options: dict[str, Any]) -> None:
    """Call `ray.init` on a thread, which is left running if it takes too long."""
    outcome: Future[None] = Future()

    def init() -> None:
        try:
            logging.getLogger("ray._private.worker").addFilter(_is_no_complaint)
            ray.init(address, **options)
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=init, name="rtlang-ray-init", daemon=True).start()
    try:
        outcome.result(timeout_s)
    except TimeoutError:
        raise ConnectionLostError(f"joining the Ray cluster at {address} took more than {timeout_s:g} s") from None
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConnectionLostError(f"no Ray cluster at {address}: {one_line(error)}") from error


def _is_no_complaint(record: logging.LogRecord) -> bool:
    """Leaves out that Ray takes no signals on this thread: signals are the business of the program."""
    return "SIGTERM handler is not set" not in record.getMessage()
