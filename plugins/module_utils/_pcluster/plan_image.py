# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is to be done with an image of ParallelCluster in the state that it is in. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan import Step

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,127}\Z")


def next_image_step(wanted: str, status: str | None) -> Step:
    """``build``, ``delete``, ``nothing``, ``refuse``, ``wait_build`` or ``wait_delete``.

    ``status`` is ParallelCluster's status of the build, None where there is no such image.
    """
    gone = status is None or status == "DELETE_COMPLETE"
    if wanted == "absent":
        if gone:
            return Step("nothing")
        return Step("wait_delete" if status == "DELETE_IN_PROGRESS" else "delete")
    if gone:
        return Step("build")
    if status == "BUILD_COMPLETE":
        return Step("nothing")
    if status == "BUILD_IN_PROGRESS":
        return Step("wait_build")
    if status == "DELETE_IN_PROGRESS":
        return Step("refuse", "the image is being deleted; wait until it is gone, then build it")
    return Step("refuse", f"the image is {status}; delete it with state=absent, then build it again")


def build_failure(image: Mapping[str, Any]) -> str:
    """Why a build failed, as the end of a sentence; '' where nobody says."""
    for key in ("imagebuilderImageStatusReason", "cloudformationStackStatusReason"):
        reason = " ".join(str(image.get(key) or "").split()).rstrip(". ")
        if reason:
            return f": {reason}"
    return ""
