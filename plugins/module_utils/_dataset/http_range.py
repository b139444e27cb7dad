# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ranges of a file by HTTP, over connections that are kept. Only the standard library: it runs on the nodes."""

from __future__ import annotations

import base64
import http.client
import re
import ssl
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import shown

READ_BYTES = 256 * 1024
REDIRECTS = 5
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class HttpError(TrainiumError):
    """The server's answer is final: asking again for the same does not help."""


class CutError(Exception):
    """The connection failed, or the server asks for patience; the same request may succeed later."""


class Found(NamedTuple):
    """A file on a server: ``size`` in bytes, ``tag`` (ETag, '' for none), ``ranges`` whether parts of it can be had."""

    size: int
    tag: str
    ranges: bool


class _Address(NamedTuple):
    scheme: str
    host: str
    port: int
    path: str
    user: str


def _address(url: str) -> _Address:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    user = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        user = "Basic " + base64.b64encode(pair.encode()).decode()
    return _Address(parts.scheme, parts.hostname or "", parts.port or (443 if secure else 80), path, user)


class Client:
    """One connection at a time, kept while the server is the same. For one thread.

    ``name`` is what the file is called in errors; '' means its URL without what is secret.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None
        self._server: tuple[str, str, int] | None = None
        self._moved: dict[str, str] = {}
        # Whether S3 said of the last answer that it is encrypted with a key of somebody's, so that its ETag is no MD5.
        self.own_key = False
        self.name = ""

    def _named(self, url: str) -> str:
        return self.name or shown(url)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = self._server = None

    def probe(self, url: str) -> Found:
        """Size and ETag of a file, by its first byte: a presigned URL allows no HEAD. Raises CutError and HttpError."""
        answer = self._ask(url, {"Range": "bytes=0-0"})
        tag = answer.headers.get("ETag", "")
        try:
            if answer.status == 206:
                return Found(_total(answer, self._named(url)), tag, ranges=True)
            length = answer.headers.get("Content-Length")
            if answer.status == 416:
                total = re.search(r"/(\d+)$", answer.headers.get("Content-Range", ""))
                return Found(int(total.group(1)) if total else 0, tag, ranges=True)
            if length is None:
                raise HttpError(
                    f"{self._named(url)} was not fetched: its server does not tell its size; serve it another way"
                )
            return Found(int(length), tag, ranges=False)
        finally:
            self._drop_body(answer)

    def read(self, url: str, start: int, end: int, size: int, tag: str) -> Iterator[bytes]:
        """The bytes from ``start`` until before ``end`` of a file of ``size``, in blocks.

        Raises:
            CutError: the connection failed.
            HttpError: the server refuses, or has other content than ``tag`` by now.
        """
        headers = {"Range": f"bytes={start}-{end - 1}"}
        if tag and not tag.startswith("W/"):
            headers["If-Match"] = tag
        answer = self._ask(url, headers)
        if answer.status == 200 and (start, end) != (0, size):
            self.close()
            raise HttpError(f"{self._named(url)} was not fetched: its server gave all of it where a part was asked for")
        found = (
            _total(answer, self._named(url))
            if answer.status == 206
            else int(answer.headers.get("Content-Length") or size)
        )
        if answer.status not in (200, 206) or found != size or (tag and answer.headers.get("ETag", tag) != tag):
            self.close()
            raise HttpError(
                f"{self._named(url)} is not what it was when its transfer began; run again to fetch it anew"
            )
        encryption = "x-amz-server-side-encryption"
        self.own_key = (
            "kms" in answer.headers.get(encryption, "") or f"{encryption}-customer-algorithm" in answer.headers
        )
        left = end - start
        try:
            while left:
                block = answer.read(min(READ_BYTES, left))
                if not block:
                    raise CutError("the connection ended early")
                left -= len(block)
                yield block
        except (OSError, http.client.HTTPException) as error:
            raise CutError(str(error) or type(error).__name__) from error
        finally:
            # What was not read to its end would be taken for the next answer.
            if left:
                self.close()
            else:
                self._drop_body(answer)

    def _drop_body(self, answer: http.client.HTTPResponse) -> None:
        length = answer.length
        if length is None or length > READ_BYTES:
            if not answer.isclosed():
                self.close()
            return
        try:
            answer.read()
        except (OSError, http.client.HTTPException):
            self.close()

    def _ask(self, url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        """The answer to a GET, after redirections; the statuses that are left are 200, 206 and 416."""
        at = self._moved.get(url, url)
        for _round in range(REDIRECTS + 1):
            answer = self._once(at, headers)
            if answer.status not in (301, 302, 303, 307, 308) or not answer.headers.get("Location"):
                break
            at = urljoin(at, answer.headers["Location"])
            self._drop_body(answer)
            if urlsplit(at).scheme not in ("http", "https"):
                raise HttpError(f"{self._named(url)} was not fetched: its server redirects to {shown(at)}")
        else:
            raise HttpError(f"{self._named(url)} was not fetched: its server redirects more than {REDIRECTS} times")
        if answer.status in (200, 206) or (answer.status == 416 and headers["Range"] == "bytes=0-0"):
            self._moved[url] = at
            return answer
        self._moved.pop(url, None)
        try:
            text = answer.read(4096).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            text = ""
        self.close()
        if answer.status in AGAIN:
            raise CutError(f"the server answers {answer.status} {answer.reason}")
        raise HttpError(_refusal(self._named(url), answer.status, answer.reason, text))

    def _odd(self, url: str, error: Exception) -> HttpError:
        """Of an address that none can have; the error's own text has all of it, with what is secret."""
        return HttpError(f"{self._named(url)} was not fetched: {type(error).__name__}; check its characters")

    def _once(self, url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        try:
            address = _address(url)
        except ValueError as error:
            raise self._odd(url, error) from error
        server = (address.scheme, address.host, address.port)
        proxies = getproxies()
        proxy = "" if proxy_bypass(address.host) else proxies.get(address.scheme, "")
        fresh = self._server != server or self._connection is None
        if fresh:
            self.close()
        sent = {"User-Agent": "trainium.cluster", "Accept-Encoding": "identity", **headers}
        if address.user:
            sent["Authorization"] = address.user
        path = address.path
        if proxy and address.scheme == "http":
            path = f"http://{address.host}:{address.port}{address.path}"
            if _address(proxy).user:
                sent["Proxy-Authorization"] = _address(proxy).user
        for again in (not fresh, False):
            try:
                if self._connection is None:
                    self._connection = _connect(address, proxy, self._timeout)
                    self._server = server
                self._connection.request("GET", path, headers=sent)
                return self._connection.getresponse()
            except (UnicodeError, http.client.InvalidURL) as error:
                self.close()
                raise self._odd(url, error) from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # A server may have ended a kept connection meanwhile: that is no failure of this request.
                if not again:
                    raise CutError(str(error) or type(error).__name__) from error
            except ValueError as error:
                self.close()
                raise self._odd(url, error) from error
        raise CutError("the connection ended")


def _connect(address: _Address, proxy: str, timeout: float) -> http.client.HTTPConnection:
    via = _address(proxy) if proxy else address
    if address.scheme == "http":
        return http.client.HTTPConnection(via.host, via.port, timeout=timeout)
    connection = http.client.HTTPSConnection(via.host, via.port, timeout=timeout, context=ssl.create_default_context())
    if proxy:
        connection.set_tunnel(address.host, address.port, {"Proxy-Authorization": via.user} if via.user else {})
    return connection


def _total(answer: http.client.HTTPResponse, name: str) -> int:
    match = re.fullmatch(r"bytes \d+-\d+/(\d+)", answer.headers.get("Content-Range", "").strip())
    if not match:
        raise HttpError(f"{name} was not fetched: its server does not tell its size; serve it another way")
    return int(match.group(1))


def _refusal(url: str, status: int, reason: str, text: str) -> str:
    if status in (401, 403, 400) and re.search(r"expired|ExpiredToken", text, re.IGNORECASE):
        return f"The address of {url} has expired; run again, which makes a new one and goes on where this one stopped"
    if status in (404, 410):
        return f"There is no {url} (HTTP {status}); check the source"
    if status in (401, 403):
        return f"{url} must not be read (HTTP {status} {reason}); check the permissions of its source"
    if status in (412, 416):
        return f"{url} is not what it was when its transfer began; run again to fetch it anew"
    return f"{url} was not fetched: HTTP {status} {reason}"
