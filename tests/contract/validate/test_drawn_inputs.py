"""A short form of ``make faults``: what is drawn from the argument specs gets one sentence, and nobody is asked."""

from __future__ import annotations

from pathlib import Path

from tests.contract.conftest import Account
from tests.faults import inputs
from tests.faults.inputs import Case

# What the campaign has found: rules that fell over a value before the check of types could speak.
FOUND = [
    Case("network", "network_ssh_smallest_prefix", "soon", True),
    Case("network", "network_ssh_allowed_cidrs", {"a": 1}, True),
    Case("slurm", "slurm_repository_packages", 5, True),
    Case("slurm", "slurm_epilog", {"x\ny": ""}, True),
    Case("eks_cluster", "eks_cluster_node_groups", [{}], True),
    Case("eks_cluster", "eks_cluster_release_version", "-1", True),
    Case("eks_image", "eks_image_lock_file", 5, True),
    Case("eks_image", "eks_image_repository", 5, True),
    Case("neuron", "neuron_package_versions", 5, True),
    Case("node_image", "node_image_instance_type", 5, True),
    Case("prove", "prove_instance_type", {"a": 1}, True),
    Case("parallelcluster", "parallelcluster_configuration", [{}], True),
    Case("cluster_hosts", "cluster_hosts_mode", "x\ny", True),
    Case("acceptance", "acceptance_nodes", {"a": 1}, True),
    Case("dataset", "dataset_checksums", {"a": []}, False),
]


def test_every_value_is_taken_or_refused_in_one_sentence(cloud: Account, tmp_path: Path) -> None:
    cases = [*FOUND, *inputs.drawn(0, 44)]
    assert len({case.role for case in cases}) > 20 and sum(case.wrong for case in cases) > 25
    sentences = inputs.said(cases, tmp_path, cloud.api.url)
    faults = [(inputs.fault_of(case, said), case, said) for case, said in zip(cases, sentences, strict=True)]
    assert [one for one in faults if one[0]] == []
    assert cloud.api.calls() == []


def test_what_is_drawn_is_the_same_for_a_seed() -> None:
    assert repr(inputs.drawn(3, 60)) == repr(inputs.drawn(3, 60)) != repr(inputs.drawn(4, 60))


def test_a_bad_answer_is_noticed() -> None:
    case = Case("slurm", "slurm_prolog", "text", True)
    for sentence, wrong in (
        ("", "was taken"),
        ("slurm_prolog is <class 'str'>.", "of the code"),
        ("slurm_prolog is\nwrong.", "several lines"),
        ("slurm_prolog is wrong", "no end"),
        ("It is wrong.", "does not name"),
        ("slurm_prolog is wrong.", ""),
    ):
        assert wrong in inputs.fault_of(case, sentence) and bool(wrong) == bool(inputs.fault_of(case, sentence))
