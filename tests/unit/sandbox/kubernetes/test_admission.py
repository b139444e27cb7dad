"""The stand-in of Volcano's admission: what it refuses, and its certificate."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.kubernetes.inside import admission
from sandbox.paths import REPOSITORY

QUEUES = [
    {"metadata": {"name": "default"}, "status": {"state": "Open"}},
    {"metadata": {"name": "trainium"}, "status": {"state": "Closed"}},
]


def review(queue: str, resource: str = "jobs") -> dict[str, Any]:
    asked = {"uid": "u", "resource": {"resource": resource}, "object": {"spec": {"queue": queue}}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


@pytest.mark.parametrize(
    ("queue", "resource", "message"),
    [
        ("default", "jobs", ""),
        ("", "jobs", ""),
        ("trainium", "jobs", "can only submit job to queue with state `Open`, queue `trainium` status is `Closed`;"),
        ("none", "jobs", 'unable to find job queue: queues.scheduling.volcano.sh "none" not found;'),
        ("none", "queues", ""),
    ],
)
def test_jobs_of_queues_that_are_not_open_are_refused(queue: str, resource: str, message: str) -> None:
    response = admission.answer(review(queue, resource), QUEUES)["response"]
    assert (response["uid"], response["allowed"]) == ("u", not message)
    assert response.get("status", {}).get("message", "") == message


def test_its_certificate_is_that_of_the_service(tmp_path: Path) -> None:
    public, key = admission.certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(public))
    (found,) = context.get_ca_certs()
    assert found["subject"] == ((("commonName", admission.HOST),),)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(public, key)


def test_the_webhooks_are_those_of_the_manifest() -> None:
    manifest = REPOSITORY / "sandbox/kubernetes/manifests/volcano.manifest"
    found = list(yaml.safe_load_all(manifest.read_text(encoding="utf-8")))
    webhooks = [one for one in found if one["kind"] == "ValidatingWebhookConfiguration"]
    assert tuple(one["metadata"]["name"] for one in webhooks) == admission.NAMES
    (service,) = (one["metadata"] for one in found if one["kind"] == "Service")
    assert f"{service['name']}.{service['namespace']}.svc" == admission.HOST
