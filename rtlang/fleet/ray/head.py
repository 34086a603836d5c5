"""Checks that the head of a Ray cluster answers, before Ray is imported, so that a wrong or dead address is reported within seconds.

It asks for the id of the cluster over gRPC, as Ray's own clients do first.
"""

from __future__ import annotations

import os

import grpc

from rtlang.contract.errors import ConfigError, ConnectionLostError

LOCAL = "local"
"""The address of a Ray that is started for this process, on this machine."""
AUTO = "auto"
"""The address of the cluster that this process is a part of, or that runs on this machine."""
PROBE_TIMEOUT_S = 5.0
_GET_CLUSTER_ID = "/ray.rpc.NodeInfoGcsService/GetClusterId"
_MAX_REASON = 300


def check_cluster(address: str) -> str:
    """Ask the head of a cluster for its id; returns HOST:PORT of the head.

    Args:
        address: HOST:PORT, or AUTO.
    Raises:
        ConfigError: the address has another form.
        ConnectionLostError: no cluster is found, or nothing answers in time, or it is not the head of a Ray cluster.
    """
    head = head_address(address)
    check_head(head)
    return head


def head_address(address: str) -> str:
    """HOST:PORT of the head of a cluster.

    Args:
        address: HOST:PORT, or AUTO, for which RAY_ADDRESS counts, then what runs on this machine.
    Raises:
        ConfigError: the address has another form.
        ConnectionLostError: no cluster is found.
    """
    found: str | None = address
    if address == AUTO:
        from ray._private.services import canonicalize_bootstrap_address  # what `ray.init` makes of "auto"

        given = os.environ.get("RAY_ADDRESS") or AUTO
        found = canonicalize_bootstrap_address(AUTO) if given == AUTO else given
        if found is None:
            raise ConnectionLostError("no Ray cluster runs on this machine; give the address of its head, HOST:PORT")
    assert found is not None
    host, _, port = found.rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ConfigError(
            "ray", found, f"expected HOST:PORT of the head of a Ray cluster (not of a Ray client), {AUTO} or {LOCAL}"
        )
    return found


def check_head(address: str, timeout_s: float = PROBE_TIMEOUT_S) -> None:
    """Ask the head of a cluster for its id.

    Raises:
        ConnectionLostError: nothing answers in time, or it is not the head of a Ray cluster.
    """
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):  # its certificates are Ray's business
        return
    with grpc.insecure_channel(address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        try:
            channel.unary_unary(_GET_CLUSTER_ID)(b"", timeout=timeout_s)
        except grpc.RpcError as error:
            code, details = error.code(), one_line(error.details() or "")
        else:
            return
    match code:
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return  # a head that wants a token, which `ray.init` has
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            reason = f"no answer within {timeout_s:g} s"
        case grpc.StatusCode.UNAVAILABLE:
            reason = details.rpartition(": ")[2].rstrip("]")
        case _:
            reason = f"the server there is not the head of a Ray cluster ({details})"
    raise ConnectionLostError(f"no Ray cluster at {address}: {reason}")


def one_line(text: object) -> str:
    """A message of Ray as one line, without the lines in which it lists the state of an actor or a node."""
    lines = [line for line in str(text).splitlines() if line.strip() and not line.startswith(("\t", "  "))]
    joined = " ".join(line.strip() for line in lines)
    return joined if len(joined) <= _MAX_REASON else joined[: _MAX_REASON - 3] + "..."
