"""ECR's registry, and every other that nodes pull from: Debian's docker-registry, with a front that knows names.

The front takes a path of the registry API (https://distribution.github.io/distribution/spec/api/) and answers as ECR
does: a push needs a login and a repository of the account, what is pushed is in ECR's API, what is deleted there cannot
be pulled. Images of upstream (``ns`` is how containerd names their registry) are those of the sandbox, with any tag.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import shutil
import socketserver
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sandbox.network.bridge import OnBridge, serve_in_thread

PORT = 5197
BEHIND = 5198  # where docker-registry listens
ACCOUNT = "123456789012"
HOST = "127.0.0.1"
OWN = f"{HOST}:{PORT}"  # where the account's own repositories are
TAG = "latest"  # of the sandbox's own images
BLOCK = 1 << 20
# Registries whose images are the sandbox's own.
UPSTREAM = ("public.ecr.aws", "docker.io", "registry-1.docker.io", "quay.io", "registry.k8s.io", "ghcr.io")
_ECR = re.compile(r"(\d{12})\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com")
_PATH = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs|tags)/(?P<reference>.+)")

CONFIGURATION = {
    "version": 0.1,
    "log": {"level": "warn"},
    "storage": {"filesystem": {"rootdirectory": "/var/lib/registry"}, "delete": {"enabled": True}},
    "http": {"addr": f"{HOST}:{BEHIND}", "relativeurls": True, "secret": "sandbox"},
}


class Ecr(Protocol):
    """What is asked of ECR's API."""

    def has_repository(self, name: str) -> bool:
        """Whether the account has a repository of this name."""

    def has_image(self, name: str, reference: str) -> bool:
        """Whether the repository has an image by this tag or digest."""

    def put_image(self, name: str, tag: str, manifest: str, media_type: str) -> None:
        """Note what was pushed."""


class Target(NamedTuple):
    """A request as the registry behind gets it; ``repository`` is one of the account's ECR, else None."""

    path: str
    repository: str | None
    kind: str = ""
    reference: str = ""


class RefusedError(Exception):
    """An answer of the registry API that is an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def target(url: str) -> Target:
    """Where a request leads.

    Raises:
        RefusedError: the name is none.
    """
    split = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(split.query, keep_blank_values=True))
    origin = query.pop("ns", "")
    rest = f"?{urllib.parse.urlencode(query)}" if query else ""
    found = _PATH.fullmatch(split.path)
    if not found:
        return Target(split.path + rest, None)
    name, kind, reference = found.group("name", "kind", "reference")
    first = name.partition("/")[0]
    if not origin and (first in UPSTREAM or _ECR.fullmatch(first)):
        origin, name = first, name.partition("/")[2]
    account = _ECR.fullmatch(origin)
    if origin in ("", OWN) or (account and account[1] == ACCOUNT):
        return Target(f"/v2/{name}/{kind}/{reference}{rest}", name, kind, reference)
    origin = "docker.io" if origin == "registry-1.docker.io" else origin
    # A digest is that of an image which the sandbox has, else of none.
    if kind == "manifests" and not reference.startswith("sha256:"):
        reference = TAG
    return Target(f"/v2/{origin}/{name}/{kind}/{reference}{rest}", None, kind, reference)


def is_login(header: str) -> bool:
    """Whether a request has what ``aws ecr get-login-password`` gives."""
    scheme, _space, word = header.partition(" ")
    try:
        user, _colon, password = base64.b64decode(word).decode().partition(":")
    except ValueError:
        return False
    return scheme.lower() == "basic" and user == "AWS" and bool(password)


def check(method: str, asked: Target, ecr: Ecr, login: str | None) -> None:
    """Refuse what ECR refuses. ``login`` is the header of somebody outside; None for a node, whose role may pull.

    Raises:
        RefusedError: it does.
    """
    write = method in ("PUT", "POST", "PATCH", "DELETE")
    if asked.repository is None:
        if write:
            raise RefusedError(403, "DENIED", "only images of the account's own repositories can be pushed")
        return
    if login is not None and not is_login(login):
        raise RefusedError(401, "UNAUTHORIZED", "Not Authorized")
    if not ecr.has_repository(asked.repository):
        message = f"The repository with name '{asked.repository}' does not exist in the registry with id '{ACCOUNT}'"
        raise RefusedError(404, "NAME_UNKNOWN", message)
    if asked.kind == "manifests" and not write and not ecr.has_image(asked.repository, asked.reference):
        raise RefusedError(404, "MANIFEST_UNKNOWN", "Requested image not found")


def chunks(stream: Any) -> Iterator[bytes]:
    """The body of a request with chunked transfer coding (RFC 9112, section 7.1)."""
    while True:
        size = int(stream.readline().partition(b";")[0], 16)
        while size:
            block = stream.read(min(size, BLOCK))
            if not block:
                raise ConnectionError("the body ended early")
            size -= len(block)
            yield block
            if not size:
                stream.readline()
                break
        else:
            # Of the last chunk, after which trailers may come.
            while stream.readline().strip():
                continue
            return


class _Server(OnBridge, ThreadingHTTPServer):
    def __init__(self, address: str, ecr: Ecr, outside: bool) -> None:
        self.ecr, self.outside = ecr, outside
        super().__init__((address, PORT), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        asked = Target(self.path, None)
        try:
            login = self.headers.get("Authorization", "") if self.server.outside else None
            asked = target(self.path)
            if login is not None and self.path.rstrip("/") == "/v2" and not is_login(login):
                raise RefusedError(401, "UNAUTHORIZED", "Not Authorized")
            if asked.kind:
                check(self.command, asked, self.server.ecr, login)
            self._pass_on(asked)
        except RefusedError as refusal:
            self._refuse(refusal)
        except OSError as error:
            self._refuse(RefusedError(503, "UNAVAILABLE", f"the registry does not answer: {error}"))

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815  # names of http.server

    def _refuse(self, refusal: RefusedError) -> None:
        self.close_connection = True
        text = json.dumps({"errors": [{"code": refusal.code, "message": refusal.message}]}).encode()
        self.send_response(refusal.status)
        if refusal.status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="sandbox",service="ecr.amazonaws.com"')
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _body(self, asked: Target) -> Any:
        """What is sent on: a manifest whole, a layer as it comes."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return chunks(self.rfile)
        length = int(self.headers.get("Content-Length") or 0)
        if asked.kind == "manifests":
            return self.rfile.read(length)
        return _limited(self.rfile, length) if length else None

    def _pass_on(self, asked: Target) -> None:
        behind = http.client.HTTPConnection(HOST, BEHIND, timeout=600)
        dropped = ("host", "authorization", "connection", "expect")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        body = self._body(asked)
        manifest = body if asked.kind == "manifests" and isinstance(body, bytes) else b""
        chunked = "chunked" in self.headers.get("Transfer-Encoding", "")
        behind.request(self.command, asked.path, body, headers, encode_chunked=chunked)
        answer = behind.getresponse()
        if self.command == "PUT" and asked.repository and manifest and answer.status == http.client.CREATED:
            media_type = self.headers.get("Content-Type", "")
            self.server.ecr.put_image(asked.repository, asked.reference, manifest.decode(), media_type)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "date", "transfer-encoding"):
                self.send_header(name, value)
        if answer.headers.get("Content-Length") is None and answer.status != http.client.NO_CONTENT:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        while self.command != "HEAD":
            block = answer.read(BLOCK)
            if not block:
                break
            self.wfile.write(block)
        behind.close()

    def log_message(self, *arguments: object) -> None:
        """Say nothing of each request."""


def _limited(stream: Any, length: int) -> Iterator[bytes]:
    while length:
        block = stream.read(min(length, BLOCK))
        if not block:
            raise ConnectionError("the body ended early")
        length -= len(block)
        yield block


def serve(address: str, ecr: Ecr, outside: bool = False) -> socketserver.BaseServer:
    """Serve at ``ADDRESS:5197`` until ``shutdown()``; ``outside`` is for users, who must log in."""
    return serve_in_thread(_Server(address, ecr, outside))


def forget(folder: Path) -> None:
    """Remove the account's own repositories; those of upstream are named after their registries."""
    for repository in (folder / "data" / "docker" / "registry" / "v2" / "repositories").glob("*"):
        if "." not in repository.name:
            shutil.rmtree(repository)


def redirections(region: str) -> str:
    """The file registries.conf (containers-registries.conf(5)) of users: images of ECR's names are pulled from here."""
    own = f"{ACCOUNT}.dkr.ecr.{region}.amazonaws.com"
    places = {OWN: "", own: "", **{name: f"/{name}" for name in UPSTREAM if name.endswith(".ecr.aws")}}
    rows = [
        f'[[registry]]\nprefix = "{name}"\nlocation = "{OWN}{path}"\ninsecure = true\n' for name, path in places.items()
    ]
    return "\n".join(rows)
