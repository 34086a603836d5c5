"""What is measured of linear layers: which layers, which candidates, what is set."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from rtlang_kernels.cpu import linear_tuning
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED, NO_TILES
from rtlang_kernels.cpu.float_input_linear import FloatInputLinear
from rtlang_kernels.cpu.linear import PackedLinear, Prefetch, code_for, tile_code
from rtlang_kernels.cpu.linear_tuning import described, tile_fault
from rtlang_kernels.cpu.low_bit_linear import JoinedLowBitLinear, LowBitLinear, LowBitProduct
from rtlang_kernels.host import tuning as tuning_module
from rtlang_kernels.host.processor import Processor, processor
from rtlang_kernels.host.tuning import Tuning
from tests.support.models.low_bit_weights import FORMATS, random_weight

HAS_BYTES = pytest.mark.skipif(
    not processor().has_int8_dot, reason="tiles belong to processors with vpdpbusd on 512 bits"
)


def layers(count: int) -> list[PackedLinear]:
    return [PackedLinear.pack(torch.randn(64, 32).bfloat16()) for _ in range(count)]


@pytest.fixture
def without_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tuning, "usable_tiles", lambda: NO_TILES)


@pytest.mark.usefixtures("without_tiles")
def test_what_is_measured_is_set_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tuning, "_SAMPLE_BYTES", 3 * 64 * 32 * 2)
    monkeypatch.setattr(tuning_module, "BUDGET_S", 60.0)
    made, machine = layers(4), Processor("one", "x", 2)
    x = torch.randn(5, 32).bfloat16()
    before = made[0](x)
    choices = Tuning(tmp_path, machine)
    linear_tuning.tune(made, choices)
    assert len({layer.prefetch for layer in made}) == 1
    prefetch = made[0].prefetch
    assert torch.equal(made[0](x), before)
    kind, *measured = choices.choices()
    assert kind.shape == "bfloat16 weights, bfloat16 rows"
    assert kind.chosen == described(made[0])[1]
    assert [len(choice.seconds) for choice in measured] == [5, 5, 2]
    assert [choice.shape.split(", ")[2] for choice in measured] == ["1 to 2 rows", "3 to 8 rows", "more rows"]
    monkeypatch.setattr(PackedLinear, "multiply", None)  # nothing is measured again
    other = layers(4)
    linear_tuning.tune(other, Tuning(tmp_path, machine))
    assert other[0].prefetch == prefetch


@pytest.mark.usefixtures("without_tiles")
def test_the_prefetch_of_few_bits_is_that_of_the_most_common_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_tuning, "_SAMPLE_BYTES", 3 * 64 * 64)
    monkeypatch.setattr(tuning_module, "BUDGET_S", 60.0)
    weights = {name: random_weight(FORMATS[name], 64, 64) for name in ("q8_0", "q4_0")}
    common = [LowBitLinear.pack([weights["q8_0"]], None, False, torch.bfloat16) for _ in range(3)]
    parts = tuple(LowBitLinear.pack([weight], None, False, torch.bfloat16) for weight in weights.values())
    measured = set()
    multiply = LowBitLinear.multiply

    def watched(self: LowBitLinear, *arguments: Any) -> torch.Tensor:
        measured.add(self.code)
        return multiply(self, *arguments)

    monkeypatch.setattr(LowBitLinear, "multiply", watched)
    choices = Tuning(tmp_path, Processor("one", "x", 2))
    linear_tuning.tune([*common, JoinedLowBitLinear(parts)], choices)
    assert measured == {common[0].code}
    assert len({layer.prefetch for layer in (*common, *parts)}) == 1
    kinds, trials = choices.choices()[:2], choices.choices()[2:]
    assert [(kind.shape, kind.chosen) for kind in kinds] == [described(layer) for layer in (common[0], parts[1])]
    assert [len(choice.seconds) for choice in trials] == [5, 5, 2]


@pytest.mark.usefixtures("without_tiles")
def test_a_model_that_fits_the_caches_keeps_the_defaults(tmp_path: Path) -> None:
    made, choices = layers(2), Tuning(tmp_path, Processor("one", "x", 2))
    linear_tuning.tune(made, choices)
    assert [choice.seconds for choice in choices.choices()] == [{}]
    assert made[0].prefetch == Prefetch()
    linear_tuning.tune([], choices)


def test_kernels_are_named_by_their_instructions() -> None:
    new, old = Processor("", "", 1, has_avx512=True, has_bf16_dot=True), Processor("", "", 1, has_avx2=True)
    weight = torch.randn(32, 32)

    def named(dtype: torch.dtype, machine: Processor) -> tuple[str, str]:
        return described(PackedLinear.pack(weight.to(dtype), machine=machine))

    assert named(torch.bfloat16, new)[1] == "vdpbf16ps, tiles of 8 rows"
    assert named(torch.bfloat16, old)[1] == "multiply-add of widened weights, tiles of 4 rows"
    assert named(torch.float32, new) == ("float32 weights, float32 rows", "multiply-add, tiles of 8 rows")


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The processor and the system pretend to have matrix tiles."""
    monkeypatch.setattr(linear_tuning, "usable_tiles", lambda: EMULATED)
    tile_fault.cache_clear()
    yield
    tile_fault.cache_clear()


def times(monkeypatch: pytest.MonkeyPatch, seconds_of: dict[int, float]) -> None:
    """Let every layer take these seconds by its kind of tiles."""

    def timer(sample: list[PackedLinear], num_rows: int) -> object:
        return lambda layers, prefetch: sum(seconds_of[layer.code.tiles] for layer in layers)

    monkeypatch.setattr(linear_tuning, "_timer", timer)
    monkeypatch.setattr(tuning_module, "BUDGET_S", 60.0)


@pytest.mark.parametrize(("vectors", "tiles", "expected"), [(2.0, 1.0, EMULATED), (1.0, 2.0, NO_TILES)])
@pytest.mark.usefixtures("emulated")
def test_the_faster_of_tiles_and_vectors_serves_all_layers(
    vectors: float, tiles: float, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times(monkeypatch, {NO_TILES: vectors, EMULATED: tiles})
    machine, plain = Processor("one", "x", 2), PackedLinear.pack(torch.randn(64, 32))
    for _ in range(2):  # measured, then read
        made, choices = layers(3), Tuning(tmp_path, machine)
        linear_tuning.tune([*made, plain], choices)
        assert [layer.code.tiles for layer in made] == [expected] * 3
        assert plain.code.tiles == NO_TILES
        bf16, float32 = choices.choices()
        assert (bf16.name, bf16.shape) == ("linear layers", "bfloat16 weights, bfloat16 rows")
        assert list(bf16.seconds) == [described(layers(1)[0])[1], "tdpbf16ps, tiles of 32 rows"]
        assert bf16.chosen == described(made[0])[1]
        assert float32.seconds == {}
        times(monkeypatch, {NO_TILES: 1.0, EMULATED: 1.0})


@pytest.mark.usefixtures("emulated")
def test_the_choice_holds_for_any_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times(monkeypatch, {NO_TILES: 2.0, EMULATED: 1.0})
    linear_tuning.tune(layers(1), Tuning(tmp_path, Processor("one", "x", 2)))
    times(monkeypatch, {NO_TILES: 1.0, EMULATED: 2.0})
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    made = layers(1)
    linear_tuning.tune(made, Tuning(tmp_path, Processor("one", "x", 2)))
    assert made[0].code.tiles == EMULATED


def test_emulated_tiles_pass_the_check() -> None:
    code = code_for(torch.bfloat16, torch.bfloat16)
    tiled = tile_code(code, EMULATED)
    assert tiled is not None
    assert tile_fault.__wrapped__(code, tiled) is None


def wrong_value(y: torch.Tensor) -> torch.Tensor:
    y[0, 0] = 0
    return y


def wrong_last_row(y: torch.Tensor) -> torch.Tensor:
    y[-1] *= 1 + 2**-7  # differs from the same row of a call with more rows
    return y


def no_code(y: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("no such instruction")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (wrong_value, "their results differ from those of vectors by"),
        (wrong_last_row, "a result depends on the number of rows"),
        (no_code, "RuntimeError: no such instruction"),
    ],
)
@pytest.mark.usefixtures("emulated")
def test_tiles_with_a_fault_are_not_used(
    fault: object, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    multiply = PackedLinear.multiply

    def faulty(self: PackedLinear, x: torch.Tensor, *others: object) -> torch.Tensor:
        y = multiply(self, x, *others)
        return fault(y) if self.code.tiles and (fault is not wrong_last_row or len(x) == 16) else y

    monkeypatch.setattr(PackedLinear, "multiply", faulty)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            made, choices = layers(2), Tuning(tmp_path, Processor("one", "x", 2))
            linear_tuning.tune(made, choices)
            assert [layer.code.tiles for layer in made] == [NO_TILES] * 2
            kind, note = choices.choices()
            assert kind.chosen == described(made[0])[1]
            assert note.name == "matrix tiles (AMX)"
            assert note.chosen.startswith(f"not used: {reason}")
    assert len(caplog.records) == 1
    assert reason in caplog.text


def test_a_system_that_refuses_tiles_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tuning, "processor", lambda: Processor("one", "x", 2, has_amx=True))
    monkeypatch.setattr(linear_tuning, "tile_refusal", lambda: "Linux refused permission: Operation not permitted")
    made, choices = [*layers(1), PackedLinear.pack(torch.randn(64, 32))], Tuning(tmp_path, Processor("one", "x", 2))
    linear_tuning.tune(made, choices)
    assert [(choice.name, choice.shape) for choice in choices.choices()] == [
        ("linear layers", "bfloat16 weights, bfloat16 rows"),
        ("matrix tiles (AMX)", "bfloat16 weights, bfloat16 rows"),
        ("linear layers", "float32 weights, float32 rows"),
    ]
    assert choices.choices()[1].chosen == "not used: Linux refused permission: Operation not permitted"
    monkeypatch.setattr(linear_tuning, "tile_refusal", lambda: None)
    assert linear_tuning.usable_tiles() == AMX


def test_layers_that_multiply_weights_out_get_the_code_of_layers_of_floats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_tuning, "usable_tiles", lambda: EMULATED)
    monkeypatch.setattr(linear_tuning, "tile_fault", lambda code, tiled: None)
    monkeypatch.setattr(linear_tuning, "_FLOATS", (64, 32))
    monkeypatch.setattr(Tuning, "choose", lambda self, subject, shape, names, timer: names[-1])
    weight = random_weight(FORMATS["q8_0"], 64, 64)
    layer = FloatInputLinear.pack([weight], None, False, torch.bfloat16)
    floats, before = PackedLinear.pack(torch.randn(64, 32).bfloat16()), layer.prefetch
    linear_tuning.tune([layer, floats], Tuning(tmp_path, Processor("one", "x", 2)))
    assert layer.product.code == floats.code
    assert layer.product.code.tiles == EMULATED
    assert layer.prefetch == before


def few_bits(*names: str) -> list[LowBitLinear]:
    return [LowBitLinear.pack([random_weight(FORMATS[name], 130, 64)], None, False, torch.bfloat16) for name in names]


def kinds(*made: LowBitLinear | JoinedLowBitLinear) -> list[int]:
    """Kinds of the tiles of layers."""
    return [linear.product.tiles for linear in made if isinstance(linear.product, LowBitProduct)]


@HAS_BYTES
@pytest.mark.parametrize(("vectors", "tiles", "expected"), [(2.0, 1.0, EMULATED), (1.0, 2.0, NO_TILES)])
@pytest.mark.usefixtures("emulated")
def test_many_rows_of_few_bits_use_the_faster_of_tiles_and_vectors(
    vectors: float, tiles: float, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_of = {NO_TILES: vectors, EMULATED: tiles}
    monkeypatch.setattr(tuning_module, "BUDGET_S", 60.0)
    monkeypatch.setattr(
        linear_tuning, "_timer", lambda sample, rows: lambda layers, prefetch: seconds_of[kinds(*layers)[0]]
    )
    made, choices = few_bits("int8 of rows", "nvfp4"), Tuning(tmp_path, Processor("one", "x", 2))
    joined = JoinedLowBitLinear(made)
    linear_tuning.tune([joined, made[0]], choices)
    assert kinds(joined, made[0], made[1]) == [expected, expected, NO_TILES]  # the last one is no layer of its own
    choice = choices.choices()[-1]
    assert choice.shape == "8-bit weights, bfloat16 rows, from 16 rows on"
    assert list(choice.seconds) == [described(made[0])[1], "tdpbsud, tiles of 16 rows"]


@HAS_BYTES
@pytest.mark.parametrize(
    ("fault", "reason"),
    [(wrong_value, "their results differ from those of vectors"), (no_code, "RuntimeError: no such instruction")],
)
@pytest.mark.usefixtures("emulated")
def test_tiles_of_few_bits_with_a_fault_are_not_used(
    fault: Any, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    multiply = LowBitProduct.multiply

    def faulty(self: LowBitProduct, *arguments: Any) -> torch.Tensor:
        y = multiply(self, *arguments)
        return fault(y) if self.tiles else y

    monkeypatch.setattr(LowBitProduct, "multiply", faulty)
    made, choices = few_bits("int8 of rows"), Tuning(tmp_path, Processor("one", "x", 2))
    with caplog.at_level(logging.WARNING):
        linear_tuning.tune(made, choices)
    assert kinds(*made) == [NO_TILES]
    note = choices.choices()[-1]
    assert (note.name, note.chosen) == ("matrix tiles (AMX)", f"not used: {reason}")
    assert reason in caplog.text


@HAS_BYTES
def test_a_system_that_refuses_tiles_of_few_bits_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tuning, "processor", lambda: Processor("one", "x", 2, has_amx=True))
    monkeypatch.setattr(linear_tuning, "tile_refusal", lambda: "Linux refused permission")
    made, choices = few_bits("int8 of rows"), Tuning(tmp_path, Processor("one", "x", 2))
    linear_tuning.tune(made, choices)
    assert kinds(*made) == [NO_TILES]
    assert choices.choices()[-1].chosen == "not used: Linux refused permission"
