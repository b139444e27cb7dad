"""TensorBoard beside a training on Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import tensorboard

from tests.unit.kubernetes.definitions import SITE, completed

SHOWN = {**SITE, "tensorboard": True, "service_account": "trainer"}
EVENTS = "/fsx/trainium/output/bert"


def test_it_reads_the_claim_and_only_port_forward_reaches_it() -> None:
    made = tensorboard.deployment(completed({"tensorboard": EVENTS}, SHOWN), SHOWN)
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert made["metadata"]["name"] == "bert-tensorboard"
    assert (made["metadata"]["labels"]["trainium.cluster/training"], container["image"]) == (
        "bert",
        "registry.example/bert:1",
    )
    assert container["command"][-6:] == ["--logdir", EVENTS, "--host", "127.0.0.1", "--port", "6006"]
    assert container["volumeMounts"] == [{"name": "shared", "mountPath": "/fsx", "readOnly": True}]
    # It takes no device, so that a training still fits beside it.
    assert not [name for kind in container["resources"].values() for name in kind if "/" in name]
    assert ("serviceAccountName" in pod, pod["automountServiceAccountToken"]) == (False, False)
    selector = made["spec"]["selector"]["matchLabels"]
    assert selector.items() <= made["spec"]["template"]["metadata"]["labels"].items()
    # Of another definition of the same training it is the same object.
    other = tensorboard.deployment(completed({"tensorboard": EVENTS, "args": {"lr": 1}}, SHOWN), SHOWN)
    assert other == made


@pytest.mark.parametrize("name", ["b" * 64, "B.e_r-t"])
def test_its_name_is_a_dns_label(name: str) -> None:
    made = tensorboard.deployment(completed({"tensorboard": EVENTS, "name": name}, SHOWN), SHOWN)
    assert len(made["metadata"]["name"]) <= 63 and made["metadata"]["name"].endswith("-tensorboard")


@pytest.mark.parametrize(("definition", "said"), [({}, "is ''"), ({"tensorboard": "/opt/events"}, "is '/opt/events'")])
def test_a_training_without_events_on_the_claim_is_refused(definition: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"tensorboard of the training job {said}; name there the folder in /fsx"):
        completed(definition, SHOWN)
    assert completed(definition)
