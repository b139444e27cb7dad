"""The configuration of nodes and of kubectl, as those who read it would."""

from __future__ import annotations

import email
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

TEMPLATES = Path(__file__).parents[3] / "roles/eks_cluster/templates"
CLUSTER = {"endpoint": "https://a.example", "certificate_authority": "Q0E=", "service_cidr": "172.20.0.0/16"}
KNOWN: dict[str, Any] = {
    "eks_cluster_name": "bert",
    "eks_cluster_region": "us-west-2",
    "eks_cluster_image_id": "",
    "eks_cluster_lustre": False,
    "eks_cluster_user_data": "",
    "__eks_cluster": {"cluster": CLUSTER},
}


def rendered(name: str, **variables: Any) -> str:
    templar = Templar(loader=DataLoader(), variables={**KNOWN, **variables})
    return str(templar.template(trust_as_template((TEMPLATES / name).read_text())))


def parts(**variables: Any) -> list[tuple[str, str]]:
    """Type and text of each part, as cloud-init and nodeadm tell them apart."""
    message = email.message_from_string(rendered("user_data.j2", **variables))
    assert message["MIME-Version"] == "1.0" and message.is_multipart()
    return [(part.get_content_type(), str(part.get_payload())) for part in message.get_payload()]  # type: ignore[union-attr]


def test_a_node_of_an_image_of_the_user_s_is_told_its_cluster() -> None:
    (kind, text), (other, _script) = parts(eks_cluster_image_id="ami-1")
    assert (kind, other) == ("application/node.eks.aws", "text/x-shellscript")
    found = yaml.safe_load(text)
    assert (found["apiVersion"], found["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
    assert found["spec"]["cluster"] == {
        "name": "bert",
        "apiServerEndpoint": "https://a.example",
        "certificateAuthority": "Q0E=",
        "cidr": "172.20.0.0/16",
    }


def test_any_other_is_told_by_eks() -> None:
    assert [kind for kind, _text in parts()] == ["text/x-shellscript"]


@pytest.mark.parametrize("lustre", [True, False, "false"])
@pytest.mark.parametrize("own", ["", "echo mine"])
def test_a_script_is_of_what_was_asked_for(lustre: object, own: str) -> None:
    ((_kind, text),) = parts(eks_cluster_lustre=lustre, eks_cluster_user_data=own)
    lines = text.splitlines()
    assert lines[0] == "#!/bin/bash" and lines[-1] == "exit 0"
    assert ("lustre_client() {" in lines) is (lustre is True)
    assert ("echo mine" in lines) is bool(own)


@pytest.mark.parametrize("storage", [{"trainium_shared_storage": "fsx"}, {"eks_storage_file_system_id": "fs-1"}])
def test_a_node_that_needs_lustre_does_not_join_without_it(storage: dict[str, str]) -> None:
    ((_kind, text),) = parts(eks_cluster_lustre=True, **storage)
    assert "  exit 1" in text.splitlines()
    ((_kind, text),) = parts(eks_cluster_lustre=True, trainium_shared_storage="efs", eks_storage_file_system_id="")
    assert "  exit 1" not in text.splitlines()


@pytest.mark.parametrize(("given", "namespace"), [({}, "trainium"), ({"trainium_namespace": "mine"}, "mine")])
def test_kubectl_reaches_the_cluster(given: dict[str, str], namespace: str) -> None:
    """A kubeconfig as the user guide has it, "Connect kubectl to an EKS cluster by creating a kubeconfig file"."""
    found = yaml.safe_load(rendered("kubeconfig.j2", **given))
    assert (found["apiVersion"], found["kind"]) == ("v1", "Config")
    (context,) = [one["context"] for one in found["contexts"] if one["name"] == found["current-context"]]
    assert context["namespace"] == namespace
    (cluster,) = [one["cluster"] for one in found["clusters"] if one["name"] == context["cluster"]]
    assert cluster == {"server": "https://a.example", "certificate-authority-data": "Q0E="}
    (user,) = [one["user"]["exec"] for one in found["users"] if one["name"] == context["user"]]
    assert user["apiVersion"] == "client.authentication.k8s.io/v1beta1" and user["interactiveMode"] == "Never"
    asked = "aws --region us-west-2 eks get-token --cluster-name bert --output json"
    assert [user["command"], *user["args"]] == asked.split()
