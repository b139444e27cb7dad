# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A dataset that a Job in the cluster brings onto the claim: its objects. Pure.

The pod runs the code of the module dataset, from an archive in a ConfigMap that cannot be changed, in the image of the
trainings. Addresses of files, which may be signed, are in a Secret. Both go when the Job has ended, which stays and
tells that the dataset is there. No field that Kubernetes 1.20 lacks.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, plan, pods

_CODE, _REQUEST = "/etc/trainium/dataset", "/etc/trainium/request"
ARCHIVE, REQUEST = "dataset.pyz", "request.json.gz"
# A Secret has at most 1 MiB, and Base64 makes four bytes of three.
_MOST_BYTES = 700_000
_RETRIES = 3
# What says which dataset it is; addresses are others at each run.
_KEYS = ("name", "source", "destination", "checksum", "checksums", "extract")

# It unpacks what the Internet sent, as root where the image is so: nothing of root but to write for other users.
_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
    "readOnlyRootFilesystem": True,
}
# What Kubernetes writes into a Job where nothing was said.
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "completionMode": ("NonIndexed",),
    "defaultMode": (0o644,),
    "dnsPolicy": ("ClusterFirst",),
    "imagePullPolicy": ("Always", "IfNotPresent"),
    "manualSelector": (False,),
    "podReplacementPolicy": ("TerminatingOrFailed",),
    "schedulerName": ("default-scheduler",),
    "securityContext": ({},),
    "suspend": (False,),
    "terminationGracePeriodSeconds": (30,),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
}

Object = dict[str, Any]


def app_of(request: Mapping[str, Any], volume: str) -> str:
    """What the objects of a dataset are called: another source, destination or volume is another Job."""
    told = [volume, [request.get(key) for key in _KEYS]]
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
    return names.app_name(f"dataset-{_name(request)}", digest)


def _name(request: Mapping[str, Any]) -> str:
    return str(request.get("name") or planner.default_name(request["source"]))


def check(request: Mapping[str, Any], site: Mapping[str, Any]) -> None:
    """Refuse what a pod cannot bring. Raises TrainiumError."""
    if planner.source_kind(request["source"]) not in ("s3", "http"):
        raise TrainiumError(
            f"The source of the dataset is {planner.shown(request['source'])}, a path, which no pod sees; give "
            "s3://bucket/prefix/ or the URL of a file"
        )
    shared, destination = str(site["shared"]).rstrip("/"), str(request["destination"])
    if not shared or not f"{destination}/".startswith(f"{shared}/"):
        raise TrainiumError(
            f"The destination of the dataset is {destination}; use a folder in {shared or 'trainium_shared_dir'}, "
            "which all pods share"
        )


def objects(request: Mapping[str, Any], site: Mapping[str, Any], code: bytes) -> list[Object]:
    """ConfigMap, Secret and Job.

    ``request`` as the module dataset takes it; ``site``: ``claim``, ``volume`` (what tells one file system from
    another), ``shared`` (where the pod sees it), ``image``, ``instance_type`` (of nodes that can mount it), and where
    wanted ``owner``, ``tolerations`` and ``pull_secrets``; ``code`` as `run_dataset.archive` gives it. Raises
    TrainiumError and ValueError.
    """
    check(request, site)
    app = app_of(request, str(site["volume"]))
    training = f"dataset-{_name(request)}"
    metadata = names.metadata(app, names.labels(training, app, "dataset"), training, site.get("owner") or "")
    named = f"{app}-{hashlib.sha256(code).hexdigest()[:12]}"
    configured = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "name": named},
        "binaryData": {ARCHIVE: base64.b64encode(code).decode("ascii")},
        "immutable": True,
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}
    volumes: list[Object] = [
        {"name": "code", "configMap": {"name": named}},
        {"name": "request", "secret": {"secretName": app, "defaultMode": 0o444}},
        {"name": "shared", "persistentVolumeClaim": {"claimName": site["claim"]}},
        {"name": "own", "emptyDir": {}},
    ]
    paths = [("code", _CODE), ("request", _REQUEST), ("shared", site["shared"])]
    paths += [("own", "/tmp"), ("own", "/var/tmp")]  # noqa: S108 - the pod's own
    container = {
        "name": "training",
        "image": pods.checked_image(site["image"]),
        "command": ["python3", "-I", f"{_CODE}/{ARCHIVE}", f"{_REQUEST}/{REQUEST}"],
        "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": _SECURITY,
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in paths],
    }
    spec = plan.beside_spec(container, volumes, site)
    return [configured, {**secret, "data": {REQUEST: _packed(request)}}, plan.pod_job(metadata, spec, _RETRIES)]


def is_ours(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a Job that is there runs what ours would: of another nobody knows what its end tells."""
    return _same(found["spec"], wanted["spec"])


def _same(found: Any, wanted: Any, name: str = "") -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        # Labels and selector are Kubernetes' own: without manualSelector a Job has its own pods only.
        own = name in ("metadata", "labels")
        more = {} if own else {key: found[key] for key in found if key not in {*wanted, "selector"}}
        if any(value not in _DEFAULTS.get(key, ()) for key, value in more.items()):
            return False
        return all(_same(found.get(key), value, key) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_same, found, wanted))
    return bool(found == wanted)


def _packed(request: Mapping[str, Any]) -> str:
    content = gzip.compress(json.dumps(dict(request), sort_keys=True).encode(), mtime=0)
    if len(content) > _MOST_BYTES:
        raise TrainiumError(
            f"The dataset has {len(request.get('files') or ())} files, whose addresses do not go into one Secret; pack "
            "them into archives, or take a part of them"
        )
    return base64.b64encode(content).decode("ascii")
