"""The recurrent operations of every backend against float64, and against the functions of transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import MiniMaxConfig
from transformers.models.bamba import modeling_bamba as bamba
from transformers.models.falcon_mamba import modeling_falcon_mamba as falcon_mamba
from transformers.models.kimi_linear import modeling_kimi_linear as kimi
from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention
from transformers.models.qwen3_next import modeling_qwen3_next as qwen

from rtlang_kernels.contract.state_plan import NO_SLOT
from tests.support.kernels.attention_cases import use_backend
from tests.support.kernels.recurrence_cases import (
    Case,
    Rows,
    check,
    check_cuts,
    conv_case,
    error,
    random_rows,
    recurrence_case,
    scan_case,
)
from tests.support.long_tests import crossed, is_long

BACKENDS = ["reference", "cpu"]
DTYPES = [torch.float32, torch.bfloat16]
KINDS: list[dict[str, object]] = [
    {},
    {"is_keyed": True},
    {"is_delta": False, "has_beta": False, "norm_eps": None},
    {"norm_eps": None, "has_beta": False, "is_keyed": True},
    {"is_delta": False, "scale": 1.0},
]
"""The gated delta rule, Kimi delta attention, Mamba-2 and lightning attention, and what no model combines."""


@pytest.mark.parametrize(
    ("name", "dtype", "width", "activation", "num_channels"),
    crossed(BACKENDS, DTYPES, [2, 4, *([3, 7] if is_long() else [])], [None, "silu"], [64, 37]),
    ids=str,
)
def test_causal_conv(name: str, dtype: torch.dtype, width: int, activation: str | None, num_channels: int) -> None:
    rng = np.random.default_rng(width)
    for seed in range(2):
        rows = random_rows(rng, 6, 9)
        options = {"has_bias": seed == 0, "activation": activation, "is_strided": seed == 1, "seed": seed}
        with use_backend(name):
            check(conv_case(rows, num_channels, width, dtype, **options), rows)  # type: ignore[arg-type]


def test_swish_is_silu() -> None:
    rows = random_rows(np.random.default_rng(0), 3, 5)
    out = [
        case.run(rows.plan(), case.states)
        for case in (conv_case(rows, 64, 4, torch.float32, activation=each) for each in ("silu", "swish"))
    ]
    assert torch.equal(*out)


@pytest.mark.parametrize(
    ("name", "dtype", "kind", "sizes"),
    crossed(BACKENDS, DTYPES, KINDS, [(2, 4, 64, 16), (1, 3, 16, 48), (2, 2, 21, 16)]),
    ids=str,
)
def test_gated_recurrence(
    name: str, dtype: torch.dtype, kind: dict[str, object], sizes: tuple[int, int, int, int]
) -> None:
    """`sizes`: heads of k and of v, sizes of k and of v."""
    rows = random_rows(np.random.default_rng(sum(sizes)), 6, 9)
    with use_backend(name):
        check(recurrence_case(rows, sizes[:2], sizes[2:], dtype, **kind), rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "dtype", "sizes"),
    crossed(BACKENDS, DTYPES, [(40, 16), (37, 5), *([(64, 16), (33, 16)] if is_long() else [])]),
    ids=str,
)
def test_selective_scan(name: str, dtype: torch.dtype, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes[0])
    for seed in range(2):
        rows = random_rows(rng, 6, 9)
        with use_backend(name):
            check(scan_case(rows, *sizes, dtype, has_d=seed == 0, seed=seed), rows)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_do_not_depend_on_how_a_sequence_is_cut(name: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    rows = Rows([29], [NO_SLOT], [[]], 13)
    cases: list[Case] = [
        conv_case(rows, 64, 4, dtype),
        conv_case(rows, 64, 4, dtype, has_bias=False, is_strided=True),
        recurrence_case(rows, (2, 4), (64, 16), dtype),
        recurrence_case(rows, (1, 2), (21, 48), dtype, is_keyed=True),
        recurrence_case(rows, (2, 2), (16, 48), dtype, is_delta=False, has_beta=False, norm_eps=None),
        scan_case(rows, 40, 16, dtype),
    ]
    with use_backend(name):
        for case in cases:
            check_cuts(case, rng, 29)


@pytest.mark.parametrize("name", BACKENDS)
def test_inputs_that_are_not_finite_stay_in_their_row(name: str) -> None:
    rows = Rows([3, 4], [NO_SLOT, NO_SLOT], [[(3, 0)], [(2, 1)]], 2)
    cases = conv_case(rows, 64, 4, torch.float32), recurrence_case(rows, (2, 2), (32, 48), torch.float32)
    for case in (*cases, scan_case(rows, 40, 16, torch.float32)):
        case.tensors[0] = case.tensors[0].clone()
        case.tensors[0][1] = float("nan")
        with use_backend(name):
            out = case.run(rows.plan(), case.states)
        assert bool(out[1].isnan().all())
        assert bool(out[3:].isfinite().all())
        assert bool(case.states[1].isfinite().all())


def test_an_unknown_activation_is_refused() -> None:
    rows = Rows([1], [NO_SLOT], [[]], 1)
    case = conv_case(rows, 8, 4, torch.float32, activation="tanh")
    with pytest.raises(ValueError, match="activation = 'tanh': expected None, 'silu' or 'swish'"):
        case.run(rows.plan(), case.states)


# Against the functions that the stock models call on a CPU: a prompt, then single tokens.

PROMPT, LATER = 70, 3
WHOLE = Rows([PROMPT + LATER], [NO_SLOT], [[(PROMPT, 0), (PROMPT + LATER, 1)]], 2)


def ours(name: str, case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Output of all tokens, the state after the prompt, and the last one."""
    with use_backend(name):
        out = case.run(WHOLE.plan(), case.states)
    return out, case.states[0], case.states[1]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_gated_delta_rule_is_that_of_qwen3_next(name: str, dtype: torch.dtype) -> None:
    case = recurrence_case(WHOLE, (2, 4), (32, 48), dtype)
    given = [each[None] for each in case.tensors]
    options = {"output_final_state": True, "use_qk_l2norm_in_kernel": True}
    prompt, state = qwen.torch_chunk_gated_delta_rule(*(each[:, :PROMPT] for each in given), **options)
    later, last = qwen.torch_recurrent_gated_delta_rule(
        *(each[:, PROMPT:].float() for each in given), initial_state=state, **options
    )
    out, found_state, found_last = ours(name, case)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-2
    assert error(out, torch.cat([prompt[0], later[0].to(dtype)])) < tolerance
    assert error(found_state, state[0]) < 1e-4
    assert error(found_last, last[0]) < 1e-4


@pytest.mark.parametrize("name", BACKENDS)
def test_kimi_delta_attention_is_that_of_kimi_linear(name: str) -> None:
    case = recurrence_case(WHOLE, (3, 3), (32, 16), torch.float32, is_keyed=True)
    case.tensors[3].clamp_(min=-1.0)  # the chunked form divides by products of decays
    given = [each[None] for each in case.tensors]
    options = {"output_final_state": True, "use_qk_l2norm_in_kernel": True}
    prompt, state = kimi.chunk_kimi_delta_attention(*(each[:, :PROMPT] for each in given), **options)
    later, last = kimi.recurrent_kimi_delta_attention(
        *(each[:, PROMPT:] for each in given), initial_state=state, **options
    )
    out, found_state, found_last = ours(name, case)
    assert error(out, torch.cat([prompt[0], later[0]])) < 1e-4
    assert error(found_state, state[0]) < 1e-4
    assert error(found_last, last[0]) < 1e-4


@pytest.mark.parametrize("name", BACKENDS)
def test_mamba_2_is_that_of_bamba(name: str) -> None:
    """q = C, k = B, v = dt * x, log_decay = dt * A; the state is stored with the state size first."""
    generator = torch.Generator().manual_seed(0)
    num_heads, head_dim, num_groups, state_size, length = 4, 48, 2, 16, PROMPT + LATER
    x = torch.randn(1, length, num_heads, head_dim, generator=generator)
    dt = torch.randn(1, length, num_heads, generator=generator)
    a = -torch.rand(num_heads, generator=generator) - 0.2
    b, c = torch.randn(2, 1, length, num_groups, state_size, generator=generator)
    d, dt_bias = torch.randn(num_heads, generator=generator), torch.randn(num_heads, generator=generator)
    part = slice(0, PROMPT)
    prompt, state = bamba.mamba2_chunk_scan(
        x[:, part], dt[:, part], a, b[:, part], c[:, part], 32, d, dt_bias, dt_softplus=True, return_final_states=True
    )
    later, running = [], state.clone()
    expanded = {
        "A": a[:, None, None].expand(-1, head_dim, state_size),
        "D": d[:, None].expand(-1, head_dim),
        "dt_bias": dt_bias[:, None].expand(-1, head_dim),
    }
    for token in range(PROMPT, length):
        step = dt[:, token, :, None].expand(-1, -1, head_dim)
        later.append(
            bamba.mamba2_selective_state_update(
                running, x[:, token], step, B=b[:, token], C=c[:, token], dt_softplus=True, **expanded
            )
        )
    steps = torch.nn.functional.softplus(dt + dt_bias)[0]
    tensors = [c[0], b[0], steps[..., None] * x[0], steps * a, None]
    states = torch.full((2, num_heads, state_size, head_dim), float("nan"))
    out, found_state, found_last = ours(name, Case("gated_recurrence", tensors, states))
    assert error(out + d[:, None] * x[0], torch.cat([prompt[0], torch.cat(later)])) < 1e-4
    assert error(found_state, state[0].mT) < 1e-4
    assert error(found_last, running[0].mT) < 1e-4


@pytest.mark.parametrize("name", BACKENDS)
def test_lightning_attention_is_that_of_minimax(name: str) -> None:
    """The module's own loop over blocks and its loop over tokens; only its projections are left out."""
    config = MiniMaxConfig(
        hidden_size=32,
        num_attention_heads=2,
        head_dim=16,
        num_hidden_layers=2,
        block_size=16,
        layer_types=["linear_attention", "full_attention"],
    )
    torch.manual_seed(0)
    module = MiniMaxLightningAttention(config, 0).eval()
    x = torch.randn(1, PROMPT + LATER, 32)
    found: list[Tensor] = []
    module.norm.register_forward_pre_hook(lambda module, args: found.append(args[0]))
    memory: dict[int, Tensor] = {}

    class Memory:
        def get_linear_cache(self, layer: int) -> Tensor | None:
            return memory.get(layer)

        def set_linear_cache(self, layer: int, state: Tensor) -> None:
            memory[layer] = state

    with torch.no_grad():
        module(x[:, :PROMPT], None, None, Memory())
        state = memory[0]
        module(x[:, PROMPT:], None, None, Memory())
        qkv = module.act_fn(module.qkv_proj(x[0])).view(PROMPT + LATER, 2, 48)
        log_decay = -module.slope_rate[:, 0, 0].expand(PROMPT + LATER, 2).contiguous()
        tensors = [*qkv.split(16, dim=2), log_decay, None]
        out, found_state, found_last = ours(
            name, Case("gated_recurrence", tensors, torch.full((2, 2, 16, 16), float("nan")))
        )
    assert error(out.flatten(1), torch.cat([each[0] for each in found])) < 1e-4
    assert error(found_state, state[0]) < 1e-4
    assert error(found_last, memory[0][0]) < 1e-4


@pytest.mark.parametrize("name", BACKENDS)
def test_the_scan_is_that_of_falcon_mamba(name: str) -> None:
    case = scan_case(WHOLE, 24, 16, torch.float32)
    x, delta, a, b, c, d = case.tensors
    part = slice(0, PROMPT)
    prompt, state = falcon_mamba.mamba_selective_scan(
        x.T[None, :, part], delta.T[None, :, part], a, b.T[None, :, part], c.T[None, :, part], d, return_last_state=True
    )
    running, later = state.clone(), []
    for token in range(PROMPT, PROMPT + LATER):
        later.append(
            falcon_mamba.mamba_selective_state_update(
                running, x[None, token], delta[None, token], a, b[None, token], c[None, token], d
            )
        )
    out, found_state, found_last = ours(name, case)
    assert error(out, torch.cat([prompt[0].T, torch.cat(later)])) < 1e-4
    assert error(found_state, state[0]) < 1e-4
    assert error(found_last, running[0]) < 1e-4


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_convolution_is_that_of_the_stock_models(name: str, dtype: torch.dtype) -> None:
    case = conv_case(WHOLE, 64, 4, dtype)
    x, weight, bias = case.tensors
    prompt = qwen.causal_conv1d_fn(x.T[None, :, :PROMPT], weight, bias, "silu")
    state = x[PROMPT - 3 : PROMPT].T[None].clone()
    later = qwen.causal_conv1d_update(x.T[None, :, PROMPT:], state, weight, bias, "silu")
    out, found_state, found_last = ours(name, case)
    assert error(out, torch.cat([prompt, later], dim=2)[0].T) < (1e-5 if dtype == torch.float32 else 1e-2)
    assert torch.equal(found_state, x[PROMPT - 3 : PROMPT].T)
    assert torch.equal(found_last, state[0])
