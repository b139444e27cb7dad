"""A stand-in for Volcano's admission, in a Pod: Jobs for a queue that is not open are refused, in upstream's words.

As upstream's, it gives its certificate to the webhooks that its manifest has brought. Until then the apiserver can ask
nobody, and refuses every Job and queue.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sandbox.kubernetes.inside.api import Api, ApiError, Object

PORT = 8443
HOST = "volcano-admission-service.volcano-system.svc"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NAMES = ("volcano-admission-service-jobs-validate", "volcano-admission-service-queues-validate")
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def refusal(job: Object, queues: list[Object]) -> str:
    """Why a new Job is refused, '' for one that is not (pkg/webhooks/admission/jobs/validate/admit_job.go)."""
    name = job["spec"].get("queue") or "default"
    queue = next((one for one in queues if one["metadata"]["name"] == name), None)
    if queue is None:
        return f'unable to find job queue: queues.scheduling.volcano.sh "{name}" not found;'
    state = (queue.get("status") or {}).get("state") or ""
    if state != "Open":
        return f"can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
    return ""


def answer(review: Object, queues: list[Object]) -> Object:
    """An AdmissionReview with what is said to its request."""
    asked = review["request"]
    message = refusal(asked["object"], queues) if asked["resource"]["resource"] == "jobs" else ""
    response = {"uid": asked["uid"], "allowed": not message, **({"status": {"message": message}} if message else {})}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def certificate(folder: Path) -> tuple[Path, Path]:
    """A new certificate for the service, signed by itself, and its key."""
    paths = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", f"/CN={HOST}"]
    command += ["-addext", f"subjectAltName=DNS:{HOST}", "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run(command, check=True, capture_output=True)
    return paths


def register(api: Api, bundle: bytes) -> None:
    """Let the apiserver know by which certificate it recognises this Pod."""
    for name in NAMES:
        while True:
            try:
                found = api.get(f"{CONFIGURATIONS}/{name}")
                for webhook in found["webhooks"]:
                    webhook["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
                api.call("PUT", f"{CONFIGURATIONS}/{name}", found)
                break
            except (ApiError, OSError) as error:
                # Of one manifest, but made after this Pod.
                print(error, flush=True)
                time.sleep(0.5)


class _Server(ThreadingHTTPServer):
    def __init__(self, api: Api, tls: ssl.SSLContext) -> None:
        self.api = api
        super().__init__(("", PORT), _Handler)
        self.socket = tls.wrap_socket(self.socket, server_side=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = json.dumps(answer(review, self.server.api.items(QUEUES))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: object) -> None:
        """Say nothing of each request."""


def main() -> int:
    api = Api.of_pod()
    with tempfile.TemporaryDirectory() as folder:
        public, key = certificate(Path(folder))
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(public, key)
        server = _Server(api, tls)
        register(api, public.read_bytes())
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
