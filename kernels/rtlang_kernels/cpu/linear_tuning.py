"""Chooses the kernel of linear layers and its prefetch distance by measurement, at load time and with the weights of the model.

Where the processor has matrix tiles (AMX), they are first compared with vectors on a small case; if a result is wrong, vectors are used.
Otherwise the faster ones are, for all numbers of rows and threads, since the bits of bfloat16 layers differ between the two. Those of
layers of few bits must not differ, so these use tiles for many rows only.

The best distance and cache level depend on the processor and its memory. They matter where weights come from memory; a model that fits
the caches keeps the defaults. See `rtlang_kernels.host.tuning` for the time that this may take and where results are kept.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

import torch

from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.cpu.codegen.linear_vectors import BFLOAT16, FLOAT32
from rtlang_kernels.cpu.codegen.low_bit_vectors import AVX2, PLAIN, VNNI_256, VNNI_512, LowBitCode
from rtlang_kernels.cpu.codegen.pair_vectors import NEAREST, SECOND
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, NO_TILES
from rtlang_kernels.cpu.float_input_linear import FloatInputLinear
from rtlang_kernels.cpu.linear import FEW_ROWS, UNMEASURED, Code, PackedLinear, Prefetch, PrefetchDistance, tile_code
from rtlang_kernels.cpu.low_bit_linear import JoinedLowBitLinear, LowBitLinear, LowBitProduct
from rtlang_kernels.cpu.tiled_low_bit import LEAST_ROWS, has_tiles
from rtlang_kernels.host.processor import processor
from rtlang_kernels.host.tile_permission import tile_refusal
from rtlang_kernels.host.tuning import Tuning, tuning

logger = logging.getLogger(__name__)

_SUBJECT, _PREFETCH, _TILES = "linear layers", "prefetch of linear layers", "matrix tiles (AMX)"
# Weights read per measurement: more than the caches of most processors hold, some 5 ms.
_SAMPLE_BYTES = 96 << 20
_FLOATS = 1024, 1024  # shape of a layer of floats that is measured for those whose weights are multiplied out
_LEVELS = {NEAREST: "first", SECOND: "second"}
_SINGLE = (
    PrefetchDistance(8192, NEAREST),
    PrefetchDistance(4096, NEAREST),
    PrefetchDistance(2048, NEAREST),
    PrefetchDistance(8192, SECOND),
    PrefetchDistance(4096, SECOND),
)
_SEVERAL = (PrefetchDistance(0, SECOND), PrefetchDistance(0, NEAREST))
_TILE_TRIALS = (1, 16, 64)  # numbers of rows: a decoding row, a batch of them, a chunk of a prompt
_CHECKED_BLOCKS = 2  # of a layer of few bits
_CHECKED_ROWS = (1, 16, 19, 70)  # one tile, two, several that overlap
# Relative difference of bfloat16 results that were summed in another order; one wrong result of the check causes ten times as much.
_MAX_DIFFERENCE = 1e-3


_Layer = TypeVar("_Layer", PackedLinear, LowBitLinear)


def tune(linears: Sequence[LinearLayer], choices: Tuning | None = None) -> None:
    """Set code and prefetch of the layers of one model by what is known or measured. Other kinds of layers are ignored."""
    layers = [linear for linear in linears if isinstance(linear, PackedLinear)]
    choices = choices or tuning()
    few_bits = [
        linear
        for linear in linears
        if isinstance(linear, LowBitLinear | JoinedLowBitLinear) and not isinstance(linear, FloatInputLinear)
    ]
    _tune_few_bits([part for linear in few_bits for part in _parts(linear)], choices)
    _choose_byte_tiles(few_bits, choices)
    for code in dict.fromkeys(layer.code for layer in layers):
        alike = [layer for layer in layers if layer.code == code]
        sample = _sample(alike)
        _choose_code(alike, sample or alike[:1], choices)
        if sample:
            _choose_prefetch(alike, sample, choices)
    _tune_float_inputs([linear for linear in linears if isinstance(linear, FloatInputLinear)], choices)


def _parts(linear: LowBitLinear | JoinedLowBitLinear) -> tuple[LowBitLinear, ...]:
    """The layers in a layer of few bits."""
    return linear.parts if isinstance(linear, JoinedLowBitLinear) else (linear,)


def _tune_few_bits(layers: Sequence[LowBitLinear], choices: Tuning) -> None:
    """Set the prefetch of layers of few bits, measured with the code that most bytes need: each takes seconds to compile."""
    num_bytes: Counter[LowBitCode] = Counter()
    for layer in layers:
        num_bytes[layer.code] += layer.nbytes
    for layer in {described(layer)[0]: layer for layer in layers}.values():
        choices.note(_SUBJECT, *described(layer))
    for code, _ in num_bytes.most_common(1):
        sample = _sample([layer for layer in layers if layer.code == code])
        if sample:
            _choose_prefetch(layers, sample, choices)


def _tune_float_inputs(layers: Sequence[FloatInputLinear], choices: Tuning) -> None:
    """Set the code of layers that multiply weights out: that of layers of floats."""
    for code in dict.fromkeys(layer.product.code for layer in layers):
        alike = [layer.product for layer in layers if layer.product.code == code]
        dtype = next(layer.dtype for layer in layers if layer.product.code == code)
        floats = PackedLinear.pack(torch.ones(_FLOATS, dtype=dtype))
        floats.code = code
        _choose_code([floats], [floats], choices)
        for product in alike:
            product.code = floats.code


def _choose_byte_tiles(linears: Sequence[LowBitLinear | JoinedLowBitLinear], choices: Tuning) -> None:
    """Let layers of few bits use matrix tiles for many rows if these are usable, right and faster with the code that most bytes need."""
    products = [(linear.product, _parts(linear)) for linear in linears]
    by_code: dict[LowBitCode, list[LowBitLinear]] = {}
    for layer in (part for product, parts in products if isinstance(product, LowBitProduct) for part in parts):
        if has_tiles(layer.code):
            by_code.setdefault(layer.code, []).append(layer)
    kind, refusal = usable_tiles(), tile_refusal() if processor().has_amx else None
    for code, alike in tuple(by_code.items()):
        fault = refusal if kind == NO_TILES else byte_tile_fault(alike[0], kind)
        if fault is not None:
            choices.note(_TILES, described(alike[0])[0], f"not used: {fault}")
            del by_code[code]
    if kind == NO_TILES or not by_code:
        return
    alike = max(by_code.values(), key=lambda layers: sum(layer.nbytes for layer in layers))
    sample = _sample(alike) or alike[:1]
    (shape, vectors), tiles = described(alike[0]), f"tdpbsud, tiles of {LEAST_ROWS} rows"
    trials = {
        vectors: [_with_tiles(layer, NO_TILES) for layer in sample],
        tiles: [_with_tiles(layer, kind) for layer in sample],
    }
    timer = _timer(sample, _TILE_TRIALS[-1])
    chosen = choices.choose(
        _SUBJECT, f"{shape}, from {LEAST_ROWS} rows on", tuple(trials), lambda name: timer(trials[name], UNMEASURED)
    )
    for product, parts in products:
        if isinstance(product, LowBitProduct) and all(part.code in by_code for part in parts):
            product.tiles = kind if chosen == tiles else NO_TILES


def _with_tiles(layer: LowBitLinear, kind: int) -> LowBitLinear:
    """A layer of the same weight with a kind of matrix tiles."""
    found = LowBitLinear(layer.part, layer.dtype)
    assert isinstance(found.product, LowBitProduct)
    found.product.tiles = kind
    return found


def byte_tile_fault(layer: LowBitLinear, kind: int) -> str | None:
    """Compare matrix tiles with vectors on a few outputs of a layer of few bits. Returns what is wrong, with a warning, or None."""
    small = LowBitLinear(layer.part.first_blocks(_CHECKED_BLOCKS), layer.dtype)
    x = torch.randn(_CHECKED_ROWS[-1], layer.in_features, generator=torch.Generator().manual_seed(0)).to(layer.dtype)
    fault = None
    try:
        expected, tiled = small(x).float(), _with_tiles(small, kind)
        counts = [num_rows for num_rows in _CHECKED_ROWS if num_rows >= LEAST_ROWS]
        found = {num_rows: tiled(x[:num_rows]).float() for num_rows in counts}
        if any(not torch.allclose(y, expected[:n], rtol=0, atol=0, equal_nan=True) for n, y in found.items()):
            fault = "their results differ from those of vectors"
    except Exception as error:  # any failure of the compiler: vectors are used instead
        fault = f"{type(error).__name__}: {error}"
    if fault is not None:
        logger.warning("matrix tiles (AMX) are not used for %s: %s", described(layer)[0], fault)
    return fault


def usable_tiles() -> int:
    """The kind of matrix tiles that this process may use, or NO_TILES."""
    return AMX if processor().has_amx and tile_refusal() is None else NO_TILES


def _choose_code(layers: Sequence[PackedLinear], sample: Sequence[PackedLinear], choices: Tuning) -> None:
    """Give layers of one code matrix tiles if these are usable, right and faster."""
    code, kind = layers[0].code, usable_tiles()
    (shape, vectors), tiled = described(layers[0]), tile_code(code, kind)
    fault = tile_refusal() if processor().has_amx else None
    if kind != NO_TILES and tiled is not None and tiled != code:
        fault = tile_fault(code, tiled)
        if fault is None:
            tiles = described(replace(layers[0], code=tiled))[1]
            trials = {vectors: sample, tiles: [replace(layer, code=tiled) for layer in sample]}
            timers = [_timer(sample, num_rows) for num_rows in _TILE_TRIALS]
            chosen = choices.choose(
                _SUBJECT, shape, tuple(trials), lambda name: sum(timer(trials[name], UNMEASURED) for timer in timers)
            )
            if chosen == tiles:
                for layer in layers:
                    layer.code = tiled
            return
    choices.note(_SUBJECT, shape, vectors)
    if fault is not None and tiled is not None:
        choices.note(_TILES, shape, f"not used: {fault}")


@cache
def tile_fault(code: Code, tiled: Code) -> str | None:
    """Compare matrix tiles with vectors on a small case. Returns what is wrong, with a warning, or None."""
    generator = torch.Generator().manual_seed(0)
    dtype = torch.bfloat16 if code.is_bf16 else torch.float32
    weight, x = (torch.randn(70, 200, generator=generator) for _ in range(2))
    vectors = PackedLinear.pack(weight.to(dtype))
    vectors, tiles, x = replace(vectors, code=code), replace(vectors, code=tiled), x.to(dtype)
    fault = None
    try:
        expected = vectors(x).double()
        found = {num_rows: tiles(x[:num_rows]) for num_rows in _CHECKED_ROWS}
        difference = float((found[len(x)].double() - expected).norm() / expected.norm())
        if not difference <= _MAX_DIFFERENCE:
            fault = f"their results differ from those of vectors by {difference:.2g}"
        elif any(not torch.equal(y, found[len(x)][:num_rows]) for num_rows, y in found.items()):
            fault = "a result depends on the number of rows"
    except Exception as error:  # any failure of the compiler: vectors are used instead
        fault = f"{type(error).__name__}: {error}"
    if fault is not None:
        logger.warning("matrix tiles (AMX) are not used for %s: %s", described(vectors)[0], fault)
    return fault


def _timer(sample: Sequence[_Layer], num_rows: int) -> Callable[[Sequence[_Layer], Prefetch], float]:
    """A function that returns the seconds of one call of each of some layers, of the sizes of `sample`, with `num_rows` rows."""
    # Processor time does not count other programs, but it counts this thread only.
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    inputs = [torch.ones(num_rows, layer.in_features, dtype=layer.dtype) for layer in sample]

    def seconds(layers: Sequence[_Layer], prefetch: Prefetch) -> float:
        begun = clock()
        for layer, x in zip(layers, inputs, strict=True):
            layer.multiply(x, None, prefetch)
        return clock() - begun

    return seconds


def _choose_prefetch(layers: Sequence[_Layer], sample: Sequence[_Layer], choices: Tuning) -> None:
    """Set the prefetch of layers by that of a sample."""
    most = sample[0].code.max_rows

    def best(field: str, rows_text: str, num_rows: int, candidates: tuple[PrefetchDistance, ...]) -> PrefetchDistance:
        by_name = {_name(candidate, field): candidate for candidate in candidates}
        trials = {name: UNMEASURED._replace(**{field: candidate}) for name, candidate in by_name.items()}
        shape = f"{described(sample[0])[0]}, {rows_text}, {torch.get_num_threads()} threads"
        timer = _timer(sample, num_rows)
        return by_name[choices.choose(_PREFETCH, shape, tuple(trials), lambda name: timer(sample, trials[name]))]

    found = Prefetch(
        few=best("few", f"1 to {FEW_ROWS} rows", 1, _SINGLE),
        tile=best("tile", f"{FEW_ROWS + 1} to {most} rows", most, _SINGLE),
        several=best("several", "more rows", 2 * most, _SEVERAL),
    )
    for layer in layers:
        layer.prefetch = found


def described(layer: PackedLinear | LowBitLinear) -> tuple[str, str]:
    """The types of a layer, and what computes it."""
    rows = "bfloat16" if layer.dtype == torch.bfloat16 else "float32"
    if isinstance(layer, LowBitLinear):
        names = {
            VNNI_512: "vpdpbusd",
            VNNI_256: "vpdpbusd on 256 bits",
            AVX2: "vpmaddubsw",
            PLAIN: "products of integers",
        }
        return (
            f"{layer.code.bits}-bit weights, {rows} rows",
            f"{names[layer.code.products]}, tiles of {layer.max_rows} rows",
        )
    code = layer.code
    weights = {FLOAT32: "float32", BFLOAT16: "bfloat16"}[code.element]
    products = {FLOAT32: "multiply-add", BFLOAT16: "vdpbf16ps"}[code.element]
    if code.element != FLOAT32 and not code.is_native:
        products = "multiply-add of widened weights"
    if code.tiles != NO_TILES:
        products = "tdpbf16ps"
    return (
        f"{weights} weights, {rows} rows",
        f"{products}, tiles of {code.max_rows} rows",
    )


def _sample(layers: Sequence[_Layer]) -> list[_Layer]:
    """Distinct layers of `_SAMPLE_BYTES` together, evenly from all; none if there are not as many bytes."""
    total = sum(layer.nbytes for layer in layers)
    if total < _SAMPLE_BYTES:
        return []
    largest = max(layer.nbytes for layer in layers)
    found, num_bytes = [], 0
    for layer in layers:
        if layer.nbytes == largest and largest > _SAMPLE_BYTES:  # a head: one call would take the time of many
            continue
        found.append(layer)
        num_bytes += layer.nbytes
        if num_bytes >= _SAMPLE_BYTES:
            return found
    return []


def _name(ahead: PrefetchDistance, field: str) -> str:
    distance = "the next block" if field == "several" else f"{ahead.num_bytes} bytes ahead"
    return f"{distance}, {_LEVELS[ahead.level]} cache"
