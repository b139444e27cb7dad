"""What is said of a cluster's nodes and queues, however many there are."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.recognise import known_faults
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.nodes import (
    missing,
    node_lines,
    nodes_of,
    queue_lines,
    tolerations_of,
)


def node(name: str, neuron: int = 16, efa: int = 8, ready: str = "True", kind: str = "trn1.32xlarge") -> dict[str, Any]:
    allocatable = {"aws.amazon.com/neuron": str(neuron), "vpc.amazonaws.com/efa": str(efa)}
    conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    labels = {"node.kubernetes.io/instance-type": kind}
    status = {"allocatable": allocatable, "conditions": conditions}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def test_a_hundred_nodes_are_few_lines() -> None:
    items = [node(f"n{number:03}") for number in range(100)]
    items += [node("system", 0, 0, kind="m5.large"), {"metadata": {"name": "elsewhere"}}]
    found = nodes_of(items)
    assert (len(found), {one["complete"] and one["ready"] for one in found}) == (100, {True})
    line = "100 trn1.32xlarge, of which 100 can take pods, with 16 Neuron devices and 8 EFA interfaces each"
    assert node_lines(found) == [line]
    items[:20] = [node(f"n{number:03}", ready="Unknown") for number in range(20)]
    items[20] = node("n020", efa=7)
    items[21]["spec"]["unschedulable"] = True
    said = node_lines(nodes_of(items))
    assert said[0].startswith("100 trn1.32xlarge, of which 78 can take pods")
    assert said[1].startswith("Nodes of Kubernetes do not answer: n000, n001") and said[1].endswith(" and 12 more")
    assert said[2:] == [
        "Device plugins do not offer all devices of n020",
        "Closed to new pods (kubectl uncordon): n021",
    ]
    faults = [one["fault"] for one in known_faults({"": said})]
    assert faults == ["node of Kubernetes lost", "Unschedulable"]


def test_a_trn1n_has_sixteen_interfaces() -> None:
    found = nodes_of([node("a", efa=16, kind="trn1n.32xlarge"), node("b", kind="trn1n.32xlarge")])
    assert [one["complete"] for one in found] == [True, False]
    assert "16 EFA interfaces each" in node_lines(found)[0]


def test_a_node_without_devices_yet_is_told() -> None:
    (found,) = nodes_of([{**node("a"), "status": {}}])
    assert (found["ready"], found["complete"], found["neuron_devices"]) == (False, False, 0)


@pytest.mark.parametrize(
    ("text", "count"),
    [("16", 16), ("1k", 1000), ("2Ki", 2048), ("1e3", 1000), ("16000m", 16), ("1500m", 1), ("many", 0), ("-1", 0)],
)
def test_a_number_of_devices_is_read_as_kubernetes_writes_it(text: str, count: int) -> None:
    """Whoever is root of a node says what it offers, and one must not hide the others."""
    odd = node("a")
    odd["status"]["allocatable"]["aws.amazon.com/neuron"] = text
    found = nodes_of([odd, node("b")])
    assert [one["neuron_devices"] for one in found] == [count, 16]


def test_a_queue_that_takes_no_jobs_is_told() -> None:
    queues = [
        {"metadata": {"name": "default"}, "status": {"state": "Open"}},
        {"metadata": {"name": "trainium"}, "status": {"state": "Closed"}},
        {"metadata": {"name": "new"}},
    ]
    said = queue_lines(queues)
    assert said == ["Volcano's queue `new` status is `Unknown`", "Volcano's queue `trainium` status is `Closed`"]
    assert [one["fault"] for one in known_faults({"": said})] == ["Volcano's queue closed"]


TRN1, TRN2 = {"instance_type": "trn1.32xlarge", "count": 1}, {"instance_type": "trn2.48xlarge", "count": 1}


def test_each_group_has_to_have_its_nodes_with_the_devices_of_its_type() -> None:
    first, second = node("a"), node("b", efa=16, kind="trn2.48xlarge")
    assert missing([first, second, node("system", 0, 0, kind="m5.large")], [TRN1, TRN2], True, True) == []
    assert missing([first], [TRN1, TRN2, TRN2], True, True) == ["0 of 2 nodes of type trn2.48xlarge are in the cluster"]
    short = node("b", efa=8, kind="trn2.48xlarge")
    (said,) = missing([first, short], [TRN1, TRN2], True, True)
    assert said.startswith("1 of 1 nodes of type trn2.48xlarge")
    assert said.endswith("16 Neuron devices and 16 EFA interfaces: b (neuron 16, efa 8)")
    assert missing([first, short], [TRN1, TRN2], True, False) == []


def test_taints_of_a_group_are_tolerated_in_the_words_of_kubernetes() -> None:
    team = {"key": "team", "value": "a", "effect": "NO_SCHEDULE"}
    assert tolerations_of([team, {"key": "own", "effect": "NO_EXECUTE"}, team]) == [
        {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
        {"key": "own", "operator": "Exists", "effect": "NoExecute"},
    ]
