"""Families of transformers in the device's benchmark, in triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from rtlang.bench.checkpoint import write_random
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.model.loader import model_directory
from rtlang_bench.device import families as device_families
from rtlang_kernels_bench.output import Output
from tests.support.kernels.own_backends import use_own_backends

CONFIG = RuntimeConfig(device="interpreter", num_threads=1)
TINY: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "sliding_window": 16,
}


@pytest.fixture
def own_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_backends(monkeypatch, device_families)
    monkeypatch.setitem(device_families.SETTINGS, "max_rows", 2)
    monkeypatch.setitem(device_families.SETTINGS, "num_pages", 20)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
def test_texts_of_a_family_are_compared_with_the_cpus(own_backends: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    shape = device_families.SHAPES["gemma2"] | TINY
    device_families.check(CONFIG, told.append, "gemma2", shape, shared_tokens=20, num_rows=2, num_tokens=3)
    (line,) = told
    assert line.startswith("check gemma2: 2 of 2 float32 outputs match the CPU's, ")
    assert int(line.split(", ")[1].split()[0]) > 0, "steps replayed"
    monkeypatch.setattr(device_families, "agreement", lambda *sides: (6, 8))
    with pytest.raises(ArithmeticError, match="2 of 8"):
        device_families.check(CONFIG, told.append, "gemma2", shape, shared_tokens=20, num_rows=1, num_tokens=1)


def test_every_family_is_begun_and_what_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(config: RuntimeConfig, tell: Any, model_type: str, shape: Any) -> None:
        if model_type == "gpt_oss":
            raise ArithmeticError("2 of 8 outputs differ from the CPU's")
        tell(f"check {model_type}: fine")

    late = iter([False, False, False, True])
    monkeypatch.setattr(device_families, "check", check)
    said: list[str] = []
    families = iter(device_families.SHAPES)
    with Output(echo=said.append) as output:
        device_families.run(CONFIG, output, families, lambda: next(late))
        assert said == [
            "check gemma2: fine",
            "FAILED check gpt_oss: ArithmeticError: 2 of 8 outputs differ from the CPU's",
            "check deepseek_v3: fine",
        ]
        device_families.run(CONFIG, output, families, lambda: False)
    assert said[3:] == ["check gpt2: fine"]
    assert output.num_failed == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:::transformers", "ignore::DeprecationWarning")
@pytest.mark.parametrize("model_type", device_families.SHAPES)
def test_every_shape_is_one_that_the_library_makes_and_the_zoo_takes(model_type: str, tmp_path: Any) -> None:
    from rtlang.model.host_runner import HostRunner

    shape = device_families.SHAPES[model_type]
    directory = write_random(tmp_path, model_directory(EMBEDDED_MODEL), model_type, shape)
    settings = {**device_families.SETTINGS, "num_pages": 4, "num_threads": 1}
    runner = HostRunner(RuntimeConfig(model=str(directory), **settings))
    runner.load()
    sizes = {(geometry.head_dim, geometry.v_head_dim) for geometry in runner.decoder.geometries}
    assert sizes <= {(256, 256), (64, 64), (576, 512)}
    has_window = any(window for window, _ in runner.decoder.windows)
    assert has_window == (model_type in ("gemma2", "gpt_oss"))
