"""The training network against the Llama of `transformers`, and the optimizer."""

from dataclasses import replace

import pytest
import torch
from tiny_model.training.network import (
    MATRICES,
    Network,
    Shape,
    causal_mask,
    deepened,
    int8_state_dict_for_llama,
    llama_config,
    load_llama,
    state_dict_for_llama,
)
from tiny_model.training.optimizer import Optimizer, orthogonalised
from tiny_support import SMALL
from transformers import LlamaConfig, LlamaForCausalLM

from rtlang.model.loading.quantized.int8_rows import SCALE_SUFFIX

SHAPE = Shape(
    vocab_size=61, hidden_size=24, num_layers=2, num_q_heads=6, num_kv_heads=2, head_dim=8, intermediate_size=40
)


def random_network() -> Network:
    network = Network(SHAPE, seed=3)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return network


def llama_of(network: Network) -> LlamaForCausalLM:
    config = LlamaConfig(**llama_config(SHAPE, eos_token_id=1, pad_token_id=0))
    model = LlamaForCausalLM(config).float().eval()
    missing, unexpected = model.load_state_dict(state_dict_for_llama(network, torch.float32), strict=False)
    assert missing == ["lm_head.weight"]
    assert unexpected == []
    return model


def test_the_forward_pass_agrees_with_llama() -> None:
    network = random_network()
    token_ids = torch.randint(SHAPE.vocab_size, (3, 37), generator=torch.Generator().manual_seed(5))
    with torch.inference_mode():
        own = network.logits(network(token_ids))
        masked = network.logits(network(token_ids, causal_mask(37, torch.float32)))
        theirs = llama_of(network)(token_ids).logits
    torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(masked, own)


def test_gradients_agree_with_llama() -> None:
    network = random_network()
    model = llama_of(network)
    token_ids = torch.randint(SHAPE.vocab_size, (2, 19), generator=torch.Generator().manual_seed(6))
    network.logits(network(token_ids)).square().mean().backward()
    model(token_ids).logits.square().mean().backward()
    assert network.k.grad is not None
    torch.testing.assert_close(
        network.k.grad[1], model.model.layers[1].self_attn.k_proj.weight.grad, rtol=1e-3, atol=1e-5
    )
    torch.testing.assert_close(network.embedding.grad, model.model.embed_tokens.weight.grad, rtol=1e-3, atol=1e-5)


def test_a_later_token_does_not_change_an_earlier_state() -> None:
    network = random_network()
    token_ids = torch.arange(12).unsqueeze(0)
    changed = token_ids.clone()
    changed[0, 8] = 50
    with torch.inference_mode():
        before, after = network(token_ids), network(changed)
    torch.testing.assert_close(before[:, :8], after[:, :8])
    assert not torch.allclose(before[:, 8:], after[:, 8:])


def test_int8_weights_stand_for_the_same_network() -> None:
    network = random_network()
    plain, packed = state_dict_for_llama(network, torch.float32), int8_state_dict_for_llama(network)
    scales = {name for name in packed if name.endswith(SCALE_SUFFIX)}
    assert packed.keys() - scales == plain.keys()
    assert len(scales) == len(MATRICES) * SHAPE.num_layers
    for name, weight in plain.items():
        if name + SCALE_SUFFIX in scales:
            scale = packed[name + SCALE_SUFFIX]
            assert packed[name].dtype == torch.int8
            assert ((packed[name] * scale - weight).abs() <= 0.5001 * scale).all()
        else:
            torch.testing.assert_close(packed[name], weight.bfloat16())


def test_a_checkpoint_s_weights_are_taken_over() -> None:
    network, other = random_network(), Network(SHAPE, seed=8)
    load_llama(other, state_dict_for_llama(network, torch.float32))
    for own, taken in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(own, taken, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model.norm.weight": None}, "tensor model.norm.weight is missing"),
        ({"model.norm.weight": torch.ones(25)}, r"tensor model.norm.weight has shape \[25\]; \[24\] is needed"),
        (
            {"model.layers.2.mlp.up_proj.weight": torch.ones(40, 24)},
            "tensor model.layers.2.mlp.up_proj.weight is unknown",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name_and_change_nothing(
    change: dict[str, torch.Tensor | None], said: str
) -> None:
    network = Network(SHAPE, seed=8)
    before = network.q.detach().clone()
    state = {**state_dict_for_llama(random_network(), torch.float32), **change}
    with pytest.raises(ValueError, match=said):
        load_llama(network, {name: tensor for name, tensor in state.items() if tensor is not None})
    torch.testing.assert_close(network.q.detach(), before, rtol=0, atol=0)


@pytest.mark.parametrize("wanted", [3])
def test_a_deepened_network_says_the_same_and_can_be_trained(wanted: int) -> None:
    network = random_network()
    deeper = Network(replace(SHAPE, num_layers=wanted), seed=9)
    load_llama(deeper, deepened(state_dict_for_llama(network, torch.float32), 2, wanted))
    token_ids = torch.randint(SHAPE.vocab_size, (2, 19), generator=torch.Generator().manual_seed(7))
    said = deeper.logits(deeper(token_ids))
    torch.testing.assert_close(said, network.logits(network(token_ids)), rtol=0, atol=0)
    said.square().mean().backward()
    assert deeper.o.grad is not None
    assert deeper.down.grad is not None
    for gradient in (*deeper.o.grad, *deeper.down.grad):  # of each layer, the new ones too
        assert gradient.abs().max() > 0


def test_new_layers_are_copies_of_the_middle_one_but_for_what_they_add() -> None:
    network = random_network()
    state = deepened(state_dict_for_llama(network, torch.float32), 2, 3)
    for name in MATRICES.values():
        new, old = (state[f"model.layers.{layer}.{name}.weight"] for layer in (1, 0))
        is_zero = name in ("self_attn.o_proj", "mlp.down_proj")
        torch.testing.assert_close(new, torch.zeros_like(old) if is_zero else old, rtol=0, atol=0)


def test_the_default_shape_fits_the_package() -> None:
    weights = int8_state_dict_for_llama(Network(Shape()))
    num_bytes = sum(weight.numel() * weight.element_size() for weight in weights.values())
    assert num_bytes == pytest.approx(9.8e6, rel=0.01)
    assert num_bytes < 10e6  # what the repository and the wheel allow


def test_orthogonalised_matrices_have_singular_values_near_one() -> None:
    matrices = torch.randn(3, 48, 20, generator=torch.Generator().manual_seed(2))
    values = torch.linalg.svdvals(orthogonalised(matrices))
    assert values.min() > 0.5
    assert values.max() < 1.4


def test_an_optimizer_restored_from_its_state_takes_the_same_step() -> None:
    token_ids = torch.randint(SMALL.vocab_size, (3, 9), generator=torch.Generator().manual_seed(7))
    one, two = Network(SMALL, seed=1).bfloat16(), Network(SMALL, seed=2).bfloat16()
    first, second = Optimizer(one), Optimizer(two)

    def step(network: Network, optimizer: Optimizer) -> None:
        torch.autograd.backward(network.logits(network(token_ids)).float().square().mean())
        optimizer.step(0.5)

    embedding = first.masters["embedding"].clone()
    step(one, first)
    assert first.masters["o"].any()  # zero before, so that decay alone would leave it there
    assert (first.masters["embedding"] - embedding).abs().max() > 1e-4
    second.restore(first.state())
    step(one, first)
    step(two, second)
    for name in first.masters:
        torch.testing.assert_close(first.masters[name], second.masters[name])
