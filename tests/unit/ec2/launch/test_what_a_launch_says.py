"""Of a launch: the placement group, what check mode promises, and what is said became of its nodes."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import run_launch
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_launch import Wanted

from tests.unit.ec2.launch.test_launching import KIND, LAUNCH, PARAMS


def test_a_reservation_in_a_placement_group_is_used_in_it() -> None:
    arn = "arn:aws:ec2:us-west-2:123456789012:placement-group/near"
    there = Wanted(None, {"PlacementGroupArn": arn})
    named = {**PARAMS, "capacity_reservation": {"id": "cr-1"}}
    assert run_launch.group_of(named, there) == "near"
    assert run_launch.group_of({**named, "placement_group": "near"}, there) == "near"
    assert run_launch.group_of({**named, "placement_group": "far"}, Wanted(None, {})) == "far"
    assert run_launch.group_of(PARAMS, Wanted()) is None
    with pytest.raises(TrainiumError) as error:
        run_launch.group_of({**named, "placement_group": "far"}, there)
    assert str(error.value) == (
        "capacity reservation cr-1 lies in the placement group near, not in far; leave placement_group out, or "
        "name near"
    )


def test_a_type_that_ec2_does_not_know_has_no_interfaces() -> None:
    assert Wanted().vcpus == {}
    assert Wanted({"InstanceType": KIND, "VCpuInfo": {"DefaultVCpus": 8}}).vcpus == {KIND: 8}
    with pytest.raises(
        TrainiumError, match=r"instance type trn1.2xlarge does not exist in this region; check instance"
    ):
        run_launch.interfaces_of(PARAMS, Wanted())


@pytest.mark.parametrize(
    ("new", "bad", "replaced", "said"),
    [
        (0, 0, [], ""),
        (3, 3, [], "; the 3 nodes of this launch were terminated again"),
        (3, 1, [], "; 1 of the 3 nodes of this launch were terminated, and the next run launches as many again"),
        (3, 0, [], "; the 3 nodes of this launch were left as they are, for the next run to go on with"),
        (0, 0, ["i-1"], "; i-1 ended to be replaced, and the next run launches what is missing"),
        (1, 0, ["i-1"], "; the 1 nodes of this launch were left as they are, for the next run to go on with"),
        (
            1,
            1,
            ["i-1", "i-2"],
            "; the 1 nodes of this launch were terminated again; i-1, i-2 ended to be replaced, and",
        ),
    ],
)
def test_what_became_of_them_is_told(new: int, bad: int, replaced: list[str], said: str) -> None:
    found = run_launch.left_text(new, bad, replaced)
    assert found.startswith(said) and bool(found) == bool(said)
    assert ("ended to be replaced" in found) == (len(replaced) > new - bad)


@pytest.mark.parametrize("public", ["primary", "none"])
def test_check_mode_promises_a_node(public: str) -> None:
    params = {**PARAMS, "public_ip": public, "image_id": "", "placement_group": "near"}
    node = run_launch.future_node(params, 1, {"SubnetId": "", "AvailabilityZone": "us-west-2b"}, LAUNCH, {"Name": "a"})
    assert (node["instance_id"], node["state"], node["ami_launch_index"]) == ("(new 2)", "running", 1)
    assert (node["image_id"], node["subnet_id"], node["placement_group"]) == ("(unknown)", "(unknown)", "near")
    assert node["public_ip_address"] == ("(allocated)" if public == "primary" else "")
    assert (node["tags"], node["availability_zone"], node["instance_type"]) == ({"Name": "a"}, "us-west-2b", KIND)
    assert [item["interface_type"] for item in node["network_interfaces"]] == [item.kind for item in LAUNCH.interfaces]
    # It is the newest of all.
    assert node["launch_time"] > "9999"
