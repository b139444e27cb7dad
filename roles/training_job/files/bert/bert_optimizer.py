# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Optimizers and learning rate of the BERT pretraining.

AdamW and LAMB are written out here. PyTorch has no LAMB, and the libraries that have one bring a PyTorch or torchvision
of their own choice, while the version of PyTorch is Neuron's choice. An XLA device sees one graph in all steps: no
value decides on anything, state and gradients are there before the first step, and the numbers that change from step
to step are tensors with a dimension (see XlaBackend).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def _zeros(like: torch.Tensor) -> torch.Tensor:
    """Made on the host: on an XLA device they would be one more graph."""
    return torch.zeros(like.shape, dtype=like.dtype).to(like.device)


class Adam(torch.optim.Optimizer):
    """AdamW (Loshchilov and Hutter, 2019), or LAMB (You et al., 2020, algorithm 2) where ``trust`` is given.

    LAMB scales each layer's update by the norm of its weights over the norm of the update, at most ``trust``. Layers
    without weight decay, biases and norms, take the plain update.
    """

    def __init__(
        self,
        weights: Iterable[Any],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        trust: float = 0.0,
    ) -> None:
        super().__init__(weights, {"betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.trust = trust
        for group in self.param_groups:
            group["step"] = 0
            for weight in group["params"]:
                self.state[weight] = {"mean": _zeros(weight), "square": _zeros(weight)}

    @torch.no_grad()
    def advance(self, rate: float) -> None:
        """One step with this learning rate."""
        for group in self.param_groups:
            first, second = group["betas"]
            group["step"] += 1
            numbers = (rate, 1 - first ** group["step"], 1 - second ** group["step"])
            device = group["params"][0].device
            of_now, of_mean, of_square = (torch.tensor([number]).to(device) for number in numbers)
            for weight in group["params"]:
                mean, square = self.state[weight]["mean"], self.state[weight]["square"]
                mean.mul_(first).add_(weight.grad, alpha=1 - first)
                square.mul_(second).addcmul_(weight.grad, weight.grad, value=1 - second)
                update = mean / of_mean / ((square / of_square).sqrt() + group["eps"])
                if group["weight_decay"]:
                    update = update + group["weight_decay"] * weight
                    if self.trust:
                        update = update * self._trust(weight, update)
                weight.sub_(update * of_now)

    def _trust(self, weight: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        """The layer's factor; 1 where weights or update are zero."""
        weights, updates = weight.norm(), update.norm()
        ones = torch.ones_like(weights)
        ratio = torch.where(updates > 0, weights / torch.where(updates > 0, updates, ones), ones)
        return torch.where(weights > 0, ratio, ones).clamp(max=self.trust)


class Optimizer:
    """AdamW or LAMB in 32 bits, over a model that may have weights of 16 bits.

    Such a model gets copies of its weights in 32 bits: small updates would vanish in 16.
    """

    def __init__(self, model: torch.nn.Module, name: str) -> None:
        named = [(key, weight) for key, weight in model.named_parameters() if weight.requires_grad]
        self.weights = [weight for _key, weight in named]
        self.low = any(weight.dtype != torch.float32 for weight in self.weights)
        self.masters = self.weights
        if self.low:
            self.masters = [weight.detach().cpu().float().to(weight.device) for weight in self.weights]
        plain = [key.endswith("bias") or "LayerNorm" in key for key, _weight in named]
        groups = [
            {"params": [weight for weight, flag in zip(self.masters, plain) if flag == wanted], "weight_decay": decay}
            for wanted, decay in ((False, 0.01), (True, 0.0))
        ]
        self.inner = Adam(groups, eps=1e-6, trust=1.0) if name == "lamb" else Adam(groups)
        for weight in self.weights:
            weight.grad = _zeros(weight)

    def gradients(self) -> list[torch.Tensor]:
        return [weight.grad for weight in self.weights]

    def step(self, rate: float) -> None:
        """Apply the gradients, clipped to a norm of 1, and set them to zero."""
        if self.low:
            for weight, master in zip(self.weights, self.masters):
                master.grad = weight.grad.float()
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0, foreach=False)
        self.inner.advance(rate)
        with torch.no_grad():
            for weight, master in zip(self.weights, self.masters):
                weight.grad.zero_()
                if self.low:
                    weight.copy_(master)
                    # Kept, it would be one more result of the graph.
                    master.grad = None

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "masters": self.masters if self.low else []}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "step" not in state["inner"]["param_groups"][0]:
            raise SystemExit(
                "The checkpoint is of an earlier release of this script: set TRAINIUM_RESUME=0 to begin anew, or give "
                "another --output_dir."
            )
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
