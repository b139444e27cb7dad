# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What pcluster_image does: look, decide, build or delete, wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal, Pace, wait_until
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import plan as cluster_state
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls import NOT_FOUND, PclusterError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import Library, snake
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan_image import (
    NAME,
    build_failure,
    next_image_step,
)

Result = dict[str, Any]
Image = dict[str, Any]
# A build takes the better part of an hour, and a look costs a process of more than a second.
PACE = Pace(2, 1.5, 30)


class PclusterImage:
    """One image. ``configuration`` is what it is built from, None where nothing is to be built."""

    def __init__(
        self,
        library: Library,
        params: Mapping[str, Any],
        configuration: dict[str, Any] | None,
        check_mode: bool,
        warn: Callable[[str], None],
    ) -> None:
        self._library, self._params, self._configuration = library, params, configuration
        self._check_mode, self._warn = check_mode, warn
        self._id: str = params["image_id"]
        self._result: Result = {"changed": False, "operation": "none", "image": None, "validation_messages": []}

    def run(self) -> Result:
        """Bring the image to the wanted state; returns the module's result. Raises TrainiumError."""
        if not NAME.match(self._id):
            raise TrainiumError(
                "image_id must begin with a letter and have at most 128 letters, digits and hyphens, and nothing else"
            )
        image = self._look()
        step = next_image_step(self._params["state"], image["imageBuildStatus"] if image else None)
        if step.action == "refuse":
            raise TrainiumError(f"{step.text}{build_failure(image or {})}")
        self._result["diff"] = {"before": _status(image), "after": _status(image)}
        if step.action == "build":
            self._build()
        elif step.action == "delete":
            self._delete()
        # Also what an earlier run began is waited for.
        if self._params["wait"] and not self._check_mode and step.action != "nothing":
            image = self._wait(step.action in ("delete", "wait_delete"))
        elif not self._check_mode:
            image = self._look()
        self._result["image"] = snake(image) if image else None
        return self._result

    def _look(self) -> Image | None:
        try:
            return dict(self._library.call("describe_image", image_id=self._id))
        except PclusterError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    def _build(self) -> None:
        params = self._params
        arguments = {
            "image_id": self._id,
            "image_configuration": self._configuration,
            "suppress_validators": params["suppress_validators"] or None,
            "validation_failure_level": params["validation_failure_level"],
        }
        self._result.update(changed=True, operation="build")
        self._result["diff"]["after"] = {"image_build_status": "BUILD_COMPLETE"}
        rights = ((self._configuration or {}).get("Build") or {}).get("Iam") or {}
        if self._check_mode and not rights.get("CleanupLambdaRole"):
            # Even its dry run makes the account's role for that, which a check must not.
            self._warn(
                "ParallelCluster was not asked about the build: without Build/Iam/CleanupLambdaRole even its dry run "
                "makes a role."
            )
            return
        rehearsal = self._library.dry_run("build_image", **arguments)
        self._result["validation_messages"] = cluster_state.validation_messages(rehearsal)
        if not self._check_mode:
            self._library.call("build_image", rollback_on_failure=params["rollback_on_failure"], **arguments)

    def _delete(self) -> None:
        self._result.update(changed=True, operation="delete")
        self._result["diff"]["after"] = {}
        if not self._check_mode:
            self._library.call("delete_image", image_id=self._id, force=self._params["force"])

    def _wait(self, gone: bool) -> Image | None:
        def status(seen: Image | None) -> str:
            return str(seen["imageBuildStatus"]) if seen else "gone"

        def broken(seen: Image | None) -> str:
            if status(seen) == ("DELETE_FAILED" if gone else "BUILD_FAILED"):
                return f"the {'deletion' if gone else 'build'} of the image failed{build_failure(seen or {})}"
            return "" if gone or seen else "the image is gone: something else deleted it meanwhile"

        goal = Goal(
            "deleted" if gone else "built",
            lambda seen: status(seen) == ("gone" if gone else "BUILD_COMPLETE"),
            broken,
            lambda seen: f"{self._id} ({status(seen)})",
        )
        return wait_until(goal, self._look, self._params["wait_timeout"], Progress(), PACE)


def list_images(library: Library, params: Mapping[str, Any]) -> Result:
    """The official images of the installed version, and the account's own in whatever state."""
    own: dict[str, Image] = {}
    for status in ("FAILED", "PENDING", "AVAILABLE"):
        for item in library.all_pages("list_images", "images", image_status=status):
            # An image that is available may still have the stack that built it.
            own[item["imageId"]] = snake(item)
    official = library.call("list_official_images", os=params["os"], architecture=params["architecture"])["images"]
    return {
        "changed": False,
        "operation": "none",
        "images": [own[key] for key in sorted(own)],
        "official_images": [snake(item) for item in official],
    }


def _status(image: Image | None) -> dict[str, str]:
    return {"image_build_status": image["imageBuildStatus"]} if image else {}
