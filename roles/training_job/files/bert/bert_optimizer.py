# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Optimizers and learning rate of the BERT pretraining.

LAMB is written out here. PyTorch has none, and the libraries that have one bring a PyTorch or torchvision of their own
choice, while the version of PyTorch is Neuron's choice. There is no decision on a value in it, so an XLA device sees
one graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Lamb(torch.optim.Optimizer):
    """Layer-wise adaptive moments for large batches (You et al., 2020, algorithm 2).

    Each layer's Adam update is scaled by the norm of its weights over the norm of the update, at most ``largest``.
    Layers without weight decay, biases and norms, take the plain Adam update.
    """

    def __init__(
        self,
        weights: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        largest: float = 1.0,
    ) -> None:
        super().__init__(weights, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.largest = largest

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            first, second = group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state.update(step=0, mean=torch.zeros_like(weight), square=torch.zeros_like(weight))
                state["step"] += 1
                mean, square = state["mean"], state["square"]
                mean.mul_(first).add_(weight.grad, alpha=1 - first)
                square.mul_(second).addcmul_(weight.grad, weight.grad, value=1 - second)
                update = mean / (1 - first ** state["step"])
                update = update / ((square / (1 - second ** state["step"])).sqrt() + group["eps"])
                if group["weight_decay"]:
                    update = update + group["weight_decay"] * weight
                    update = update * self._trust(weight, update)
                weight.sub_(update * group["lr"])

    def _trust(self, weight: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        """The layer's factor; 1 where weights or update are zero."""
        weights, updates = weight.norm(), update.norm()
        ones = torch.ones_like(weights)
        ratio = torch.where(updates > 0, weights / torch.where(updates > 0, updates, ones), ones)
        return torch.where(weights > 0, ratio, ones).clamp(max=self.largest)


class Optimizer:
    """AdamW or LAMB in 32 bits, over a model that may have weights of 16 bits.

    Such a model gets copies of its weights in 32 bits: small updates would vanish in 16.
    """

    def __init__(self, model: torch.nn.Module, name: str) -> None:
        named = [(key, weight) for key, weight in model.named_parameters() if weight.requires_grad]
        self.weights = [weight for _key, weight in named]
        self.low = any(weight.dtype != torch.float32 for weight in self.weights)
        self.masters = [weight.detach().clone().float() for weight in self.weights] if self.low else self.weights
        plain = [key.endswith("bias") or "LayerNorm" in key for key, _weight in named]
        groups = [
            {"params": [weight for weight, flag in zip(self.masters, plain) if flag == wanted], "weight_decay": decay}
            for wanted, decay in ((False, 0.01), (True, 0.0))
        ]
        self.inner = Lamb(groups, lr=0.0) if name == "lamb" else torch.optim.AdamW(groups, lr=0.0)

    def step(self, rate: float) -> None:
        """Apply the gradients, clipped to a norm of 1."""
        if self.low:
            for weight, master in zip(self.weights, self.masters):
                master.grad = None if weight.grad is None else weight.grad.float()
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=False)
        for group in self.inner.param_groups:
            group["lr"] = rate
        self.inner.step()
        if self.low:
            with torch.no_grad():
                for weight, master in zip(self.weights, self.masters):
                    weight.copy_(master)

    def zero_grad(self) -> None:
        for weight in [*self.weights, *self.masters]:
            weight.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "masters": self.masters if self.low else []}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])
        with torch.no_grad():
            for master, kept in zip(self.masters, state["masters"]):
                master.copy_(kept)


def learning_rate(step: int, peak: float, warmup: int, total: int, power: float) -> float:
    """The rate of a step counted from 0: up to ``peak`` in a line, then down to 0 at step ``total`` as a polynomial.

    A ``total`` of 0 keeps the peak.
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    if not total:
        return peak
    left = max(0.0, (total - step) / max(1, total - warmup))
    return peak * left**power
