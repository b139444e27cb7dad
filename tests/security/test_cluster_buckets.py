"""A cluster's bucket is that of its account, region and name: of no other, whatever it is called.

Played against the emulated S3 in tests/contract/network/test_bucket.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

VARS = Path(__file__).parents[2] / "roles" / "parallelcluster" / "vars" / "main.yml"
OWN = {
    "__parallelcluster_account": "123456789012",
    "parallelcluster_region": "us-west-2",
    "parallelcluster_name": "bert",
}
OTHERS = [
    {"__parallelcluster_account": "123456789013"},
    {"parallelcluster_region": "eu-west-1"},
    {"parallelcluster_name": "bert2"},
    {"parallelcluster_name": "Bert"},
]


def evaluated(name: str, **given: Any) -> Any:
    texts = yaml.safe_load(VARS.read_text(encoding="utf-8"))
    texts = {key: trust_as_template(value) if isinstance(value, str) else value for key, value in texts.items()}
    templar = Templar(loader=DataLoader(), variables={**texts, **OWN, **given})
    return templar.template(trust_as_template("{{ " + name + " }}"))


def own(*buckets: tuple[str, dict[str, str]]) -> list[str]:
    """What teardown would delete of these buckets (names and tags)."""
    found = [{"name": name, "bucket_tagging": tags} for name, tags in buckets]
    name = evaluated("__parallelcluster_bucket")
    listed = {"__parallelcluster_buckets": {"buckets": found}, "parallelcluster_bucket": name}
    made: list[str] = evaluated("__parallelcluster_own_buckets", **listed)
    return made


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other.values())))
def test_another_cluster_has_another_bucket(other: dict[str, str]) -> None:
    assert evaluated("__parallelcluster_bucket") != evaluated("__parallelcluster_bucket", **other)


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other.values())))
def test_a_bucket_of_this_name_with_the_tag_of_another_stays(other: dict[str, str]) -> None:
    name, tag = evaluated("__parallelcluster_bucket"), "trainium:bucket-of"
    theirs = evaluated("__parallelcluster_bucket_of", **other)
    mine = {tag: "123456789012/us-west-2/bert"}
    assert own((name, mine)) == [name]
    assert own((name, {tag: theirs})) == own((name, {"trainium:cluster": "bert"})) == own((name, {})) == []
    assert own((evaluated("__parallelcluster_bucket", **other), mine), (f"{name}-copy", mine)) == []
