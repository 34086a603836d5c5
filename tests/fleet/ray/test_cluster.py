"""Joining a Ray cluster is bounded, and what Ray says about a failure becomes one line."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("ray")

from rtlang.contract.errors import ConnectionLostError
from rtlang.fleet.ray import cluster
from tests.support.servers.free_port import free_port

DIED = """Raylet is terminated. Termination is unexpected. Last 20 lines of the Raylet logs:
    [state-dump] ray::rpc::NodeInfoGcsService.grpc_client.CheckAlive - 2 total (0 active)
    [state-dump] 	NodeManager.GCTaskFailureReason - 1 total (1 active)
"""


def test_a_cluster_that_lets_nobody_join_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = threading.Event()
    monkeypatch.setattr(cluster, "check_cluster", lambda address: address)
    monkeypatch.setattr(cluster, "INIT_TIMEOUT_S", 0.05)
    monkeypatch.setattr(cluster, "check_head", lambda address: None)
    monkeypatch.setattr(cluster.ray, "init", lambda *args, **options: joined.wait(20))
    with pytest.raises(ConnectionLostError, match=r"joining the Ray cluster at .* took more than"):
        cluster.join_ray("127.0.0.1:1")
    joined.set()


def test_what_ray_says_about_a_cluster_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(*args: object, **options: object) -> None:
        raise RuntimeError("Version mismatch:\n    The cluster was started with:\n    Ray 1\nend")

    monkeypatch.setattr(cluster, "check_cluster", lambda address: address)
    monkeypatch.setattr(cluster, "check_head", lambda address: None)
    monkeypatch.setattr(cluster.ray, "init", init)
    with pytest.raises(ConnectionLostError, match=r"no Ray cluster at 127.0.0.1:1: Version mismatch: end$"):
        cluster.join_ray("127.0.0.1:1")


def test_the_address_that_ray_makes_of_loopback_is_asked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = f"127.0.0.1:{free_port()}"
    monkeypatch.setattr(cluster, "check_cluster", lambda address: address)
    monkeypatch.setattr(cluster, "canonicalize_bootstrap_address", lambda address: asked)
    with pytest.raises(ConnectionLostError, match=f"no Ray cluster at {asked}: "):
        cluster.join_ray("127.0.0.1:1")


def test_a_node_that_dies_tells_the_log_one_line_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    from ray._private import worker

    messages = iter([(None, {"job_id": None, "type": "raylet_died", "error_message": DIED})])

    def poll() -> object:
        try:
            return next(messages)
        except StopIteration:
            raise ConnectionError from None

    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)  # is put back afterwards
    cluster.log_messages_of_nodes()
    subscriber = SimpleNamespace(subscribe=lambda: None, poll=poll)
    job = SimpleNamespace(binary=lambda: b"1")
    caplog.set_level(logging.WARNING, logger="rtlang")
    worker.listen_error_messages(
        SimpleNamespace(gcs_error_subscriber=subscriber, current_job_id=job), threading.Event()
    )
    (text,) = [record.getMessage() for record in caplog.records if record.name.startswith("rtlang")]
    assert text == ("Ray (raylet): Raylet is terminated. Termination is unexpected. Last 20 lines of the Raylet logs:")
    printed = capfd.readouterr()
    assert "state-dump" not in printed.out + printed.err
