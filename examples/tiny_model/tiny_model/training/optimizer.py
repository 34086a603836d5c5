"""The optimizer of the embedded model's training.

Matrices are trained by orthogonalised momentum (Muon, Jordan et al. 2024), the rest by Adam; weights are bfloat16 in the
forward pass with float32 masters.
"""

from typing import Any

import torch
from torch import Tensor

from tiny_model.training.network import MATRICES, Network

MATRIX_RATE, OTHER_RATE = 0.01, 0.002
CLIP_NORM = 1.0


class Optimizer:
    """Muon for the stacked matrices, Adam for the embedding and the norms. Owns the float32 masters of the bfloat16 network."""

    def __init__(self, network: Network) -> None:
        self._parameters = dict(network.named_parameters())
        self.masters = {name: parameter.detach().float().clone() for name, parameter in self._parameters.items()}
        self.momentum = {name: torch.zeros_like(master) for name, master in self.masters.items()}
        self.second = {name: torch.zeros_like(master) for name, master in self.masters.items() if name not in MATRICES}
        self.num_steps = 0

    @torch.no_grad()
    def step(self, rate: float) -> float:
        """Apply the gradients, scaled by `rate` of the full learning rates; returns the gradients' norm before clipping."""
        self.num_steps += 1
        gradients = {
            name: parameter.grad.float() for name, parameter in self._parameters.items() if parameter.grad is not None
        }
        norm = float(torch.stack([gradient.norm() for gradient in gradients.values()]).norm())
        scale = min(1.0, CLIP_NORM / (norm + 1e-6))
        for name, gradient in gradients.items():
            master, momentum = self.masters[name], self.momentum[name]
            gradient.mul_(scale)
            if name in MATRICES:
                momentum.mul_(0.95).add_(gradient)
                update = orthogonalised(gradient.add(momentum, alpha=0.95))
                master.mul_(1 - rate * MATRIX_RATE * 0.02)
                master.add_(update, alpha=-rate * MATRIX_RATE * max(1.0, master.shape[1] / master.shape[2]) ** 0.5)
            else:
                momentum.lerp_(gradient, 0.1)
                self.second[name].lerp_(gradient.square(), 0.02)
                corrected = momentum / (1 - 0.9**self.num_steps)
                spread = (self.second[name] / (1 - 0.98**self.num_steps)).sqrt_().add_(1e-8)
                master.sub_(corrected.div_(spread), alpha=rate * OTHER_RATE)
            self._parameters[name].copy_(master)
            self._parameters[name].grad = None
        return norm

    def state(self) -> dict[str, Any]:
        """What `restore` needs to go on from here, as `torch.save` takes it."""
        return {"masters": self.masters, "momentum": self.momentum, "second": self.second, "num_steps": self.num_steps}

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        for own in ("masters", "momentum", "second"):
            for name, tensor in state[own].items():
                getattr(self, own)[name].copy_(tensor)
        self.num_steps = state["num_steps"]
        for name, parameter in self._parameters.items():
            parameter.copy_(self.masters[name])


def orthogonalised(matrices: Tensor) -> Tensor:
    """Newton-Schulz iteration towards the nearest orthogonal matrix, for a stack [N, out, in]."""
    is_tall = matrices.shape[1] > matrices.shape[2]
    # Contiguous: sums of a transposed and a plain tensor took half the time of a step of the optimizer.
    x = (matrices.mT if is_tall else matrices).bfloat16().contiguous()
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        polynomial = torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, polynomial, x, beta=3.4445)
    return (x.mT if is_tall else x).contiguous().float()
