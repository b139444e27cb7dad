"""A proof makes and deletes a cluster of its own, whatever the files of variables beside it say of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
# What says how something is done, and not with what or to what. A new option of these roles is given a value of the
# proof's own in roles/prove/vars, or is named here.
HOW = {
    "network": {
        *("lease", "vpc_cidr", "public_key_file", "ssh_allowed_cidrs", "ssh_smallest_prefix", "address_service"),
        # One of the proof's own has its name; a bastion is none of it.
        *("s3_endpoint", "instance_profile", "bastion_instance_type", "bastion_image_ssm_parameter"),
    },
    "efa_nodes": {"image_name", "sdk_version", "instance_profile", "user_data", "wait_timeout"},
    # None is made.
    "shared_storage": {
        *("made_path", "made_throughput", "made_deployment_type", "made_capacity", "made_unit_throughput"),
        *("made_kms_key_id", "timeout", "lustre_repository", "lustre_key_url", "lustre_key_fingerprint"),
        *("hold_kernel", "scratch", "scratch_path", "scratch_filesystem", "scratch_mode"),
    },
    "teardown": set(),
}


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def given() -> dict[str, Any]:
    found: dict[str, Any] = loaded(ROLES / "prove/vars/main.yml")["__prove_variables"]
    return found


@pytest.mark.parametrize("role", HOW)
def test_what_is_made_and_deleted_is_the_proofs(role: str) -> None:
    every: set[str] = set()
    for entry in loaded(ROLES / role / "meta/argument_specs.yml")["argument_specs"].values():
        every |= {name for name in entry.get("options") or () if name.startswith(f"{role}_")}
    assert every - set(given()) == {f"{role}_{name}" for name in HOW[role]} & every
    assert {f"{role}_{name}" for name in HOW[role]} & set(given()) == set()


@pytest.mark.parametrize(
    ("ending", "value"),
    [
        ("_cluster_name", "{{ prove_cluster_name }}"),
        ("_region", "{{ prove_region }}"),
        ("_owner", "{{ trainium_owner }}"),
        ("_tags", "{{ {__prove_tag: 'true'} }}"),
        ("_image_id", ""),
        ("_image_ssm_parameter", ""),
        ("_keep_shared_storage", True),
    ],
)
def test_one_value_under_all_names(ending: str, value: Any) -> None:
    values = {name: held for name, held in given().items() if name.endswith(ending)}
    assert set(map(str, values.values())) == {str(value)}
    assert len(values) > 1


def test_no_name_of_a_cluster_or_a_region_of_another_role_is_left() -> None:
    """Roles that work on the nodes or on no backend of the proof are found by the names of their options."""
    names = set(given())
    for path in ROLES.glob("*/meta/argument_specs.yml"):
        # Nothing of EKS is made; what is deleted is teardown's. The proof has no image built and nothing diagnosed.
        if path.parts[-3].startswith("eks_") or path.parts[-3] in ("diagnose", "node_image", "dataset"):
            continue
        for entry in loaded(path)["argument_specs"].values():
            options = set(entry.get("options") or ())
            assert {name for name in options if name.endswith(("_cluster_name", "_region"))} <= names
