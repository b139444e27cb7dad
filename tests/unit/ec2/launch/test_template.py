"""Launch templates: what they say and do not say, and when they need another version."""

from __future__ import annotations

import base64
import email
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, tag_list
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import known_network, plan_interfaces
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.template import (
    creation,
    digest,
    mime,
    new_version,
    plan_template,
    template_data,
)
from hypothesis import given
from hypothesis import strategies as st

PARAMS: dict[str, Any] = {
    "name": "bert-trn",
    "cluster_name": "bert",
    "role": "compute",
    "instance_type": "trn1.32xlarge",
    "security_groups": ["sg-1"],
    "market": "on-demand",
    "capacity_reservation": {"id": "cr-1"},
    "placement_group": "near",
    "user_data": "#!/bin/sh\ntrue\n",
}


def data(kind: str = "trn1.32xlarge", **changes: Any) -> dict[str, Any]:
    return template_data({**PARAMS, "instance_type": kind, **changes}, plan_interfaces(known_network(kind), None), {})


@pytest.mark.parametrize(("kind", "cards"), [("trn1.32xlarge", 8), ("trn1n.32xlarge", 16), ("trn1.2xlarge", 1)])
def test_every_card_and_nothing_that_eks_refuses(kind: str, cards: int) -> None:
    made = data(kind)
    assert [nic["NetworkCardIndex"] for nic in made["NetworkInterfaces"]] == list(range(cards))
    assert all("SubnetId" not in nic and nic["Groups"] == ["sg-1"] for nic in made["NetworkInterfaces"])
    assert not {"IamInstanceProfile", "InstanceMarketOptions", "MinCount", "ImageId", "SubnetId"} & set(made)
    assert (
        made["MetadataOptions"]["HttpPutResponseHopLimit"] == 2 and made["MetadataOptions"]["HttpTokens"] == "required"
    )
    assert made["BlockDeviceMappings"][0]["DeviceName"] == "/dev/xvda"
    assert made["Placement"] == {"GroupName": "near"}


def test_a_capacity_block_is_named_in_the_template() -> None:
    made = data(market="capacity-block")
    assert made["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert made["CapacityReservationSpecification"]["CapacityReservationTarget"] == {"CapacityReservationId": "cr-1"}


# Lines end as in a file; what MIME does with others is not its matter.
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\x00"), max_size=60
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("#cloud-config\n{}", "text/cloud-config"),
        ("---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n", "application/node.eks.aws"),
    ],
)
def test_user_data_is_named_as_who_reads_it_wants(text: str, kind: str) -> None:
    part = list(email.message_from_string(mime(text)).walk())[1]
    assert part.get_content_type() == kind


@given(TEXTS.filter(lambda text: "==trainium==" not in text))
def test_user_data_is_an_archive_that_holds_it(text: str) -> None:
    archive = mime(f"#!/bin/sh\n{text}")
    part = list(email.message_from_bytes(archive.encode()).walk())[1]
    assert part.get_content_type() == "text/x-shellscript"
    held = bytes(part.get_payload(decode=True)).decode()
    assert held.rstrip("\n") == f"#!/bin/sh\n{text}".rstrip("\n")
    assert mime(archive) == archive
    assert base64.b64decode(data(user_data=archive)["UserData"]).decode() == archive


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz")),
    st.dictionaries(st.sampled_from("abc"), st.just("x")),
)
def test_a_template_that_is_as_wanted_needs_nothing(there: dict[str, str], more: dict[str, str]) -> None:
    described, tags = digest(data()), {CLUSTER_TAG: "bert", **more}
    found = {"Tags": tag_list({**there, **tags})}
    assert not plan_template(found, described, digest(data()), tags).changes
    plan = plan_template({"Tags": tag_list(there)}, described, digest(data(key_name="k")), tags)
    assert plan.version and not plan.create and {**there, **plan.tags} == {**there, **tags}
    assert plan_template(None, "", described, tags).create


def test_the_same_request_has_the_same_token_and_another_version_another() -> None:
    assert creation(PARAMS, data(), [])["ClientToken"] == creation(PARAMS, data(), [])["ClientToken"]
    first, again, later = (new_version("lt-1", latest, data())["ClientToken"] for latest in (1, 1, 3))
    assert first == again != later


def test_a_template_and_each_version_say_what_they_were_made_from() -> None:
    tags = tag_list({CLUSTER_TAG: "bert"})
    made = creation(PARAMS, data(), tags)
    assert made.pop("ClientToken")
    assert made == {
        "LaunchTemplateName": "bert-trn",
        "VersionDescription": digest(data()),
        "LaunchTemplateData": data(),
        "TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags}],
    }
    later = new_version("lt-1", 3, data())
    assert later.pop("ClientToken")
    assert later == {
        "LaunchTemplateId": "lt-1",
        "VersionDescription": digest(data()),
        "LaunchTemplateData": data(),
    }
    assert digest(data()).startswith("trainium.cluster ") and len(digest(data())) <= 255
    assert digest(data()) != digest(data(key_name="k"))
