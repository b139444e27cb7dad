# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What ecr_image does: the repository as it is wanted, then the image, unless one of the same content is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import check_tags
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    CLUSTER_TAG,
    check_ours,
    check_owner,
    is_owner,
    tag_list,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import calls, plan
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import run_build as build
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import run_context as context

REPOSITORIES = "repositories of images"


class EcrImage:
    """One repository and one image in it; ``client_of`` gives the client of a region, and ``warn`` tells the user."""

    def __init__(
        self,
        client: Any,
        params: Mapping[str, Any],
        check_mode: bool,
        client_of: Callable[[str], Any],
        warn: Callable[[str], object],
    ) -> None:
        self._client, self._params, self._check = client, params, check_mode
        self._client_of, self._warn = client_of, warn
        self._changes: list[str] = []

    def run(self) -> dict[str, Any]:
        """The module's result. Raises TrainiumError."""
        plan.check(self._params)
        check_tags(self._params["tags"], "ECR")
        name = self._params["name"]
        found = calls.repository(self._client, name)
        tags = calls.tags(self._client, found["repositoryArn"]) if found else {}
        before = "" if found is None else f"{name}\n"
        if self._params["state"] == "absent":
            check_ours(tags if found else None, self._params, f"the repository {name}")
            return self._absent(name, before)
        if found:
            # Pods run what is in it, with the secrets of trainings.
            check_owner(tags, self._params, f"the repository {name}")
            plan.check_repository(found, calls.policy(self._client, name), self._params)
        return self._present(found, tags, before)

    def _absent(self, name: str, before: str) -> dict[str, Any]:
        if before and not self._check:
            calls.delete(self._client, repositoryName=name, force=True)
        empty = {"image": "", "tag": "", "digest": "", "repository_uri": "", "pushed": False, "builder": ""}
        return {**empty, "changed": bool(before), "diff": {"before": before, "after": ""}}

    def _present(self, found: dict[str, Any] | None, tags: dict[str, str], before: str) -> dict[str, Any]:
        contents = [context.Content(one["dest"], one["src"]) for one in self._params["files"] or ()]
        digests = {one.name: context.digest(one.path) for one in contents}
        tag = plan.tag_of(self._params, list(digests.items()))
        name = self._params["name"]
        image = calls.image(self._client, name, tag) if found else None
        # Before a repository is made that nothing can be pushed to.
        builder = "" if image else build.chosen(self._params["builder"])
        found = self._repository(found, tags)
        self._lifecycle()
        # In check mode nobody knows the registry of one that is not there yet.
        uri = str(found.get("repositoryUri") or name)
        if image is None:
            self._changes.append(f"image {name}:{tag}")
            image = self._made(f"{uri}:{tag}", tag, contents, digests, builder)
        digest = str(image.get("imageDigest") or "")
        after = "".join(f"{line}\n" for line in (name, *self._changes))
        return {
            "changed": bool(self._changes),
            # By its digest, so that a pod that is replaced runs the same, whatever became of the tag.
            "image": f"{uri}:{tag}@{digest}" if digest else f"{uri}:{tag}",
            "tag": tag,
            "digest": digest,
            "repository_uri": uri,
            "pushed": bool(builder) and not self._check,
            "builder": builder,
            "diff": {"before": before, "after": after if self._changes else before},
        }

    def _repository(self, found: dict[str, Any] | None, tags: dict[str, str]) -> dict[str, Any]:
        if found is None:
            self._changes.append("repository")
            return {} if self._check else calls.create(self._client, **plan.creation(self._params))
        new = plan.new_tags(tags, self._params)
        self._changes += ["tags"] if new else []
        if new and not self._check:
            calls.add_tags(self._client, resourceArn=found["repositoryArn"], tags=tag_list(new))
        return found

    def _lifecycle(self) -> None:
        name, policy = self._params["name"], plan.lifecycle(self._params["keep"])
        there = calls.lifecycle(self._client, name) if policy else {}
        if policy == there:
            return
        if not plan.is_own_lifecycle(there):
            self._warn(
                f"The repository {name} has a lifecycle policy of somebody else's, which stays; keep has no effect."
            )
            return
        self._changes.append("lifecycle")
        if not self._check:
            calls.put_lifecycle(self._client, name, policy)

    def _made(
        self, image: str, tag: str, contents: list[context.Content], digests: dict[str, str], builder: str
    ) -> dict[str, Any]:
        if self._check:
            return {}
        params = self._params
        job = build.Job(
            *(image, params["dockerfile"], contents, digests, params["platform"]),
            *(params["build_options"] or [], params["timeout"]),
        )
        try:
            made = build.make(job, builder, self._password, Progress())
        except TrainiumError as error:
            if not calls.image(self._client, params["name"], tag):
                raise
            raise TrainiumError(
                f"somebody else pushed {image} while it was built here; if that was a run of yours, run again, else "
                "delete that image and look who may push to the repository"
            ) from error
        pushed = calls.image(self._client, params["name"], tag)
        if pushed is None:
            raise TrainiumError(f"{image} was pushed, and ECR does not show it; run again")
        if pushed.get("imageDigest") != made:
            raise TrainiumError(
                f"{image} has the digest {pushed.get('imageDigest')} in ECR, and {made or 'none'} by {builder}, which "
                "pushed it; delete that image, and look who may push to the repository"
            )
        return pushed

    def _password(self, region: str) -> str:
        return calls.password(self._client_of(region) if region else self._client)


class RepositoriesOf:
    """How teardown finds and deletes the repositories that carry a cluster's tag, with the images in them.

    ``foreign`` are those of another owner or of none; ``unseen`` is why ECR could not be asked. Neither keeps the rest
    of a cluster from being deleted: anybody may give a repository the tag of any cluster, and most clusters have none.
    """

    def __init__(self, client: Any, cluster: str, owner: str | None = None) -> None:
        self._client, self._cluster, self._owner = client, cluster, owner
        self.foreign: list[str] = []
        self.unseen = ""

    def look(self) -> dict[str, list[str]]:
        names: list[str] = []
        self.foreign, self.unseen = [], ""
        try:
            for one in plan.belonging(calls.list_repositories(self._client), self._cluster):
                tags = calls.tags(self._client, one["repositoryArn"])
                if tags.get(CLUSTER_TAG) == self._cluster:
                    mine = is_owner(tags, {"owner": self._owner})
                    (names if mine else self.foreign).append(str(one["repositoryName"]))
        except AwsCallError as error:
            if "AccessDenied" not in error.code:
                raise
            self.unseen = str(error)
        return {REPOSITORIES: sorted(names)}

    def delete(self) -> None:
        for name in self.look()[REPOSITORIES]:
            calls.delete(self._client, repositoryName=name, force=True)
