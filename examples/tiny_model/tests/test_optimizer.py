"""The optimizer of training: what its updates look like, and its state."""

import torch
from tiny_model.training.network import Network, Shape
from tiny_model.training.optimizer import Optimizer, orthogonalised

SMALL = Shape(hidden_size=32, num_layers=1, num_q_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=48)


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
