"""Checks of every GPU kernel on the device itself, before anything is timed: each against the reference backend.

Inputs are random and ragged; outputs, and slots that no row uses, are filled with NaN first. Attention is checked with every feature,
head size and type that has tiles of its own; exact operations (copies, masks, tokens) must be equal. Also runs in Triton's interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.contract.sampler_settings import checked_settings
from rtlang_kernels.dispatch import REFERENCE, triton_backend
from rtlang_kernels_bench import automaton_checks, device_experts, device_linear, device_recurrence
from rtlang_kernels_bench.device_cases import PAGE_SIZE, TOLERANCE
from rtlang_kernels_bench.output import Output

VOCAB_SIZE = 40_007
Check = Callable[[torch.device], float]


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch over a tree: tokens shared by all rows, tokens shared by each half, private length and new tokens of each row."""

    shared: int
    half: int
    own: tuple[int, ...]
    new: tuple[int, ...]


DECODE = Rows(512, 64, (1, 900, 33, 70, 16, 5, 48, 3, 200, 17), (1,) * 10)
EXTEND = Rows(288, 48, (40, 200, 1, 90), (40, 150, 1, 7))


@dataclass(frozen=True, slots=True)
class Attention:
    """One attention configuration: query heads, KV heads and head size; `v_dim` if values have another size.

    With `is_latent`, values are the first `v_dim` elements of the keys.
    """

    dtype: torch.dtype
    heads: tuple[int, int, int]
    options: dict[str, Any] = field(default_factory=dict)
    has_sinks: bool = False
    is_float8: bool = False
    v_dim: int | None = None
    is_latent: bool = False

    def __str__(self) -> str:
        q, kv, dim = self.heads
        values = f"/{self.v_dim}" if self.v_dim is not None else ""
        extra = "".join(f" {name}" for name in self.options) + " sinks" * self.has_sinks + " kv8" * self.is_float8
        extra += " latent" * self.is_latent
        return f"{str(self.dtype)[6:]} {q}/{kv}x{dim}{values}{extra}"


ATTENTION = (
    Attention(torch.bfloat16, (32, 8, 128)),
    Attention(torch.bfloat16, (32, 8, 128), is_float8=True),
    Attention(torch.float32, (32, 8, 128)),
    Attention(torch.float32, (4, 2, 64)),
    Attention(torch.float16, (32, 8, 128)),
    Attention(torch.bfloat16, (14, 2, 64), {"sliding_window": 100}),
    Attention(torch.bfloat16, (16, 2, 64), {"sliding_window": 40}, has_sinks=True),
    Attention(torch.float16, (8, 8, 80)),
    Attention(torch.bfloat16, (8, 8, 96), {"chunk_size": 128}),
    Attention(torch.bfloat16, (8, 2, 256), {"sliding_window": 300, "soft_cap": 30.0}),
    Attention(torch.bfloat16, (4, 4, 192), v_dim=128),
    Attention(torch.bfloat16, (8, 1, 512)),
    Attention(torch.bfloat16, (16, 1, 576), v_dim=512, is_latent=True),
    Attention(torch.bfloat16, (128, 1, 576), is_float8=True, v_dim=512, is_latent=True),
    Attention(torch.float16, (40, 1, 288), v_dim=256, is_latent=True),
    Attention(torch.float32, (16, 1, 288), v_dim=256, is_latent=True),
)


def run_checks(output: Output, device: torch.device) -> None:
    """Run all checks and report each: its error, or its failure."""
    for name, check in checks():
        with output.part(f"check {name}"):
            output.write(f"check {name}: error {check(device):.1e}")


def checks() -> Iterator[tuple[str, Check]]:
    """Every check by name; it returns the relative error, 0 for exact operations.

    Raises (when called):
        ArithmeticError: the kernel is wrong; names the error.
    """
    for each in ATTENTION:
        for kind, rows in (("decode", DECODE), ("extend", EXTEND)):
            yield f"attention {kind} {each}", partial(attention, each, rows)
    for dtype in (torch.bfloat16, torch.float32):
        yield f"rotation and append {str(dtype)[6:]}", partial(rotation, dtype, False)
        yield f"norms and gates {str(dtype)[6:]}", partial(layers, dtype)
        yield f"log-probabilities {str(dtype)[6:]}", partial(logprobs, dtype)
        yield f"tokens {str(dtype)[6:]}", partial(tokens, dtype)
    for name in (*device_linear.FORMATS, device_linear.FLOATS):
        yield f"linear {name}", partial(device_linear.check, name, torch.bfloat16, False)
    yield "linear float8 inputs", device_linear.check_float8_inputs
    yield "linear q4_k gated", partial(device_linear.check, "q4_k", torch.bfloat16, True)
    for dtype in (torch.float16, torch.float32):
        yield f"linear q4_k {str(dtype)[6:]}", partial(device_linear.check, "q4_k", dtype, False)
    for name in device_recurrence.cases():
        yield f"recurrence {name}", partial(device_recurrence.check, name, torch.bfloat16)
    yield "recurrence gated qwen3.5 float32", partial(device_recurrence.check, "gated qwen3.5", torch.float32)
    yield "rotation and append kv8", partial(rotation, torch.bfloat16, True)
    yield "copies", copies
    yield "merge of states", merge
    yield "masks and penalties", masks_and_penalties
    for shape in device_experts.CHECKED:
        yield f"experts {shape.label}", partial(device_experts.check, shape)
    yield "automata", partial(automaton_checks.check, VOCAB_SIZE)


def attention(case: Attention, rows: Rows, device: torch.device) -> float:
    """Attention of a step over scattered pages."""
    (num_q, num_kv, dim), count = case.heads, len(rows.own)
    rng, generator = np.random.default_rng(0), torch.Generator(device).manual_seed(0)
    lengths = np.array([rows.shared + rows.half + own for own in rows.own], np.int32)
    pages = -(-lengths // PAGE_SIZE)
    num_pages = int(pages.sum()) + 1
    free = iter(rng.permutation(num_pages).tolist())
    table = np.zeros((count, int(pages.max())), np.int32)
    common, half = rows.shared // PAGE_SIZE, (rows.shared + rows.half) // PAGE_SIZE
    shared = np.zeros(count, np.int32)
    for row in range(count):
        depth = 0 if row == 0 else common if row == count // 2 else half
        table[row, :depth] = table[row - 1, :depth] if row else 0
        table[row, depth : pages[row]] = [next(free) for _ in range(pages[row] - depth)]
        shared[row] = depth * PAGE_SIZE
    plan_args: dict[str, Any] = {
        "page_table": table,
        "seq_lens": lengths,
        "cu_seqlens_q": np.cumsum([0, *rows.new]).astype(np.int32),
        "shared_lens": shared,
        "page_size": PAGE_SIZE,
        "num_q_heads": num_q,
        "num_kv_heads": num_kv,
        "head_dim": dim,
        "dtype": case.dtype,
        "device": device,
    }
    made = partial(torch.randn, generator=generator, device=device)
    q = made(sum(rows.new), num_q, dim).to(case.dtype)
    v_dim = case.v_dim if case.v_dim is not None else dim
    wide = [made(num_pages * PAGE_SIZE, num_kv, size) for size in (dim, v_dim)]
    named = torch.zeros(num_pages * PAGE_SIZE, dtype=torch.bool, device=device)
    for row in range(count):
        slots = table[row, np.arange(lengths[row]) // PAGE_SIZE] * PAGE_SIZE + np.arange(lengths[row]) % PAGE_SIZE
        named[torch.from_numpy(slots).long().to(device)] = True
    for each in wide:
        each[~named] = torch.nan
    pool = [each.to(torch.float8_e4m3fn if case.is_float8 else case.dtype) for each in wide]
    if case.is_latent:
        pool[1] = pool[0][..., :v_dim]
    exact = [each.float() if case.is_float8 else each for each in pool]
    sinks = made(num_q).to(case.dtype) if case.has_sinks else None
    plan = ops.plan_attention(**plan_args)
    if plan.backend != "triton":
        raise ArithmeticError(f"plan.backend = {plan.backend}: the triton backend must be checked")
    out = q.new_full((*q.shape[:2], v_dim), torch.nan)
    _, lse = ops.paged_attention_with_lse(
        q, pool[0], pool[1], plan, scale=dim**-0.5, sinks=sinks, out=out, **case.options
    )
    want = torch.empty(out.shape, dtype=torch.float32, device=device)
    want_lse = torch.empty(q.shape[:2], dtype=torch.float32, device=device)
    options = [case.options.get(name) for name in ("sliding_window", "chunk_size", "soft_cap")]
    REFERENCE.paged_attention(q, exact[0], exact[1], plan, dim**-0.5, *options, sinks, want, want_lse)
    near(lse, want_lse, 1e-4)
    return near(out, want, TOLERANCE[case.dtype])


def near(got: Tensor, want: Tensor, tolerance: float) -> float:
    """Relative error in the Frobenius norm.

    Raises:
        ArithmeticError: it is not below the tolerance.
    """
    error = float((got.double() - want.double()).norm() / want.double().norm())
    if not error < tolerance:
        raise ArithmeticError(f"error {error:.1e}, less than {tolerance:.0e} is allowed")
    return error


def equal(name: str, got: Tensor, want: Tensor) -> float:
    """0, where all elements are equal."""
    if not torch.equal(got, want):
        raise ArithmeticError(f"{name}: {int((got != want).sum())} of {want.numel()} elements differ")
    return 0.0


def rotation(dtype: torch.dtype, is_float8: bool, device: torch.device) -> float:
    """`rope_append` with norms, from a fused projection, and `write_kv`, which puts the same values."""
    made = partial(torch.randn, generator=torch.Generator(device).manual_seed(1), device=device)
    fused = made(37, 48 * 64).to(dtype).view(37, 48, 64)
    stored = torch.float8_e4m3fn if is_float8 else dtype
    angles = made(500, 32)
    positions = torch.arange(37, device=device) * 13
    slots = torch.randperm(64, generator=torch.Generator().manual_seed(0))[:37].to(device)
    weights = made(64).to(dtype), made(64).to(dtype)
    sides = []
    for backend, kind in ((triton_backend(), stored), (REFERENCE, torch.float32 if is_float8 else dtype)):
        q, k, v = fused.clone().split_with_sizes([32, 8, 8], 1)
        pools = torch.zeros(2, 64, 8, 64, device=device).to(kind)
        backend.rope_append(q, k, v, angles.cos(), angles.sin(), positions, pools[0], pools[1], slots, *weights, 1e-6)
        other = torch.zeros(2, 64, 8, 64, device=device).to(kind)
        backend.write_kv(k, v, other[0], other[1], slots)
        sides.append((q, *(part.to(stored).float() for part in (pools[0], pools[1], other[1]))))
    (q, k_pool, v_pool, v_other), (want_q, want_k, want_v, _) = sides
    equal("values", v_pool, want_v)
    equal("values of write_kv", v_other, want_v)
    error = near(q, want_q, TOLERANCE[dtype])
    return max(error, near(k_pool, want_k, 0.02 if is_float8 else TOLERANCE[dtype]))


def layers(dtype: torch.dtype, device: torch.device) -> float:
    """Norms with and without a residual, and gated products."""
    made = partial(torch.randn, generator=torch.Generator(device).manual_seed(2), device=device)
    errors, backend = [], triton_backend()
    for rows, size in ((1, 64), (33, 896), (5, 4096)):
        x, residual, weight = made(rows, size).to(dtype), made(rows, size).to(dtype), made(size).to(dtype)
        sums = residual.clone(), residual.clone()
        errors.append(
            near(
                backend.add_rms_norm(x, None, weight, 1e-5),
                REFERENCE.add_rms_norm(x, None, weight, 1e-5),
                TOLERANCE[dtype],
            )
        )
        got = backend.add_rms_norm(x, sums[0], weight, 1e-5)
        errors.append(near(got, REFERENCE.add_rms_norm(x, sums[1], weight, 1e-5), TOLERANCE[dtype]))
        errors.append(near(sums[0], sums[1], TOLERANCE[dtype]))
        pair = made(rows, 2 * size).to(dtype)
        errors.append(near(backend.silu_and_mul(pair), REFERENCE.silu_and_mul(pair), TOLERANCE[dtype]))
    return max(errors)


def logprobs(dtype: torch.dtype, device: torch.device) -> float:
    """Log-probabilities of given tokens and of the likeliest."""
    made = partial(torch.randn, generator=torch.Generator(device).manual_seed(3), device=device)
    logits = made(3, 5003).mul_(4).to(dtype)
    chosen = torch.tensor([0, 17, 5002], device=device)
    errors = []
    for num_top in (0, 1, 7):
        got = triton_backend().logprobs(logits, chosen, num_top)
        want = REFERENCE.logprobs(logits, chosen, num_top)
        equal("likeliest", got[1], want[1])
        errors.append(near(got[0], want[0], 1e-5))
        errors += [near(got[2], want[2], 1e-5)] if num_top else []
    return max(errors)


def tokens(dtype: torch.dtype, device: torch.device) -> float:
    """Sampling with every filter, with and without masks."""
    count, vocab_size, rng = 12, VOCAB_SIZE, np.random.default_rng(4)
    logits = torch.randn(count, vocab_size, generator=torch.Generator().manual_seed(4)).mul_(3).to(dtype)
    logits[0], logits[1, ::2] = logits[0].round(), -torch.inf
    logits[11] *= 0.01  # flat: filters retain most of the vocabulary
    for has_mask in (False, True):
        settings: dict[str, Any] = {
            "temperature": np.array([0.0, 0.7, 1.0, 1.0, 1.5, 1.0, 0.3, 1.0, 1.0, 1.0, 1.0, 1.0]),
            "top_k": np.array([0, 0, 50, 0, 1, 40, 0, 5000, 0, 0, 300, 0]),
            "top_p": np.array([1, 1, 1, 0.9, 1, 0.8, 0.5, 1, 1, 0.9999, 0.2, 0.95]),
            "min_p": np.array([0, 0, 0, 0, 0, 0, 0, 0, 0.05, 0, 0, 0.0]),
            "seeds": np.arange(count) * 12345,
            "choices": np.arange(count) % 3,
            "steps": np.arange(count) * 1000,
        }
        if has_mask:
            settings["bitmask"] = rng.integers(-(2**31), 2**31, (2, -(-vocab_size // 32))).astype(np.int32)
            settings["mask_rows"] = np.arange(count) % 3 - 1
        got, is_sound = ops.sample(logits.to(device), **settings)
        checked = checked_settings(
            count,
            vocab_size,
            bitmask=settings.pop("bitmask", None),
            mask_rows=settings.pop("mask_rows", None),
            **settings,
        )
        want, want_sound = REFERENCE.sample(logits, checked)
        equal("soundness", is_sound.cpu(), want_sound)
        equal("tokens", got.cpu(), want)
    return 0.0


def copies(device: torch.device) -> float:
    """Cyclic copies of pages, in two types."""
    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        before = torch.randn(64, 2, 64, generator=torch.Generator().manual_seed(5)).to(dtype).to(device)
        pools = [before.clone(), before.clone()]
        ops.copy_pages(pools, [0, 1, 2], [1, 2, 0], PAGE_SIZE)
        order = [2, 0, 1, 3]
        want = before.view(torch.uint8).view(4, -1)[order].view(-1)
        for pool in pools:
            equal("pages", pool.view(torch.uint8).view(-1), want)
    return 0.0


def merge(device: torch.device) -> float:
    """States over disjoint keys, some of them empty."""
    made = partial(torch.randn, generator=torch.Generator(device).manual_seed(6), device=device)
    outs, states = made(2, 37, 14, 96).bfloat16(), made(2, 37, 14)
    states[0, ::3], states[1, ::5] = -torch.inf, -torch.inf
    got = triton_backend().merge_states(outs[0], states[0], outs[1], states[1])
    want = REFERENCE.merge_states(outs[0], states[0], outs[1], states[1])
    equal("empty states", got[1].isinf(), want[1].isinf())
    near(got[1][got[1].isfinite()], want[1][want[1].isfinite()], 1e-5)
    return near(got[0], want[0], TOLERANCE[torch.bfloat16])


def masks_and_penalties(device: torch.device) -> float:
    """Masked and penalized logits."""
    plain = torch.randn(3, 3001, generator=torch.Generator().manual_seed(7))
    masks = np.random.default_rng(7).integers(-(2**31), 2**31, (2, 94)).astype(np.int32)
    sides = []
    for backend, place in ((triton_backend(), device), (REFERENCE, torch.device("cpu"))):
        logits = plain.clone().to(place)
        backend.apply_penalties(logits[1], np.arange(40), np.array([3, 3, 7, 90]), 1.3, 0.4, 0.2)
        backend.apply_token_mask(logits, masks, np.array([0, -1, 1], np.int32))
        sides.append(logits.cpu())
    return equal("logits", *sides)
