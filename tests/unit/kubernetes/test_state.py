"""What a pod waits for, and what will never come."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.state import waiting


@pytest.mark.parametrize(
    ("message", "never"),
    [
        ('0/2 nodes are available: persistentvolumeclaim "fsx-claim" not found.', True),
        ("0/2 nodes are available: 2 Insufficient aws.amazon.com/neuron.", False),
        ("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.", False),
    ],
)
def test_a_claim_that_nobody_has_made_is_not_waited_for(message: str, never: bool) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    pod = {"metadata": {"name": "a"}, "status": {"phase": "Pending", "conditions": [condition]}}
    assert waiting(pod, []) == (message.rstrip("."), never)
