"""A Ray cluster of several nodes on this machine, on loopback only, for tests that need the real one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # addresses of this machine are those of loopback
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_prestart_worker_first_driver": "0",
}
STORE_BYTES = 80 << 20
NUM_ATTEMPTS = 3  # a node whose helpers are not up within 15 seconds, on a busy machine, gives up


def set_environment() -> None:
    """Set what Ray reads when it is imported, for this process."""
    os.environ.update(ENVIRONMENT)


@contextmanager
def ray_cluster(num_nodes: int, *, cpus_per_node: int = 2) -> Iterator[str]:
    """The address of a cluster that exists until the end of the block; this process is not connected to it."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # Every process of Ray imports jsonschema, which builds a grammar of IRIs if it can: 1.5 s of each of a dozen processes.
        Path(folder, "rfc3987_syntax.py").write_text("raise ImportError\n", encoding="utf-8")
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, *filter(None, sys.path)]))
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        import ray
        from ray.cluster_utils import Cluster

        node = {"num_cpus": cpus_per_node, "node_ip_address": "127.0.0.1", "object_store_memory": STORE_BYTES}
        for attempt in range(NUM_ATTEMPTS):
            cluster = Cluster()
            try:
                cluster.add_node(**node, include_dashboard=False)
                for _ in range(num_nodes - 1):
                    cluster.add_node(**node)
                break
            except Exception:
                cluster.shutdown()
                if attempt == NUM_ATTEMPTS - 1:
                    raise
        try:
            yield cluster.address
        finally:
            ray.shutdown()
            cluster.shutdown()
