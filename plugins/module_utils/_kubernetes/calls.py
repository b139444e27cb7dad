# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Calls of Kubernetes' API, one each.

The kubernetes client reads the kubeconfig and asks its program for the token, such as ``aws eks get-token``. Requests
are our own: that client's were changed from release to release (37 has other arguments of ``call_api`` than 36).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode

from ansible.module_utils.urls import open_url
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError, one_line
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.state import VOLCANO, VOLCANO_JOB, remedy_of

TIMEOUT = 30
TRIES = 3
# Answers of a server that is busy or about to start.
_PASSING = frozenset({429, 500, 502, 503, 504})
PATHS = {
    "ConfigMap": "api/v1/namespaces/{namespace}/configmaps",
    "Deployment": "apis/apps/v1/namespaces/{namespace}/deployments",
    "Event": "api/v1/namespaces/{namespace}/events",
    "Job": "apis/batch/v1/namespaces/{namespace}/jobs",
    "Pod": "api/v1/namespaces/{namespace}/pods",
    "Secret": "api/v1/namespaces/{namespace}/secrets",
    "Service": "api/v1/namespaces/{namespace}/services",
    "Namespace": "api/v1/namespaces",
    "Node": "api/v1/nodes",
    "Queue": "apis/scheduling.volcano.sh/v1beta1/queues",
    VOLCANO_JOB: "apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",
}


class KubernetesError(TrainiumError):
    """An answer that is none. ``code`` is that of HTTP, 0 where no answer came."""

    def __init__(self, message: str, code: int, reason: str = "") -> None:
        super().__init__(message, transient=code == 0 or code in _PASSING)
        self.code = code
        self.reason = reason


def _trouble(error: Exception) -> str:
    """What is wrong with a kubeconfig, without what is in it."""
    if isinstance(error, OSError):
        return one_line(error)
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"it is not YAML at line {mark.line + 1}, column {mark.column + 1}"
    # Behind these words comes the entry that is wrong, whole.
    words = str(error).partition(" in ")[0] if type(error).__name__ == "ConfigException" else ""
    return one_line(Exception(words)) if words else "it does not have the form of one"


class Api:
    """The API server of a kubeconfig's context, in one namespace."""

    def __init__(self, kubeconfig: str | None, context: str | None, namespace: str) -> None:
        """Raises ImportError without the kubernetes client, TrainiumError where the kubeconfig is none."""
        from kubernetes import config
        from kubernetes.client import Configuration

        self.namespace = namespace
        self._configuration = Configuration()
        try:
            config.load_kube_config(kubeconfig or None, context or None, self._configuration)
        except Exception as error:
            # Of one that has another shape the library falls over anything; what it says may have a token in it.
            where = f" {kubeconfig}" if kubeconfig else ""
            raise TrainiumError(
                f"the kubeconfig{where} cannot be used ({_trouble(error)}); set trainium_kubeconfig, or run "
                "playbooks/compute.yml, which writes it."
            ) from None

    def _headers(self) -> dict[str, str]:
        token = self._configuration.get_api_key_with_prefix("authorization")
        token = token or self._configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": token} if token else {}

    def request(self, method: str, path: str, body: Any = None, text: bool = False, **query: Any) -> Any:
        """What the server answers, parsed unless it is ``text``. What only reads is asked again where that may help."""
        tries = TRIES if method == "GET" else 1
        for left in range(tries - 1, -1, -1):
            try:
                return self._request(method, path, body, text, query)
            except KubernetesError as error:
                if not left or not error.details["transient"]:
                    raise
                time.sleep(1)
        raise AssertionError

    def _request(self, method: str, path: str, body: Any, text: bool, query: Mapping[str, Any]) -> Any:
        known = self._configuration
        found = urlencode({name: value for name, value in query.items() if value not in (None, "")})
        url = f"{known.host}/{path.format(namespace=quote(self.namespace))}{'?' + found if found else ''}"
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            answer = open_url(
                url,
                method=method,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": kind, "Accept": "*/*" if text else "application/json", **self._headers()},
                timeout=TIMEOUT,
                validate_certs=bool(known.verify_ssl),
                ca_path=known.ssl_ca_cert,
                client_cert=known.cert_file,
                client_key=known.key_file,
                use_netrc=False,
            )
            content = answer.read()
        except HTTPError as error:
            raise self._refused(method, path, error) from None
        except (URLError, OSError, ValueError) as error:
            reason = one_line(error)
            raise KubernetesError(
                f"Kubernetes does not answer at {known.host} ({reason}); check the cluster, the kubeconfig and whether "
                "the endpoint lets this address in.",
                0,
                reason,
            ) from None
        return content.decode("utf-8", "replace") if text else json.loads(content or b"{}")

    def _refused(self, method: str, path: str, error: HTTPError) -> KubernetesError:
        content = error.read().decode("utf-8", "replace")
        try:
            reason = one_line(Exception(json.loads(content)["message"]))
        except (ValueError, KeyError, TypeError):
            reason = one_line(Exception(content or error.reason))
        if error.code == 401:
            reason = "You must be logged in to the server (Unauthorized)"
        # As webhooks of Volcano end theirs.
        reason = reason.rstrip("; ")
        remedy = remedy_of(reason) or "see kubectl describe and the cluster's events"
        verb = {"GET": "tell", "DELETE": "delete"}.get(method, "take")
        what = path.rpartition("}/")[2].partition("/")[0] or path
        return KubernetesError(
            f"Kubernetes does not {verb} {what}: {reason}; {remedy.rstrip('.')}.", error.code, reason
        )

    def path_of(self, found: Mapping[str, Any]) -> str:
        return PATHS[VOLCANO_JOB if found.get("apiVersion") == VOLCANO else found["kind"]]

    def get(self, found: Mapping[str, Any]) -> dict[str, Any] | None:
        """An object as it is; None where there is none."""
        try:
            answer: dict[str, Any] = self.request("GET", f"{self.path_of(found)}/{found['metadata']['name']}")
        except KubernetesError as error:
            if error.code == 404:
                return None
            raise
        return answer

    def create(self, found: Mapping[str, Any], check: bool) -> bool:
        """Make an object; False where somebody has. With ``check`` the server only says whether it would."""
        try:
            self.request("POST", self.path_of(found), found, dryRun="All" if check else None)
        except KubernetesError as error:
            if error.code == 409 and "already exists" in error.reason:
                return False
            raise
        return True

    def change(self, found: Mapping[str, Any], parts: Mapping[str, Any], check: bool) -> None:
        path = f"{self.path_of(found)}/{found['metadata']['name']}"
        self.request("PATCH", path, parts, dryRun="All" if check else None)

    def delete(self, found: Mapping[str, Any], check: bool) -> None:
        """Delete an object and, first, what it has made."""
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
        body.update({"dryRun": ["All"]} if check else {})
        try:
            self.request("DELETE", f"{self.path_of(found)}/{found['metadata']['name']}", body)
        except KubernetesError as error:
            if error.code != 404:
                raise

    def listed(self, kind: str, selector: str = "", namespace: str = "") -> list[dict[str, Any]]:
        """All objects of a kind with the labels, in this namespace or another."""
        path = PATHS[kind].format(namespace=namespace or "{namespace}")
        items: list[dict[str, Any]] = self.request("GET", path, labelSelector=selector).get("items") or []
        # A list says once of what its items are.
        of = {"apiVersion": VOLCANO, "kind": "Job"} if kind == VOLCANO_JOB else {"kind": kind}
        return [{**one, **of} for one in items]

    def visible(self, kind: str, selector: str = "", namespace: str = "") -> list[dict[str, Any]]:
        """The same; none where the user may not see them, or the cluster knows no such kind."""
        try:
            return self.listed(kind, selector, namespace)
        except KubernetesError as error:
            if error.code in (403, 404):
                return []
            raise

    def log(self, pod: str, lines: int | None = None) -> str:
        """A pod's log or its end; '' where it has none, or none any more."""
        try:
            return str(self.request("GET", f"{PATHS['Pod']}/{pod}/log", text=True, tailLines=lines))
        except KubernetesError as error:
            if error.code in (400, 404):
                return ""
            raise
