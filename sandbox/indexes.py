"""From where pip is told to take packages, in the words of uv, which reads nothing of what is set for pip."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

# Options of pip that choose no package and no place to take it from.
NEUTRAL = frozenset(
    [
        *("cache-dir", "config-file", "default-timeout", "disable-pip-version-check", "no-cache-dir", "no-color"),
        *("no-input", "no-python-version-warning", "progress-bar", "quiet", "require-hashes", "require-virtualenv"),
        *("resume-retries", "retries", "root-user-action", "timeout", "verbose", "no-warn-script-location", "log"),
        # Of environments that the distribution owns, which this is not.
        *("break-system-packages", "no-compile", "compile"),
    ]
)
# Where somebody has told uv itself, that holds.
OWN = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE")
# The certificates that Debian's pip goes by, where none are named: a site puts its own among them.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Option of pip -> variable of uv, and what stands between several values (uv's reference, "Environment variables").
VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", ""),
    "client-cert": ("SSL_CLIENT_CERT", ""),
    "proxy": ("ALL_PROXY", ""),
}


class Indexes(NamedTuple):
    """How uv is told the same as pip."""

    environment: dict[str, str]
    arguments: list[str]
    refused: str  # why that cannot be done, or nothing


def options(listed: str) -> dict[str, str]:
    """What ``pip config list`` prints, by option: variables before ``install`` before all."""
    found: dict[str, tuple[int, str]] = {}
    for line in listed.splitlines():
        match = re.fullmatch(r"(:env:|global|install)\.([\w-]+)=(.+)", line.strip())
        if match:
            section, name, value = match.groups()
            rank = ("global", "install", ":env:").index(section)
            if rank >= found.get(name, (0, ""))[0]:
                found[name] = (rank, str(ast.literal_eval(value)))
    return {name: value for name, (_rank, value) in found.items()}


def constrained(names: Iterable[str], locked: str) -> list[str]:
    """Packages of a lock file of which constraints say something; a file of them that is not here may say it of all."""
    pinned = {_normal(name) for name in re.findall(r"(?m)^([\w.-]+)==", locked)}
    found: list[str] = []
    for file in names:
        if not Path(file).is_file():
            # Its address may hold a password.
            return ["packages in a file that is not here"]
        told = re.findall(r"(?m)^\s*([A-Za-z0-9][\w.-]*|-)", Path(file).read_text(encoding="utf-8"))
        found += [name for name in told if name == "-" or _normal(name) in pinned]
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def for_uv(listed: str, locked: str, environ: Mapping[str, str]) -> Indexes:
    """uv's environment and arguments after ``pip config list``; a reason where pip has to do it.

    An address may hold a password, which a command line would show to everybody, so that it goes by the environment.
    """
    told = options(listed)
    odd = sorted(set(told) - NEUTRAL - set(VARIABLES) - {"constraint", "no-index"})
    if odd:
        return Indexes({}, [], f"pip's option {odd[0]} is set, for which uv has none of the same meaning")
    held = constrained(told.get("constraint", "").split(), locked)
    if held:
        return Indexes({}, [], f"pip's constraints say something of {held[0]}")
    # The best of all indexes, as pip takes it; with a hash for each package that is no risk.
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    own = [name for name in OWN if environ.get(name)]
    for option, (variable, between) in VARIABLES.items():
        value = told.get(option, "")
        theirs = own if option in ("index-url", "extra-index-url", "find-links") else environ.get(variable)
        if value.strip() and not theirs:
            found[variable] = between.join(value.split()) if between else value
    bundle = next(filter(None, map(environ.get, ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))), "")
    if not environ.get("SSL_CERT_FILE") and "SSL_CERT_FILE" not in found and (bundle or CERTIFICATES.is_file()):
        found["SSL_CERT_FILE"] = bundle or str(CERTIFICATES)
    no_index = told.get("no-index", "").lower() in ("1", "true", "yes", "on", "y", "t")
    return Indexes({**environ, **found}, ["--no-index"] if no_index and not own else [], "")
