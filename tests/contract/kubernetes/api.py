"""A small API server of Kubernetes in memory: objects by path, labels, dryRun, merge patches, logs, refusals.

What its controllers would do, tests do themselves: they make pods and say how these are.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import urllib.parse
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
ROLE = yaml.safe_load((Path(__file__).parents[3] / "roles/eks_addons/files/researcher.yml").read_text())
NOW = "2026-11-23T07:00:00Z"
TOKEN = "a-token"
# Every kubeconfig of EKS has one. Nothing checks this, as the server speaks HTTP; without it a client loads all that a
# machine trusts, for each request. Its key was thrown away.
CERTIFICATE = """
-----BEGIN CERTIFICATE-----
MIIBdjCCARugAwIBAgIUBhcaX/4aKc1AVdOkV6P1R4W/gXowCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjgwMzE4MDhaGA8yMTI2MTEwNDAzMTgw
OFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABBVI
EghnjGRdqcTlTxEmBCl7f61Y9nDJidTATLQhR3xzCN1nHYtoM+9uSmmaWYDiXCrf
7ZGpgNGuHtcWjtybBWyjUzBRMB0GA1UdDgQWBBSFD/wMKasPiqE9cCGe4FU/w3ff
xDAfBgNVHSMEGDAWgBSFD/wMKasPiqE9cCGe4FU/w3ffxDAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0kAMEYCIQDzzQSYstLxeEhmkAlKmL1gQuTyRvuOaoB3
28fpzXQOEgIhAKzGZvSjLI4L4PJHKoVht4FkYxtrJsBBSPq6hf+FbwFF
-----END CERTIFICATE-----
"""
# Group and version, plural -> kind, and whether it is in a namespace.
KINDS = {
    ("api/v1", "configmaps"): ("ConfigMap", True),
    ("api/v1", "secrets"): ("Secret", True),
    ("api/v1", "services"): ("Service", True),
    ("api/v1", "serviceaccounts"): ("ServiceAccount", True),
    ("api/v1", "pods"): ("Pod", True),
    ("api/v1", "events"): ("Event", True),
    ("api/v1", "namespaces"): ("Namespace", False),
    ("api/v1", "nodes"): ("Node", False),
    ("api/v1", "persistentvolumes"): ("PersistentVolume", False),
    ("api/v1", "persistentvolumeclaims"): ("PersistentVolumeClaim", True),
    ("apis/apps/v1", "daemonsets"): ("DaemonSet", True),
    ("apis/apps/v1", "deployments"): ("Deployment", True),
    ("apis/batch/v1", "jobs"): ("Job", True),
    ("apis/batch.volcano.sh/v1alpha1", "jobs"): ("Job", True),
    ("apis/scheduling.volcano.sh/v1beta1", "queues"): ("Queue", False),
    ("apis/rbac.authorization.k8s.io/v1", "clusterroles"): ("ClusterRole", False),
    ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"): ("ClusterRoleBinding", False),
    ("apis/rbac.authorization.k8s.io/v1", "roles"): ("Role", True),
    ("apis/rbac.authorization.k8s.io/v1", "rolebindings"): ("RoleBinding", True),
    ("apis/storage.k8s.io/v1", "csidrivers"): ("CSIDriver", False),
    ("apis/storage.k8s.io/v1", "storageclasses"): ("StorageClass", False),
}
_AMONG = re.compile(r"([^ ,]+) in \(([^)]*)\)")
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_PATH = re.compile(r"(api/v1|apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(/log)?")


def discovered(path: str) -> Object | None:
    """What a client reads before it uses a kind by its name; None for another path."""
    versions = dict.fromkeys(version for version, _plural in KINDS)
    if path == "version":
        return {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
    if path == "api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "apis":
        groups = []
        for version in versions:
            if version != "api/v1":
                _apis, group, number = version.split("/")
                one = {"groupVersion": f"{group}/{number}", "version": number}
                groups.append({"name": group, "versions": [one], "preferredVersion": one})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if path in versions:
        resources = [
            {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": inside, "verbs": VERBS}
            for (version, plural), (kind, inside) in KINDS.items()
            if version == path
        ]
        group = path.removeprefix("apis/").removeprefix("api/")
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources}
    return None


class RefusalError(Exception):
    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


def merged(old: Any, new: Any) -> Any:
    """RFC 7386."""
    if not isinstance(new, dict):
        return new
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class Cluster:
    """The server, and what is in it."""

    def __init__(self, folder: Path) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.namespaces = {"default"}
        self.labels: dict[str, dict[str, str]] = {}
        self.logs: dict[str, str] = {}
        self.calls: list[tuple[str, str]] = []
        # (verb, resource) -> refusal, such as ("POST", "jobs").
        self.refusals: dict[tuple[str, str], RefusalError] = {}
        self.has_volcano = True
        # What happens once, when a Job was made.
        self.then: Callable[[], None] | None = None
        # Names of what is applied and does not run.
        self.broken: set[str] = set()
        # Whether whoever asks may do everything, and not what the Role says only.
        self.admin = False
        self.lock = threading.Lock()
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_arguments: Any) -> None:
                """Nothing on the screen."""

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                # Which is JSON as well, but for what is applied.
                body = yaml.safe_load(self.rfile.read(length)) if length else None
                try:
                    if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                        raise RefusalError(401, "Unauthorized", "Unauthorized")
                    with cluster.lock:
                        applied = "apply-patch" in (self.headers.get("Content-Type") or "")
                        code, found = cluster.route(self.command, self.path, body, applied)
                except RefusalError as refusal:
                    code = refusal.code
                    found = {"kind": "Status", "status": "Failure", "code": code, "reason": refusal.reason}
                    found["message"] = str(refusal)
                content = found.encode() if isinstance(found, str) else json.dumps(found).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.kubeconfig = folder / "kubeconfig"
        # As JSON, which is YAML.
        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        named = {
            "clusters": {
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(CERTIFICATE.encode()).decode(),
                }
            },
            "users": {"user": {"token": TOKEN}},
            "contexts": {"context": {"cluster": "a", "user": "a"}},
        }
        lists = {kind: [{"name": "a", **one}] for kind, one in named.items()}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "a", **lists}
        self.kubeconfig.write_text(json.dumps(config))

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def route(self, verb: str, path: str, body: Any, applied: bool = False) -> tuple[int, Any]:
        url = urllib.parse.urlsplit(path)
        query = dict(urllib.parse.parse_qsl(url.query))
        dry = query.get("dryRun") == "All" or (verb == "DELETE" and body and body.get("dryRun") == ["All"])
        self.calls.append((verb + (" dry" if dry else ""), url.path))
        path = url.path.strip("/")
        known = discovered(path)
        if known:
            return 200, known
        found = _PATH.fullmatch(path)
        resource = f"{found[1]}/{found[3]}" if found else ""
        if found and resource == "api/v1/namespaces":
            return self._namespace(verb, found[4] or "", body, dry)
        if not found or (found[1], found[3]) not in KINDS or ("volcano" in resource and not self.has_volcano):
            raise RefusalError(404, "NotFound", "the server could not find the requested resource")
        self._check_role(verb, found[1].removeprefix("apis/").split("/")[0], found)
        if (verb, found[3]) in self.refusals:
            raise self.refusals[verb, found[3]]
        if found[5]:
            if found[4] not in self.logs:
                raise RefusalError(400, "BadRequest", f'container "training" in pod "{found[4]}" is waiting to start')
            lines = self.logs[found[4]].splitlines(keepends=True)
            return 200, "".join(lines[-int(query["tailLines"]) :] if "tailLines" in query else lines)
        key = (resource, found[2] or "", found[4] or "")
        if applied and key not in self.objects:
            self._object("POST", key, body, query, dry)
            self._run(key)
            return 201, self.objects.get(key, body)
        return self._object(verb, key, body, query, dry)

    def _run(self, key: tuple[str, str, str]) -> None:
        """What is applied runs at once."""
        found = {} if key[2] in self.broken else self.objects.get(key, {})
        done = [{"type": "Complete", "status": "True"}]
        counted = ("desiredNumberScheduled", "updatedNumberScheduled", "numberReady")
        status: dict[str, Object] = {
            "DaemonSet": {"observedGeneration": 1, **dict.fromkeys(counted, 1)},
            "Deployment": {"observedGeneration": 1, "replicas": 1, "availableReplicas": 1},
            "Job": {"conditions": done},
            "PersistentVolumeClaim": {"phase": "Bound"},
            "Queue": {"state": "Open"},
        }
        if found.get("kind") in status:
            found["metadata"]["generation"] = 1
            found["status"] = status[found["kind"]]
        if found.get("kind") == "Deployment":
            found["spec"].setdefault("replicas", 1)

    def _check_role(self, verb: str, group: str, found: re.Match[str]) -> None:
        """The modules do with what a researcher has."""
        if self.admin:
            return
        named = {"GET": "get" if found[4] else "list", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[verb]
        wanted = ("" if group == "api" else group, found[3] + ("/log" if found[5] else ""), named)
        if not any(
            wanted[0] in rule["apiGroups"] and wanted[1] in rule["resources"] and wanted[2] in rule["verbs"]
            for rule in ROLE["rules"]
        ):
            raise RefusalError(403, "Forbidden", f"{wanted} is forbidden: User may not")

    def _namespace(self, verb: str, name: str, body: Any, dry: bool) -> tuple[int, Any]:
        if (verb, "namespaces") in self.refusals:
            raise self.refusals[verb, "namespaces"]
        if verb in ("POST", "PATCH"):
            made = body["metadata"]["name"]
            if not dry:
                self.namespaces.add(made)
                self.labels[made] = merged(self.labels.get(made), body["metadata"].get("labels") or {})
            return 201, body
        if name not in self.namespaces:
            raise RefusalError(404, "NotFound", f'namespaces "{name}" not found')
        labels = {"labels": self.labels[name]} if self.labels.get(name) else {}
        return 200, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **labels}}

    def _object(self, verb: str, key: tuple[str, str, str], body: Any, query: Any, dry: bool) -> tuple[int, Any]:
        resource, namespace, name = key
        if verb == "GET" and not name:
            wanted = [one.split("=") for one in query.get("labelSelector", "").split(",") if "=" in one]
            among = _AMONG.findall(query.get("labelSelector", ""))
            items = [one for at, one in sorted(self.objects.items()) if at[:2] == key[:2]]
            labelled = [
                one
                for one in items
                if all((one["metadata"].get("labels") or {}).get(label) == value for label, value in wanted)
                and all(
                    (one["metadata"].get("labels") or {}).get(label) in re.split(r",\s*", of) for label, of in among
                )
            ]
            # A list says once of what its items are.
            bare = [{name: one[name] for name in one if name not in ("apiVersion", "kind")} for one in labelled]
            return 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": bare}
        if verb == "POST":
            name = body["metadata"]["name"]
            if namespace and namespace not in self.namespaces:
                raise RefusalError(404, "NotFound", f'namespaces "{namespace}" not found')
            if (resource, namespace, name) in self.objects:
                raise RefusalError(409, "AlreadyExists", f'{resource.rpartition("/")[2]} "{name}" already exists')
            if not dry:
                self.objects[resource, namespace, name] = json.loads(json.dumps(body))
                added = {"uid": str(uuid.uuid4()), "creationTimestamp": NOW}
                self.objects[resource, namespace, name]["metadata"].update(added)
                happens, self.then = (self.then, None) if resource.endswith("/jobs") else (None, self.then)
                if happens:
                    happens()
            return 201, body
        if key not in self.objects:
            raise RefusalError(404, "NotFound", f'{resource.rpartition("/")[2]} "{name}" not found')
        if verb == "PATCH" and not dry:
            self.objects[key] = merged(self.objects[key], body)
        if verb == "DELETE" and not dry:
            del self.objects[key]
            # Foreground: its pods go first.
            for pod in [at for at in self.objects if at[0] == "api/v1/pods" and at[1] == namespace]:
                owner = self.objects[pod]["metadata"].get("ownerReferences", [{}])[0].get("name")
                if owner == name:
                    del self.objects[pod]
        return 200, self.objects.get(key, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    # --- what controllers, scheduler and nodes would do ---

    def named(self, kind: str, namespace: str = "trainium") -> list[str]:
        return sorted(at[2] for at in self.objects if at[0].endswith(f"/{kind}") and at[1] == namespace)

    def job(self, name: str, namespace: str = "trainium") -> Object:
        return next(one for at, one in self.objects.items() if at[0].endswith("/jobs") and at[1:] == (namespace, name))

    def pod(self, job: str, status: Object, node: str = "", age: int = 0) -> str:
        """A pod of a plain Job; the newer the higher its age."""
        with self.lock:
            template = self.job(job)["spec"]["template"]
            name = f"{job}-{'abcde'[age]}"
            pod = {
                "metadata": {
                    "name": name,
                    "labels": template["metadata"]["labels"],
                    "creationTimestamp": f"2026-11-23T07:0{age}:00Z",
                    "ownerReferences": [{"name": job}],
                },
                "spec": {**template["spec"], **({"nodeName": node} if node else {})},
                "status": {"startTime": f"2026-11-23T07:0{age}:00Z", **status},
            }
            self.objects["api/v1/pods", "trainium", name] = pod
            return name

    def volcano(self, name: str, phase: str, pods: Object | None = None, **status: Any) -> None:
        """What Volcano makes of a job: its phase, and a pod a task with the given status, in the same order."""
        with self.lock:
            job = self.job(name)
            job["status"] = {"state": {"phase": phase, "lastTransitionTime": "2026-11-23T07:09:00Z"}, **status}
            for task in job["spec"]["tasks"] if pods else []:
                pod = f"{name}-{task['name']}-0"
                labels = {**task["template"]["metadata"]["labels"], "volcano.sh/job-name": name}
                metadata = {
                    "name": pod,
                    "labels": labels,
                    "creationTimestamp": NOW,
                    "ownerReferences": [{"name": name}],
                }
                spec = {**task["template"]["spec"], "nodeName": f"node-{task['name'][-1]}"}
                self.objects["api/v1/pods", "trainium", pod] = {
                    "metadata": metadata,
                    "spec": spec,
                    "status": {"startTime": NOW, **(pods or {})},
                }

    def event(self, kind: str, name: str, reason: str, message: str, type_: str = "Warning") -> None:
        event: Object = {
            "metadata": {"name": f"{name}.{len(self.objects)}"},
            "involvedObject": {"kind": kind, "name": name},
            "reason": reason,
            "message": message,
            "type": type_,
            "lastTimestamp": NOW,
        }
        with self.lock:
            self.objects["api/v1/events", "trainium", event["metadata"]["name"]] = event

    def finish(self, job: str, kind: str = "Complete", message: str = "") -> None:
        ended = {"type": kind, "status": "True", "message": message, "lastTransitionTime": "2026-11-23T07:09:00Z"}
        with self.lock:
            self.job(job)["status"] = {"conditions": [ended]}
            if kind == "Complete":
                self.job(job)["status"]["completionTime"] = ended["lastTransitionTime"]

    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] != "GET"]
