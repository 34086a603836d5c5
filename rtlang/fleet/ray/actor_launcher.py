"""Connects to the engine of an actor: the launcher of a replica that Ray keeps running.

Ray starts an actor again when its process or its machine has died; `launch` finds it by its name and connects. Closing the connection
leaves the actor to the other frontends.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from rtlang.contract.errors import EngineDeadError
from rtlang.fleet.engines.engine_end import CONNECTION_LOST
from rtlang.fleet.engines.work_record import WorkRecord
from rtlang.fleet.ray.engine_actor import NAMESPACE, ActorAddress, actor_name
from rtlang.fleet.ray.head import one_line
from rtlang.fleet.ray.secret_link import connect_with_secret

logger = logging.getLogger(__name__)

FIND_TIMEOUT_S = 300.0
"""Seconds until an actor has a machine and its process has started; Ray may have to start a machine first."""
ASK_TIMEOUT_S = 5.0


class RayLauncher:
    """Connects to the actor of one replica of a fleet, again and again.

    Args:
        fleet, replica: the names that its actor is found by.
    """

    def __init__(self, fleet: str, replica: str) -> None:
        self._fleet, self._replica = fleet, replica

    @property
    def name(self) -> str:
        """See `Launcher.name`."""
        return self._replica

    def launch(self) -> RayEngine:
        """Connect to the actor as it is now.

        Raises:
            EngineDeadError: there is no such actor, or none within FIND_TIMEOUT_S.
            OSError: it cannot be reached.
        """
        name = actor_name(self._fleet, self._replica)
        try:
            actor = ray.get_actor(name, namespace=NAMESPACE)
            address: ActorAddress = ray.get(actor.address.remote(), timeout=FIND_TIMEOUT_S)
        except ValueError:
            raise EngineDeadError(f"Ray has no actor {name}") from None
        except GetTimeoutError:
            raise EngineDeadError(f"the actor {name} did not start within {FIND_TIMEOUT_S:g} s") from None
        except RayError as error:
            raise EngineDeadError(f"the actor {name} cannot be used: {one_line(error)}") from error
        return RayEngine(actor, address, connect_with_secret((address.host, address.port), address.secret))


class RayEngine:
    """The handle of a connected actor; see `rtlang.fleet.engines.launcher.EngineHandle`."""

    def __init__(self, actor: Any, address: ActorAddress, connection: socket.socket) -> None:
        self._actor, self._address = actor, address
        self.connection = connection
        self.pid: int | None = None  # it may be of another machine
        self.record: WorkRecord | None = None

    def wait(self, timeout_s: float) -> int:
        """Returns at once: when the connection has ended, the engine may go on for others, and Ray looks after it."""
        del timeout_s
        return CONNECTION_LOST

    def ask_for_stack(self) -> None:
        """Does nothing: the engine has no record."""

    def kill(self) -> None:
        """Let Ray start the actor again, unless it did so already."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        try:
            now: ActorAddress = ray.get(self._actor.address.remote(), timeout=ASK_TIMEOUT_S)
            if now.secret != self._address.secret:
                return
        except GetTimeoutError:  # the process does not answer at all
            pass
        except RayError as error:
            logger.warning("the actor of %s has ended: %s", self._address, one_line(error))
            return
        ray.kill(self._actor, no_restart=False)
