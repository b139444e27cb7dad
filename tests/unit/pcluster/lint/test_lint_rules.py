"""Broken configurations: each is refused offline, by the right sentence that names the key.

The schema is ParallelCluster's own; nothing asks AWS.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.rules import (
    errors,
    lint,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import View

from tests.unit.pcluster.lint.pcluster_broken import BROKEN, QUEUE, RESOURCE, WARNED, put
from tests.unit.pcluster.pcluster_samples import RESERVATION, configuration_of, findings_of, variables_of


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_configuration_is_refused_by_a_sentence_with_its_key(what: str) -> None:
    change, key, words = BROKEN[what]
    configuration = configuration_of("trn1")
    assert not findings_of(configuration)
    change(configuration)
    found = [finding for finding in errors(findings_of(configuration)) if finding.key == key]
    assert [finding for finding in found if words in finding.message], findings_of(configuration)
    for finding in found:
        assert finding.message.startswith(key)
        assert "\n" not in finding.message
        assert not finding.message.endswith(".")


@pytest.mark.parametrize(
    ("name", "preset", "words"),
    [
        ("1bert", "trn1", "begins with a letter"),
        ("bert_large", "trn1", "letters, digits and hyphens"),
        ("b" * 61, "trn1", "takes 60; shorten it"),
        ("b" * 41, "accounting", "takes 40 with Slurm accounting"),
    ],
)
def test_a_cluster_name_is_refused(name: str, preset: str, words: str) -> None:
    found = [finding for finding in findings_of(configuration_of(preset), name) if finding.key == "cluster_name"]
    assert len(found) == 1
    assert words in found[0].message


@pytest.mark.parametrize("what", WARNED)
def test_what_is_unwise_is_a_warning(what: str) -> None:
    change, key = WARNED[what]
    configuration = configuration_of("trn1")
    change(configuration)
    found = findings_of(configuration)
    assert not errors(found)
    assert [finding.key for finding in found] == [key]


def test_a_reservation_of_ones_own_may_have_a_placement_group() -> None:
    variables = variables_of(
        "p4de_custom_ami", capacity_reservation={"id": RESERVATION, "owner": "self"}, placement_group="true"
    )
    configuration = configuration_of(
        "p4de_custom_ami", capacity_reservation={"id": RESERVATION, "owner": "self"}, placement_group="true"
    )
    assert not findings_of(configuration, variables=variables)
    assert [finding.key for finding in findings_of(configuration)] == [
        "Scheduling/SlurmQueues/0/Networking/PlacementGroup/Enabled"
    ]


def test_an_older_sdk_runs_on_other_systems() -> None:
    configuration = configuration_of("trn1", os="ubuntu2204")
    found = lint(View(configuration, "bert", neuron_sdk="2.31.1"))
    assert [finding.key for finding in found] == ["Image/Os"]
    assert found[0].message.endswith("does not run on ubuntu2204; pin Neuron SDK 2.29.1")
    assert not lint(View(configuration, "bert"))


def test_a_cluster_without_neuron_runs_on_anything() -> None:
    assert not findings_of(configuration_of("gpu", os="rocky9"))


def test_the_schema_is_silent_where_a_rule_has_spoken() -> None:
    configuration = configuration_of("trn1")
    del configuration["HeadNode"]
    keys = [finding.key for finding in findings_of(configuration)]
    assert "HeadNode" not in keys
    assert keys.count("HeadNode/InstanceType") == 1


@pytest.mark.parametrize("garbage", [0, "text", [], [0], {"a": 1}, [{"a": None}]])
@pytest.mark.parametrize(
    "path", ["Scheduling", "Scheduling/SlurmQueues", QUEUE, RESOURCE, "SharedStorage", "HeadNode", "Tags", "Image"]
)
def test_no_shape_of_a_configuration_breaks_a_rule(path: str, garbage: Any) -> None:
    configuration = configuration_of("multi_queue")
    put(path, garbage)(configuration)
    lint(View(configuration, "bert"))


def of_schema(key: str, message: str) -> str:
    (found,) = [one for one in lint(View({}, "bert"), [{"key": key, "message": message}]) if one.key == key]
    return found.message


def test_the_schema_s_words_become_a_sentence() -> None:
    assert of_schema("A/B", "Unknown field.") == "A/B: there is no such key; correct its spelling or remove it"
    assert of_schema("", "Not good.") == "The configuration: not good; correct it"
