"""Baselines of the GPU benchmark: other implementations of attention and sampling, on the same tensors in the same run.

A baseline that is not installed, or does not support a shape, is left out. FlashInfer: Ye et al. 2025.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from rtlang_kernels import ops
from rtlang_kernels_bench.device_cases import AttentionCase, Measure

logger = logging.getLogger(__name__)


def tried(name: str, measured: Callable[[], float]) -> dict[str, float]:
    """Time a baseline: microseconds by its name, or nothing if it raises (foreign code, an unsupported shape, too little memory)."""
    try:
        return {name: measured()}
    except Exception as error:
        logger.warning("baseline %s is skipped: %s", name, error)
        return {}


def sdpa(case: AttentionCase, measure: Measure) -> dict[str, float]:
    """SDPA on contiguous KV, and including the gather from pages: microseconds by name."""
    slots = _slots(case)
    rows = len(slots)

    def contiguous(k: Tensor, v: Tensor) -> Tensor:
        q = case.q.view(rows, 1, *case.q.shape[1:]).transpose(1, 2)
        return scaled_dot_product_attention(q, k.transpose(1, 2), v.transpose(1, 2), enable_gqa=True)

    def gathered(pool: tuple[Tensor, Tensor]) -> Tensor:
        return contiguous(pool[0][slots], pool[1][slots])

    def laid_out() -> float:
        return measure([partial(contiguous, pool[0][slots], pool[1][slots]) for pool in case.pools])[0]

    return tried("SDPA", laid_out) | tried(
        "gather+SDPA", lambda: measure([partial(gathered, pool) for pool in case.pools])[0]
    )


def flex(case: AttentionCase, measure: Measure, tolerance: float) -> dict[str, float]:
    """Compiled FlexAttention on contiguous KV, without sharing: microseconds by name. Left out if its result differs from ours."""

    def measured() -> float:
        attend = torch.compile(flex_attention, dynamic=False)
        slots = _slots(case)
        q = case.q[:, :, None]  # [rows, num_q_heads, 1, head_dim]

        def laid_out(pool: tuple[Tensor, Tensor]) -> Callable[[], Tensor]:
            k, v = (part[slots].transpose(1, 2).contiguous() for part in pool)
            return lambda: attend(q, k, v, enable_gqa=True)

        calls = [laid_out(pool) for pool in case.pools]
        _agree(calls[0]()[:, :, 0], _ours(case), tolerance)
        return measure(calls)[0]

    return tried("compiled FlexAttention", measured)


def prompt_kernels(case: AttentionCase, measure: Measure, tolerance: float) -> dict[str, float]:
    """Our calls with each of the other candidates for prompts: microseconds by name. Left out if its result differs from ours."""
    from rtlang_kernels.triton.attention.prompt_choice import PromptChoice, PromptShape, choice_for, set_choice
    from rtlang_kernels.triton.attention.prompt_trial import CHOICES, RECT_ATTN, candidates

    args, want = case.plan_args, _ours(case).clone()
    found: dict[str, float] = {}
    heads = args["num_q_heads"], args["num_kv_heads"], args["head_dim"]
    shape = PromptShape(case.plan().device, case.q.dtype, *heads, args["page_size"])
    before = choice_for(shape)
    try:
        for name in candidates(shape)[0]:
            if name != RECT_ATTN:
                set_choice(shape, PromptChoice(*CHOICES[name], "benchmark"))

                def measured() -> float:
                    calls = case.calls(case.plan())
                    _agree(calls[0](), want, tolerance)
                    return measure(calls)[0]

                found |= tried(name, measured)
    finally:
        set_choice(shape, before)
    return found


def compiled(definition: Callable[..., object], sets: Sequence[Sequence[Tensor]], measure: Measure) -> dict[str, float]:
    """`torch.compile` of a definition, on sets of arguments in turn: microseconds by name."""

    def measured() -> float:
        made = torch.compile(definition, dynamic=False)
        return measure([partial(made, *tensors) for tensors in sets])[0]

    return tried("torch.compile", measured)


def _slots(case: AttentionCase) -> Tensor:
    """Slots of the keys of each row, in order: [rows, length]."""
    table = torch.from_numpy(case.plan_args["page_table"]).long()
    page_size, position = case.plan_args["page_size"], torch.arange(sum(case.shape.tokens))
    slots: Tensor = table[:, position // page_size] * page_size + position % page_size
    return slots.to(case.q.device)


def _ours(case: AttentionCase) -> Tensor:
    """Result of our kernel on the first pool, float32."""
    k, v = case.pools[0]
    return ops.paged_attention(case.q, k, v, case.plan(), scale=case.q.shape[2] ** -0.5).float()


def _agree(got: Tensor, want: Tensor, tolerance: float) -> None:
    """Raise ArithmeticError if a baseline's result differs from ours."""
    error = float((got.float() - want).norm() / want.norm())
    if not error < tolerance:
        raise ArithmeticError(f"its result differs from ours, error {error:.1e}")


def plain_sampling(sets: Sequence[Tensor], temperature: float, measure: Measure) -> dict[str, float]:
    """Softmax and sampling in plain torch: microseconds by name.

    `torch.multinomial` reads back whether its weights are valid, which cannot be captured in a graph; this launches the same kernels.
    """

    def sample(logits: Tensor) -> Tensor:
        weights = torch.softmax(logits.float() / temperature, dim=-1)
        return (weights / torch.empty_like(weights).exponential_()).argmax(dim=-1)

    return tried("softmax+multinomial", lambda: measure([partial(sample, logits) for logits in sets])[0])


def flashinfer(case: AttentionCase, measure: Measure, tolerance: float) -> dict[str, float]:
    """FlashInfer over the same pages, without sharing and with its multi-level cascade, if it is installed and supports the shape.

    Planning is excluded, as it is for ours. Left out if its result differs from ours.
    """
    if find_spec("flashinfer") is None:
        return {}
    import flashinfer as peer

    args, q, device, page_size = case.plan_args, case.q, case.q.device, case.plan_args["page_size"]
    table = torch.from_numpy(args["page_table"])
    heads = (args["num_q_heads"], args["num_kv_heads"], args["head_dim"], page_size)
    want = _ours(case)

    def paged(pool: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        k, v = (part.view(-1, page_size, *part.shape[1:]) for part in pool)
        return k, v

    def levels() -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Per level of the tree: first row and first page of each node; pages; tokens in the last page of each node."""
        column = 0
        for count, size in zip(case.shape.nodes, case.shape.tokens, strict=True):
            width = -(-size // page_size)
            first = torch.arange(count) * len(table) // count
            pages = table[first, column : column + width].reshape(-1)
            last = torch.full((count,), (size - 1) % page_size + 1)
            rows = torch.cat([first, torch.tensor([len(table)])])
            yield rows, torch.arange(count + 1) * width, pages, last
            column += width

    def workspace() -> Tensor:
        return torch.empty(128 << 20, dtype=torch.uint8, device=device)

    def there(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=torch.int32)

    def alone() -> Any:
        length, width = sum(case.shape.tokens), sum(-(-size // page_size) for size in case.shape.tokens)
        if width != -(-length // page_size):
            raise ValueError("a level ends inside a page")
        wrapper = peer.BatchDecodeWithPagedKVCacheWrapper(workspace(), "NHD", use_tensor_cores=True)
        starts, last = torch.arange(len(table) + 1) * width, torch.full((len(table),), (length - 1) % page_size + 1)
        wrapper.plan(
            there(starts), there(table.reshape(-1)), there(last), *heads, q_data_type=q.dtype, kv_data_type=q.dtype
        )
        return wrapper

    def cascade() -> Any:
        if len(case.shape.nodes) == 1:
            raise ValueError("the tree has one level")
        rows, starts, pages, last = ([there(part) for part in parts] for parts in zip(*levels(), strict=True))
        wrapper = peer.MultiLevelCascadeAttentionWrapper(len(rows), workspace(), "NHD")
        wrapper.plan(rows, starts, pages, last, *heads, q_data_type=q.dtype)
        return wrapper

    def checked(make: Callable[[], Any]) -> float:
        wrapper = make()
        _agree(wrapper.run(q, paged(case.pools[0])), want, tolerance)
        return measure([partial(wrapper.run, q, paged(pool)) for pool in case.pools])[0]

    peers: dict[str, float] = {}
    for name, make in (("flashinfer", alone), ("flashinfer cascade", cascade)):
        peers |= tried(name, partial(checked, make))
    return peers
