"""The optimizers and the learning rate of the BERT script against what their papers say, in numbers of Python's own."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from tests.training.conftest import SCRIPTS

# The weights of a small layer and its bias, the gradients of some steps, and the rate.
WEIGHTS = {"small": ([0.3, -0.4], [0.1]), "large": ([30.0, -40.0], [1.0]), "zero": ([0.0, 0.0], [0.0])}
# The first is longer than 1, the norm to which they are clipped, and the others are not.
STEPS = [([6.0, 8.0], [0.5]), ([0.3, -0.1], [0.2]), ([-0.02, 0.5], [0.1])]
RATE, FIRST, SECOND, DECAY = 0.1, 0.9, 0.999, 0.01
CODE = """
import json, sys, torch, bert_optimizer
asked = json.load(sys.stdin)
said = {"rates": [bert_optimizer.learning_rate(*one) for one in asked["rates"]]}
for name, (weights, bias) in asked["weights"].items():
    for kind in ("adamw", "lamb"):
        layer = torch.nn.Linear(2, 1)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([weights]))
            layer.bias.copy_(torch.tensor(bias))
        optimizer = bert_optimizer.Optimizer(layer, kind)
        for of_weights, of_bias in asked["steps"]:
            layer.weight.grad.copy_(torch.tensor([of_weights]))
            layer.bias.grad.copy_(torch.tensor(of_bias))
            optimizer.step(asked["rate"])
            assert not layer.weight.grad.any() and not layer.bias.grad.any()
        said[f"{name} {kind}"] = [layer.weight[0].tolist(), layer.bias.tolist()]
# Ten updates, each of which is too small for a weight of 16 bits.
layer = torch.nn.Linear(1, 1).to(torch.bfloat16)
with torch.no_grad():
    layer.weight.fill_(1)
optimizer = bert_optimizer.Optimizer(layer, "adamw")
for _step in range(10):
    layer.weight.grad.fill_(1)
    optimizer.step(0.001)
said["sixteen"] = layer.weight.item()
print(json.dumps(said))
"""
Vector = list[float]


def norm(values: Vector) -> float:
    return math.sqrt(math.fsum(value * value for value in values))


def expected(weights: Vector, bias: Vector, lamb: bool) -> list[Vector]:
    """Both optimizers by their definitions; biases have neither decay nor a factor of trust."""
    eps = 1e-6 if lamb else 1e-8
    parts, means, squares = [[*weights], [*bias]], [[0.0] * 2, [0.0]], [[0.0] * 2, [0.0]]
    for number, gradients in enumerate(STEPS, 1):
        length = norm([*gradients[0], *gradients[1]])
        clipped = [[value * min(1.0, 1 / (length + 1e-6)) for value in part] for part in gradients]
        for part, values in enumerate(parts):
            updates = []
            for place, gradient in enumerate(clipped[part]):
                mean = means[part][place] = FIRST * means[part][place] + (1 - FIRST) * gradient
                square = squares[part][place] = SECOND * squares[part][place] + (1 - SECOND) * gradient**2
                update = mean / (1 - FIRST**number) / (math.sqrt(square / (1 - SECOND**number)) + eps)
                updates.append(update + (DECAY * values[place] if part == 0 else 0.0))
            trust = 1.0
            if lamb and part == 0 and norm(values) and norm(updates):
                trust = min(1.0, norm(values) / norm(updates))
            parts[part] = [value - RATE * trust * update for value, update in zip(values, updates)]
    return parts


# Step from 0, peak, steps of the warm-up, the step at which it is 0, power -> the rate.
RATES = {
    (0, 1.0, 5, 0, 1.0): 0.2,
    (3, 1.0, 5, 0, 1.0): 0.8,
    (4, 1.0, 5, 25, 1.0): 1.0,
    (5, 1.0, 5, 25, 1.0): 1.0,
    (6, 1.0, 5, 25, 1.0): 0.95,
    (15, 1.0, 5, 25, 1.0): 0.5,
    (15, 1.0, 5, 25, 2.0): 0.25,
    (24, 1.0, 5, 25, 1.0): 0.05,
    (25, 1.0, 5, 25, 1.0): 0.0,
    (30, 1.0, 5, 25, 1.0): 0.0,
    (30, 1.0, 5, 0, 1.0): 1.0,
    (0, 4e-4, 0, 0, 1.0): 4e-4,
}


def test_optimizers_and_rates_are_those_of_their_papers(python: Path) -> None:
    asked = {"rates": [*RATES], "weights": WEIGHTS, "steps": STEPS, "rate": RATE}
    done = subprocess.run(
        [str(python), "-c", CODE],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["rates"] == pytest.approx([*RATES.values()])
    for name, (weights, bias) in WEIGHTS.items():
        for kind in ("adamw", "lamb"):
            of_weights, of_bias = expected(weights, bias, kind == "lamb")
            # Of a weight that was nothing the plain update is taken; then it is something.
            assert said[f"{name} {kind}"][0] == pytest.approx(of_weights, rel=1e-4), (name, kind)
            assert said[f"{name} {kind}"][1] == pytest.approx(of_bias, rel=1e-4), (name, kind)
    # Where weights are small, trust makes a step smaller; else the two would be the same.
    assert said["small lamb"] != said["small adamw"]
    assert said["sixteen"] == pytest.approx(0.99, abs=0.004)
