# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What goes beside a Dockerfile: digests of files and folders, and their copies, without what holds credentials."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

# In folders that people have their work in; whoever pulls the image could read them.
_LEFT_OUT = re.compile(
    r"\.(git|aws|ssh|docker|kube|azure|gnupg|ansible|cache|config|local|huggingface|netrc|pgpass|pypirc|npmrc|boto|s3cfg)"
    r"|\.(git-credentials|vault[_-](pass|token).*|envrc|env(\..*)?|.*_history)|id_(rsa|dsa|ecdsa|ed25519).*"
    r"|\.(dockercfg|my\.cnf|kaggle|terraformrc|terraform\.d|Renviron|gitconfig|oci|gcloud|wgetrc|curlrc)|\.?hf_token"
    r"|_netrc|kubeconfig|token|(.*[_-])?(credentials?|secrets?|service[_-]account)(\.(json|ya?ml|ini|toml|txt|cfg))?"
    r"|.*\.(pem|key|p12|pfx|env|jks|ppk|kdbx?|keytab|kubeconfig|tfvars(\.json)?|tfstate(\..*)?)",
    re.IGNORECASE,
)


class Content(NamedTuple):
    """A file or folder of this machine, and its name in the context."""

    name: str
    path: str


def digest(path: str) -> str:
    """A digest of a file, or of all files in a folder with their names. Raises TrainiumError."""
    found = hashlib.sha256()
    try:
        for name, file in _files(path):
            link = os.readlink(file) if os.path.islink(file) else ""
            mode = 0 if link else os.stat(file).st_mode
            if mode and not stat.S_ISREG(mode):
                raise TrainiumError(f"{file} is no file, folder or link, and cannot go into an image; take it away")
            found.update(json.dumps([name, link, bool(mode & 0o100)]).encode())
            if not link:
                with open(file, "rb") as stream:
                    for block in iter(lambda: stream.read(1 << 20), b""):
                        found.update(block)
            found.update(b"\0")
    except OSError as error:
        raise TrainiumError(f"{path} cannot be read ({error.strerror}); correct src in files") from error
    return found.hexdigest()


def copy(contents: Iterable[Content], digests: dict[str, str], folder: str) -> None:
    """Copy all into the folder. Raises TrainiumError where something is not what the digest was made of."""
    for name, path in contents:
        target = os.path.join(folder, name)
        try:
            if os.path.isdir(path):
                shutil.copytree(path, target, symlinks=True, ignore=_ignored)
            else:
                shutil.copy(path, target)
        except (OSError, shutil.Error) as error:
            raise TrainiumError(f"{path} cannot be copied ({type(error).__name__}); correct src in files") from error
        if digest(target) != digests[name]:
            raise TrainiumError(f"{path} changed while it was copied; run again when nothing writes there")


def _ignored(_folder: str, names: list[str]) -> set[str]:
    return {name for name in names if _LEFT_OUT.fullmatch(name)}


def _files(path: str) -> Iterator[tuple[str, str]]:
    """Name below the path and file, sorted, without what is left out."""
    if not os.path.isdir(path):
        yield "", os.path.realpath(path)
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(set(folders) - _ignored(folder, folders))
        links = [one for one in folders if os.path.islink(os.path.join(folder, one))]
        for name in sorted({*names, *links} - _ignored(folder, names)):
            file = os.path.join(folder, name)
            yield os.path.relpath(file, path), file
