"""A client of the Kubernetes API in a few lines: JSON in, JSON out, and watching."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Object = dict[str, Any]
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ApiError(Exception):
    """The apiserver refused; ``status`` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """One cluster, as one user."""

    def __init__(self, server: str, tls: ssl.SSLContext, token: Callable[[], str] = lambda: "") -> None:
        self.server, self.tls, self.token = server, tls, token

    @classmethod
    def of_pod(cls) -> Api:
        """As the service account of this Pod."""
        tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
        return cls(server, tls, lambda: (ACCOUNT / "token").read_text(encoding="ascii"))

    @classmethod
    def of_kubeconfig(cls, path: Path) -> Api:
        """As the user of a kubeconfig that the sandbox wrote: JSON, with a client certificate."""
        config = json.loads(path.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            tls.load_cert_chain(pair.name)
        return cls(cluster["server"], tls)

    def _open(self, method: str, path: str, body: Any, kind: str, timeout: float) -> http.client.HTTPResponse:
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self.token():
            headers["Authorization"] = f"Bearer {self.token()}"
        data = None if body is None else json.dumps(body).encode()
        call = urllib.request.Request(self.server + path, data, headers, method=method)  # noqa: S310  # https only
        try:
            opened: http.client.HTTPResponse = urllib.request.urlopen(call, timeout=timeout, context=self.tls)  # noqa: S310
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, error.read().decode(errors="replace")[:500]) from error
        return opened

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Object:
        """One request; the object that is answered.

        Raises:
            ApiError: it was refused.
            OSError: the apiserver does not answer.
        """
        with self._open(method, path, body, kind, 30) as answer:
            found: Object = json.loads(answer.read() or b"{}")
        return found

    def get(self, path: str) -> Object:
        return self.call("GET", path)

    def items(self, path: str) -> list[Object]:
        found: list[Object] = self.get(path)["items"]
        return found

    def create(self, path: str, body: Object) -> bool:
        """Create an object unless it is there; whether it was made now."""
        try:
            self.call("POST", path, body)
        except ApiError as error:
            if error.status != http.client.CONFLICT:
                raise
            return False
        return True

    def patch(self, path: str, body: Object) -> Object:
        """Change some fields."""
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> None:
        """Delete an object, or nothing where it is gone."""
        try:
            self.call("DELETE", path)
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def follow(self, path: str) -> Iterator[tuple[str, Object]]:
        """Everything at a path, again and again for ever: ``("LIST", list)``, then an event for each change."""
        while True:
            try:
                found = self.get(path)
                yield "LIST", found
                version = found["metadata"]["resourceVersion"]
                watch = f"{path}?watch=true&timeoutSeconds=300&resourceVersion={version}"
                with self._open("GET", watch, None, "application/json", 330) as answer:
                    for line in answer:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        yield event["type"], event["object"]
            except (ApiError, OSError, http.client.HTTPException, ValueError) as error:
                print(f"{path}: {error}", flush=True)
                time.sleep(0.5)
