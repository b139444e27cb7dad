"""Which account AWS clients talk to: the sandbox's, and nothing of the caller's environment says otherwise.

A client looks for credentials and endpoints in more places than one, and the most particular wins: ``AWS_PROFILE``,
``AWS_ENDPOINT_URL_EC2``, ``AWS_IGNORE_CONFIGURED_ENDPOINT_URLS``, the config and credentials files and more
(https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html). So all of it goes, and little comes back.

``python -m sandbox.account.environment`` ends with 1 where the environment is not the sandbox's.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

from sandbox.account import api
from sandbox.errors import SandboxError

REGION = "us-west-2"
# A file that is none: clients take it for one without any profile.
NO_FILE = "/dev/null"
# How those of AWS begin, and those by which kubernetes.core finds a cluster that it is not told.
CALLERS = ("AWS_", "K8S_AUTH_")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def key() -> tuple[str, str]:
    """Access key and secret key: random for each start of the sandbox, as its token is, and empty where it is not up.

    No key of AWS begins like this one (AKIA and ASIA do), and a client that has none asks nobody.
    """
    word = api.word()
    digest = hashlib.sha256(f"access key {word}".encode()).hexdigest()
    return (f"SANDBOX{digest[:13].upper()}", digest[13:53]) if word else ("", "")


def variables() -> dict[str, str]:
    """Every variable of AWS that a client of the sandbox has."""
    access, secret = key()
    return {
        "AWS_ENDPOINT_URL": api.endpoint(),
        "AWS_ACCESS_KEY_ID": access,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": NO_FILE,
        "AWS_SHARED_CREDENTIALS_FILE": NO_FILE,
    }


def of_the_caller(environ: Mapping[str, str]) -> list[str]:
    """The names of the variables of AWS and Kubernetes, sorted; those that a shell cannot have are left out."""
    return sorted(name for name in environ if re.fullmatch(r"(AWS|K8S_AUTH)_[A-Za-z0-9_]+", name))


def inside(environ: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment with the sandbox's account instead of the caller's."""
    kept = {name: value for name, value in environ.items() if not name.startswith(CALLERS)}
    # A proxy would get what is meant for this machine, with its key; clients read one name or the other.
    direct = {name: ",".join(filter(None, (environ.get(name), *LOOPBACK))) for name in ("NO_PROXY", "no_proxy")}
    return {**kept, **direct, "KUBECONFIG": NO_FILE, **variables()}


def check(environ: Mapping[str, str]) -> None:
    """Look at an environment before anything starts in it that changes an account.

    Raises:
        SandboxError: a client could reach another account than the sandbox's.
    """
    found, wanted = {name: value for name, value in environ.items() if name.startswith("AWS_")}, variables()
    if not wanted["AWS_ACCESS_KEY_ID"]:
        raise SandboxError("The sandbox is not up, so it has no access key: start it with 'python -m sandbox up'.")
    host = urlsplit(found.get("AWS_ENDPOINT_URL", "")).hostname or ""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise SandboxError(
            f"AWS_ENDPOINT_URL is {found.get('AWS_ENDPOINT_URL', '')!r}, not an address of this machine."
        )
    different = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
    if different:
        raise SandboxError(
            f"{', '.join(different)} would lead AWS clients out of the sandbox, or come from before its last start: "
            "unset what is not its own."
        )


def main() -> int:
    try:
        check(os.environ)
    except SandboxError as error:
        print(f"sandbox: {error} Run this by 'python -m sandbox run'.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
