"""A share of all calls fares as calls do on a bad day: throttled, failed, cut off, answered by something else, late.

What a call meets depends on the seed, its action and how many of that action came before, so that runs can be repeated.
"""

from __future__ import annotations

import random
import socket
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

# What a call may meet. ``lost``: it does its work, and then the connection is cut; ``cut``: it does not.
KINDS = ("throttled", "failed", "unavailable", "html", "lost", "cut", "late")
# Only where it is asked for: temporary credentials whose time is over.
EXPIRED = "expired"
# Codes by service, with the HTTP status; '' is every other service. In that order: throttled, failed, unavailable.
CODES = {
    "ec2": (("RequestLimitExceeded", 503), ("InternalError", 500), ("Unavailable", 503)),
    "s3": (("SlowDown", 503), ("InternalError", 500), ("ServiceUnavailable", 503)),
    "": (("ThrottlingException", 400), ("InternalFailure", 500), ("ServiceUnavailable", 503)),
}
# What services answer to expired credentials: EC2 as if the request were old; '' is every other service, with JSON.
EXPIRED_TEXT = "The security token included in the request is expired"
EXPIRED_CODES = {
    "ec2": ("RequestExpired", 400, "Request has expired."),
    "s3": ("ExpiredToken", 400, "The provided token has expired."),
    **dict.fromkeys(
        ("iam", "sts", "cloudformation", "autoscaling", "elasticloadbalancing", "route53"),
        ("ExpiredToken", 403, EXPIRED_TEXT),
    ),
    # REST with JSON.
    **dict.fromkeys(
        ("eks", "lambda", "elasticfilesystem", "resource-groups", "imagebuilder"),
        ("ExpiredTokenException", 403, EXPIRED_TEXT),
    ),
    "": ("ExpiredTokenException", 400, EXPIRED_TEXT),
}
PAGE = "<html><head><title>502 Bad Gateway</title></head><body>A proxy says this.</body></html>"


class Weather:
    """The weather of all calls; none while ``share`` is 0."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.share, self.seed, self.late, self.key = 0.0, "", 0.0, ""
        self.kinds: tuple[str, ...] = KINDS
        self._seen: Counter[tuple[str, str]] = Counter()
        self.met: Counter[str] = Counter()

    def change(self, body: dict[str, Any]) -> None:
        """``share`` of 1, ``seed``, ``late`` as the most seconds of a late answer, ``kinds`` if not all of KINDS,
        and ``access_key`` if it is that of one caller alone.

        Raises ValueError for a kind that is not known.
        """
        kinds = tuple(body.get("kinds") or KINDS)
        if unknown := set(kinds) - {*KINDS, EXPIRED}:
            raise ValueError(f"no such weather: {', '.join(sorted(unknown))}")
        with self._lock:
            self.clear()
            self.share, self.seed = float(body["share"]), str(body.get("seed", ""))
            self.late, self.kinds = float(body.get("late", 0)), kinds
            self.key = str(body.get("access_key", ""))

    def draw(self, service: str, action: str, key: str = "") -> dict[str, Any] | None:
        """A fault in the form of those of the control API, with ``cut`` beside; None for a call that fares well.

        ``key`` is the access key of who calls.
        """
        with self._lock:
            if not self.share or self.key not in ("", key):
                return None
            self._seen[(service, action)] += 1
            chance = random.Random(f"{self.seed} {service} {action} {self._seen[(service, action)]}")  # noqa: S311
            if chance.random() >= self.share:
                return None
            kind = chance.choice(self.kinds)
            self.met[kind] += 1
            seconds = chance.uniform(0, self.late)
        if kind == "late":
            return {"delay": seconds}
        if kind in ("lost", "cut"):
            return {"cut": True, "after": kind == "lost"}
        if kind == EXPIRED:
            code, status, message = EXPIRED_CODES.get(service, EXPIRED_CODES[""])
            return {"code": code, "status": status, "message": message}
        if kind == "html":
            return {"body": PAGE, "status": 502}
        code, status = CODES.get(service, CODES[""])[KINDS.index(kind)]
        return {"code": code, "status": status, "message": "Injected by the sandbox."}


WEATHER = Weather()


def cut(environ: dict[str, Any]) -> list[bytes]:
    """End the connection without an answer."""
    with suppress(OSError):
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return []
