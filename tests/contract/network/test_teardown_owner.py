"""teardown.yml deletes nothing of another owner, whatever it is and whatever the backend is said to be."""

from __future__ import annotations

import pytest

from tests.contract.conftest import REPOSITORY
from tests.contract.network.conftest import Controller
from tests.contract.network.test_teardown import MINE, World, left

ALICE = {"Key": "trainium:owner", "Value": "arn:aws:iam::123456789012:user/alice"}
WITHOUT_LEASE = ("-enetwork_lease=free",)
# With these, the cluster of Kubernetes is somebody else's and need not be in AWS.
ELSEWHERE = ("-etrainium_backend=eks", "-etrainium_eks_create=false")


def teardown(controller: Controller, name: str, *options: str) -> str:
    """What the playbook says, which must fail."""
    given = {**controller.variables, "trainium_cluster_name": name}
    words = [f"-e{key}={value}" for key, value in given.items()]
    done = controller.run(REPOSITORY / "playbooks" / "teardown.yml", *words, *options)
    assert done.returncode == 2, done.stdout
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("options", [ELSEWHERE, WITHOUT_LEASE], ids=["eks that others made", "without the lease"])
def test_the_network_and_the_nodes_of_another_stay(controller: Controller, options: tuple[str, ...]) -> None:
    controller.api.reset()
    World(controller, [*MINE, ALICE], "bert")
    before = left(controller, MINE)
    assert "belongs to arn:aws:iam::123456789012:user/alice" in teardown(controller, "bert", *options)
    assert left(controller, MINE) == before


def test_the_role_alone_asks_who_is_calling(controller: Controller) -> None:
    controller.api.reset()
    World(controller, [*MINE, ALICE], "bert")
    before = left(controller, MINE)
    controller.variables["trainium_cluster_name"] = "bert"
    done = controller.role("teardown")
    assert done.returncode == 2
    assert "belongs to arn:aws:iam::123456789012:user/alice" in " ".join(done.stdout.split())
    assert left(controller, MINE) == before


def test_a_reservation_of_another_stays(controller: Controller) -> None:
    controller.api.reset()
    controller.ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone="us-west-2d",
        InstanceCount=1,
        TagSpecifications=[
            {
                "ResourceType": "capacity-reservation",
                "Tags": [*MINE, ALICE, {"Key": "trainium:reservation", "Value": "a"}],
            }
        ],
    )
    assert "belongs to arn:aws:iam::123456789012:user/alice" in teardown(controller, "bert")
    (still,) = controller.ec2.describe_capacity_reservations()["CapacityReservations"]
    assert still["State"] == "active"
