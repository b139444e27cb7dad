# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who may administer a cluster: access entries with the policy AmazonEKSClusterAdminPolicy. Pure.

Sources: the user guide's pages "Grant IAM users access to Kubernetes with EKS access entries" and "Review access policy
permissions". An entry names a role or user of IAM, never a session of a role.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, ROLE_TAG

# The value of ROLE_TAG on entries that `admins` asked for, and on those that let a caller in.
ADMIN, CALLER = "admin", "caller"
_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:(?:user|role)/[\w+=,.@/-]+")
_SESSION = re.compile(r"arn:(?P<partition>aws[a-z-]*):sts::(?P<account>[0-9]{12}):assumed-role/(?P<role>[^/]+)/.+")


class Entry(NamedTuple):
    """An entry that is there: its tags, and whether it has the policy for the whole cluster."""

    principal: str
    tags: Mapping[str, str]
    is_admin: bool


class EntryPlan(NamedTuple):
    """``create``: (principal, role tag) of new ones; ``admit``: those that lack the policy; ``delete``: those to go."""

    create: list[tuple[str, str]]
    admit: list[str]
    delete: list[str]

    @property
    def changes(self) -> bool:
        return bool(self.create or self.admit or self.delete)


def policy_arn(principal: str) -> str:
    """The policy in the partition of a principal."""
    return f"arn:{principal.split(':')[1]}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def session_role(arn: str) -> tuple[str, str]:
    """Of the ARN of a role's session the role's name and its ARN without a path; of any other ARN '' and itself."""
    match = _SESSION.fullmatch(arn)
    if not match:
        return "", arn
    return match["role"], f"arn:{match['partition']}:iam::{match['account']}:role/{match['role']}"


def caller_of(arn: str, principals: Sequence[str]) -> str:
    """Of a role's ARN without its path that which has an entry, '' for none; an entry needs the path."""
    account, name = arn.split(":role/")
    wanted = re.compile(f"{re.escape(account)}:role/(.*/)?{re.escape(name)}")
    return next((one for one in principals if wanted.fullmatch(one)), "")


def can_have_entry(principal: str) -> bool:
    return bool(_PRINCIPAL.fullmatch(principal))


def check_admins(admins: Sequence[str]) -> None:
    """Refuse what is no role or user of IAM."""
    for arn in admins:
        if not can_have_entry(arn):
            raise TrainiumError(
                f"admins has '{arn}', which is no ARN of a user or role of IAM, as arn:aws:iam::123456789012:role/ml is"
            )


def plan_entries(entries: Sequence[Entry], admins: Sequence[str] | None, caller: str, cluster_name: str) -> EntryPlan:
    """What to do.

    Args:
        admins: who should administer the cluster; None changes nothing for them.
        caller: who is to be let in beside, '' for nobody.
    """
    known = {entry.principal: entry for entry in entries}
    wanted = {**({caller: CALLER} if caller else {}), **dict.fromkeys(admins or (), ADMIN)}
    ours = [
        entry.principal
        for entry in entries
        if entry.tags.get(CLUSTER_TAG) == cluster_name and entry.tags.get(ROLE_TAG) == ADMIN
    ]
    return EntryPlan(
        [(principal, role) for principal, role in wanted.items() if principal not in known],
        [principal for principal in wanted if principal in known and not known[principal].is_admin],
        [principal for principal in ours if admins is not None and principal not in wanted],
    )


def entry_tags(role: str, cluster_name: str) -> dict[str, str]:
    return {CLUSTER_TAG: cluster_name, ROLE_TAG: role}


def shown(entries: Sequence[Entry], plan: EntryPlan | None = None) -> list[str]:
    """Who administers the cluster, now or after a plan."""
    admins = {entry.principal for entry in entries if entry.is_admin}
    if plan:
        admins = (admins | {principal for principal, _role in plan.create} | set(plan.admit)) - set(plan.delete)
    return sorted(admins)


def is_admin(policies: Sequence[Mapping[str, Any]], principal: str) -> bool:
    """Whether one of the items of ListAssociatedAccessPolicies gives the whole cluster."""
    return any(
        one["policyArn"] == policy_arn(principal) and one["accessScope"].get("type") == "cluster" for one in policies
    )
