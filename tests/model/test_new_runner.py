"""The runner that settings ask for."""

from __future__ import annotations

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.model.device_runner import DeviceRunner
from rtlang.model.faulty_runner import FaultyRunner
from rtlang.model.host_runner import HostRunner
from rtlang.model.new_runner import new_runner
from rtlang.model.scripted.scripted_runner import ScriptedRunner


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        (RuntimeConfig(), HostRunner),
        (RuntimeConfig(fault_injection=True), FaultyRunner),
        (RuntimeConfig(device="interpreter"), DeviceRunner),
        (RuntimeConfig(model="script:a.yaml"), ScriptedRunner),
    ],
)
def test_the_device_and_the_faults_decide(config: RuntimeConfig, kind: type) -> None:
    runner = new_runner(config, lambda error: None)
    assert type(runner) is kind
    assert runner.config is config  # type: ignore[attr-defined]


def test_a_device_has_its_pages_again_beside_a_draft_model() -> None:
    for settings, expected in (({"draft_model": "x"}, 40), ({}, None)):
        config = RuntimeConfig(device="interpreter", **settings)  # type: ignore[arg-type]
        runner = new_runner(config, lambda error: None, 40)
        assert runner.config.num_pages == expected  # type: ignore[attr-defined]
