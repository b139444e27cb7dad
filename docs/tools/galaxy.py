"""Publishes an archive on Galaxy and waits for its word, by Python's standard library alone.

The token is read from GALAXY_TOKEN. ``ansible-galaxy collection publish`` does the same, with packages from an index.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

SERVER = "https://galaxy.ansible.com"
SECONDS = 1200.0


class GalaxyError(Exception):
    """What is wrong, in one sentence."""


def form(archive: Path) -> tuple[str, bytes]:
    """Content type and body, as Galaxy's API 3 takes an archive."""
    data, mark = archive.read_bytes(), uuid.uuid4().hex
    digest = hashlib.sha256(data).hexdigest()
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="sha256"\r\n\r\n{digest}\r\n'
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{archive.name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return f"multipart/form-data; boundary={mark}", head.encode() + data + f"\r\n--{mark}--\r\n".encode()


def asked(url: str, token: str, body: bytes | None = None, kind: str = "application/json") -> Any:
    """Galaxy's answer; None while it does not know the address yet."""
    headers = {"Authorization": f"Token {token}", "Content-Type": kind, "User-Agent": "trainium.cluster"}
    request = urllib.request.Request(url, body, headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404 and body is None:
            return None
        said = error.read(2000).decode("utf-8", "replace")
        raise GalaxyError(f"Galaxy answers {error.code} to {url}: {' '.join(said.split())}") from error
    except (OSError, ValueError) as error:
        raise GalaxyError(f"{url} gives no answer that can be read ({error}); try again") from error


def publish(archive: Path, server: str, token: str, pause: float = 5.0) -> list[str]:
    """What Galaxy says of the archive. Raises GalaxyError where it does not take it."""
    kind, body = form(archive)
    task = asked(f"{server}/api/v3/artifacts/collections/", token, body, kind)["task"]
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        # A path, or an address of its own.
        told = asked(task if "://" in task else f"{server}{task}", token)
        if told and told.get("finished_at"):
            said = [f"{one['level']}: {one['message']}" for one in told.get("messages") or ()]
            if told.get("state") != "completed":
                reason = (told.get("error") or {}).get("description") or "; ".join(said[-3:]) or told.get("state")
                raise GalaxyError(f"Galaxy does not take {archive.name}: {reason}")
            return said
        time.sleep(pause)
    raise GalaxyError(f"Galaxy has not decided on {archive.name} within {SECONDS:.0f} s; look at {task}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--server", default=SERVER)
    options = parser.parse_args(arguments)
    token = os.environ.get("GALAXY_TOKEN", "")
    try:
        if not token:
            raise GalaxyError("GALAXY_TOKEN is empty; make a token on Galaxy's page Collections, API token")
        for line in publish(options.archive, options.server, token):
            if not line.startswith("INFO"):
                print(line)
    except (GalaxyError, OSError) as error:
        print(f"galaxy: {error}.", file=sys.stderr)
        return 1
    print(f"{options.archive.name} is on {options.server}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
