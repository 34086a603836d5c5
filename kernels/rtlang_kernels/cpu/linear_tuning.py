"""Chooses the kernel of linear layers and its prefetch distance by measurement, at load time and with the weights of the model.

Where the processor has matrix tiles (AMX), they are first compared with vectors on a small case; if a result is wrong, vectors are used.
Otherwise the faster ones are, for all numbers of rows and threads, since the bits of bfloat16 layers differ between the two.

The best distance and cache level depend on the processor and its memory. They matter where weights come from memory; a model that fits
the caches keeps the defaults. See `rtlang_kernels.host.tuning` for the time that this may take and where results are kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch

from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.cpu.codegen.linear_vectors import BFLOAT16, FLOAT32, INT8
from rtlang_kernels.cpu.codegen.pair_vectors import NEAREST, SECOND
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, NO_TILES
from rtlang_kernels.cpu.linear import FEW_ROWS, UNMEASURED, Code, PackedLinear, Prefetch, PrefetchDistance, tile_code
from rtlang_kernels.host.processor import processor
from rtlang_kernels.host.tile_permission import tile_refusal
from rtlang_kernels.host.tuning import Tuning, tuning

logger = logging.getLogger(__name__)

_SUBJECT, _PREFETCH = "linear layers", "prefetch of linear layers"
# Weights read per measurement: more than the caches of most processors hold, some 5 ms.
_SAMPLE_BYTES = 96 << 20
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
_CHECKED_ROWS = (1, 16, 19, 70)  # one tile, two, several that overlap
# Relative difference of bfloat16 results that were summed in another order; one wrong result of the check causes ten times as much.
_MAX_DIFFERENCE = 1e-3


def tune(linears: Sequence[LinearLayer], choices: Tuning | None = None) -> None:
    """Set code and prefetch of the layers of one model by what is known or measured. Other kinds of layers are ignored."""
    layers = [linear for linear in linears if isinstance(linear, PackedLinear)]
    choices = choices or tuning()
    for code in dict.fromkeys(layer.code for layer in layers):
        alike = [layer for layer in layers if layer.code == code]
        sample = _sample(alike)
        _choose_code(alike, sample or alike[:1], choices)
        if sample:
            _choose_prefetch(alike, sample, choices)


def usable_tiles() -> int:
    """The kind of matrix tiles that this process may use, or NO_TILES."""
    return AMX if processor().has_amx and tile_refusal() is None else NO_TILES


def _choose_code(layers: Sequence[PackedLinear], sample: Sequence[PackedLinear], choices: Tuning) -> None:
    """Give layers of one code matrix tiles if these are usable, right and faster."""
    code, kind = layers[0].code, usable_tiles()
    (shape, vectors), tiled = described(code), tile_code(code, kind)
    fault = tile_refusal() if processor().has_amx else None
    if kind != NO_TILES and tiled is not None and tiled != code:
        fault = tile_fault(code, tiled)
        if fault is None:
            tiles = described(tiled)[1]
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
        choices.note("matrix tiles (AMX)", shape, f"not used: {fault}")


@cache
def tile_fault(code: Code, tiled: Code) -> str | None:
    """Compare matrix tiles with vectors on a small case. Returns what is wrong, with a warning, or None."""
    generator = torch.Generator().manual_seed(0)
    dtype = torch.bfloat16 if code.is_bf16 else torch.float32
    weight, x = (torch.randn(70, 200, generator=generator) for _ in range(2))
    if code.element == INT8:
        vectors = PackedLinear.pack_int8((weight * 40).to(torch.int8), torch.full((70,), 0.01), dtype=dtype)
    else:
        vectors = PackedLinear.pack(weight.to(dtype))
    vectors, tiles, x = replace(vectors, code=code), replace(vectors, code=tiled), x.to(dtype)
    fault = None
    try:
        expected = vectors(x).double()
        found = {num_rows: tiles(x[:num_rows]) for num_rows in _CHECKED_ROWS}
        difference = float((found[len(x)].double() - expected).norm() / expected.norm())
        if not difference <= (0 if code.element == INT8 else _MAX_DIFFERENCE):
            fault = f"their results differ from those of vectors by {difference:.2g}"
        elif any(not torch.equal(y, found[len(x)][:num_rows]) for num_rows, y in found.items()):
            fault = "a result depends on the number of rows"
    except Exception as error:  # any failure of the compiler: vectors are used instead
        fault = f"{type(error).__name__}: {error}"
    if fault is not None:
        logger.warning("matrix tiles (AMX) are not used for %s: %s", described(code)[0], fault)
    return fault


def _timer(sample: Sequence[PackedLinear], num_rows: int) -> Callable[[Sequence[PackedLinear], Prefetch], float]:
    """A function that returns the seconds of one call of each of some layers, of the sizes of `sample`, with `num_rows` rows."""
    # Processor time does not count other programs, but it counts this thread only.
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    inputs = [torch.ones(num_rows, layer.in_features, dtype=layer.dtype) for layer in sample]

    def seconds(layers: Sequence[PackedLinear], prefetch: Prefetch) -> float:
        begun = clock()
        for layer, x in zip(layers, inputs, strict=True):
            layer.multiply(x, None, prefetch)
        return clock() - begun

    return seconds


def _choose_prefetch(layers: Sequence[PackedLinear], sample: Sequence[PackedLinear], choices: Tuning) -> None:
    """Set the prefetch of layers of one code."""
    most = sample[0].code.max_rows

    def best(field: str, rows_text: str, num_rows: int, candidates: tuple[PrefetchDistance, ...]) -> PrefetchDistance:
        by_name = {_name(candidate, field): candidate for candidate in candidates}
        trials = {name: UNMEASURED._replace(**{field: candidate}) for name, candidate in by_name.items()}
        shape = f"{described(sample[0].code)[0]}, {rows_text}, {torch.get_num_threads()} threads"
        timer = _timer(sample, num_rows)
        return by_name[choices.choose(_PREFETCH, shape, tuple(trials), lambda name: timer(sample, trials[name]))]

    found = Prefetch(
        few=best("few", f"1 to {FEW_ROWS} rows", 1, _SINGLE),
        tile=best("tile", f"{FEW_ROWS + 1} to {most} rows", most, _SINGLE),
        several=best("several", "more rows", 2 * most, _SEVERAL),
    )
    for layer in layers:
        layer.prefetch = found


def described(code: Code) -> tuple[str, str]:
    """The types of a layer, and what computes it."""
    weights = {FLOAT32: "float32", BFLOAT16: "bfloat16", INT8: "int8"}[code.element]
    products = {FLOAT32: "multiply-add", BFLOAT16: "vdpbf16ps", INT8: "vpdpbusd"}[code.element]
    if code.element != FLOAT32 and not code.is_native:
        products = "multiply-add of widened weights"
    if code.tiles != NO_TILES:
        products = {BFLOAT16: "tdpbf16ps", INT8: "tdpbusd"}[code.element]
    return (
        f"{weights} weights, {'bfloat16' if code.is_bf16 else 'float32'} rows",
        f"{products}, tiles of {code.max_rows} rows",
    )


def _sample(layers: Sequence[PackedLinear]) -> list[PackedLinear]:
    """Distinct layers of `_SAMPLE_BYTES` together, evenly from all; none if there are not as many bytes."""
    total = sum(layer.weight.nbytes for layer in layers)
    if total < _SAMPLE_BYTES:
        return []
    largest = max(layer.weight.nbytes for layer in layers)
    found, num_bytes = [], 0
    for layer in layers:
        if layer.weight.nbytes == largest and largest > _SAMPLE_BYTES:  # a head: one call would take the time of many
            continue
        found.append(layer)
        num_bytes += layer.weight.nbytes
        if num_bytes >= _SAMPLE_BYTES:
            return found
    return []


def _name(ahead: PrefetchDistance, field: str) -> str:
    distance = "the next block" if field == "several" else f"{ahead.num_bytes} bytes ahead"
    return f"{distance}, {_LEVELS[ahead.level]} cache"
