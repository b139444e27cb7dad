# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names and labels of a training's objects in Kubernetes. Pure.

A name is a DNS label of at most 63 characters, and so is the host name of a pod. Volcano calls the pods of a job of
TorchX ``<job>-<role>-<replica>-0``, and a plain Job of ours adds the rank, so that room is left for that.
"""

from __future__ import annotations

import re
from typing import Any

# Of all objects of a training: which training, which definition of it, which part (train, compile or stage).
TRAINING = "trainium.cluster/training"
APP = "trainium.cluster/app"
PART = "trainium.cluster/part"
RANK = "trainium.cluster/rank"
CACHESET = "trainium.cluster/cacheset"
# Annotations: its exact name, of which the label has a slug that others may have as well, and whose it is.
NAME = "trainium.cluster/name"
OWNER = "trainium.cluster/owner"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "trainium.cluster"

LONGEST = 63
# "-c", and "-role1-0123-0" of Volcano's pods.
ROOM = 16


def slug(text: str, longest: int) -> str:
    """A text as a DNS label: small letters, digits and hyphens, beginning with a letter."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name = name if name[:1].isalpha() else f"t-{name}"
    return name[:longest].rstrip("-")


def app_name(training: str, digest: str) -> str:
    """What all objects of one definition are called: ``bert-0123456789ab``."""
    return f"{slug(training, LONGEST - ROOM - 1 - len(digest))}-{digest}"


def labels(training: str, app: str, part: str, cacheset: str = "") -> dict[str, str]:
    """The labels that one definition's objects have in common."""
    more = {CACHESET: cacheset} if cacheset else {}
    return {MANAGED_BY: MANAGER, TRAINING: slug(training, LONGEST), APP: app, PART: part, **more}


def metadata(name: str, labels: dict[str, str], training: str, owner: str = "") -> dict[str, Any]:
    """Of an object, with what tells trainings apart whose labels are the same."""
    return {"name": name, "labels": labels, "annotations": {NAME: training, **({OWNER: owner} if owner else {})}}
