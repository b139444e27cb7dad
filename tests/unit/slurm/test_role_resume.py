"""Which drained nodes the role slurm resumes once slurm.conf has changed."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

TASKS = Path(__file__).resolve().parents[3] / "roles/slurm/tasks/resume.yml"
LINES = [
    "n1 gres/neuron count reported lower than configured (15 < 16)",
    "n2 Low RealMemory, gres/neuron count reported lower than configured (15 < 16)",
    "n3 bad fan",
    "n4 trainium: replaces i-0a1b2c3d4e5f60006, was gres/neuron count reported lower than configured (15 < 16)",
]


def test_a_node_that_is_to_be_replaced_stays_drained() -> None:
    (text,) = (task["vars"]["__slurm_resumed"] for task in yaml.safe_load(TASKS.read_text()) if "vars" in task)
    templar = Templar(DataLoader(), variables={"__slurm_waiting": {"stdout_lines": LINES}})
    assert templar.template(trust_as_template(text)) == ["n1", "n2"]
