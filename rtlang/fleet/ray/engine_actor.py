"""An actor that holds an engine and serves frontends over TCP.

The actor gives its address and a secret to every caller that Ray admits; frames travel on a connection of their own, since a
call of an actor per piece of text would cost more than the text. The model is loaded for the first connection. If the engine cannot go
on, the process ends and Ray starts it again, under the same name.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from typing import Any

import ray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.process.logs import LogFormat, configure_logs
from rtlang.fleet.ray.secret_link import SECRET_BYTES, SecretListener

NAMESPACE = "rtlang"
"""The namespace of all actors in Ray."""
MAX_CALLS = 16


@dataclass(frozen=True, slots=True)
class ActorAddress:
    """The way to an engine.

    Attributes:
        secret: differs for each start of the actor; it grants the use of the engine.
    """

    host: str
    port: int
    pid: int
    node_id: str
    secret: bytes = field(repr=False)


class EngineActor:
    """The engine of one replica; methods are called through Ray.

    Args:
        settings: of its RuntimeConfig; settings that a frontend sends are ignored.
        log_level, log_form: of its log lines, which Ray collects.
    """

    def __init__(self, settings: dict[str, Any], log_level: str, log_form: str) -> None:
        configure_logs(log_level, is_json=LogFormat(log_form) is LogFormat.JSON, process="engine")
        host, secret = ray.util.get_node_ip_address(), secrets.token_bytes(SECRET_BYTES)
        from rtlang.fleet.host.engine_host import (
            EngineHost,  # loads torch, which a process that only creates actors never needs
        )

        self._host = EngineHost(settings)
        self._listener = SecretListener(host, secret, self._host.serve)
        node_id = ray.get_runtime_context().get_node_id()
        self._address = ActorAddress(host, self._listener.address[1], os.getpid(), node_id, secret)

    def address(self) -> ActorAddress:
        """The way to the engine, until the actor is started again."""
        return self._address


def actor_name(fleet: str, replica: str) -> str:
    """The name of the actor of a replica."""
    return f"{fleet}/{replica}"


def create_engine_actor(
    fleet: str, replica: str, config: RuntimeConfig, settings: dict[str, Any], log: tuple[str, str]
) -> Any:
    """Create the actor of a replica, spread over the nodes; returns its handle. Waits for nothing.

    Each rank of it takes `num_threads` processors, one if that is not set, and a GPU if the device is one. It lives until it is killed.
    """
    num_cpus, num_gpus = resources_of(config)
    options: dict[str, Any] = {
        "name": actor_name(fleet, replica),
        "namespace": NAMESPACE,
        "lifetime": "detached",
        "get_if_exists": True,
        "num_cpus": num_cpus,
        "num_gpus": num_gpus,
        "scheduling_strategy": "SPREAD",
        "max_restarts": -1,
        "max_task_retries": -1,
        "max_concurrency": MAX_CALLS,
    }
    return ray.remote(EngineActor).options(**options).remote({"num_threads": 1} | settings, *log)


def resources_of(config: RuntimeConfig) -> tuple[int, int]:
    """Processors and GPUs of one replica, its ranks included."""
    num_gpus = config.tensor_parallel if config.device == "cuda" else 0
    return (config.num_threads or 1) * config.tensor_parallel, num_gpus
