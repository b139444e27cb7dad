# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asking for the quotas before a launch, since EC2 itself says nothing of them in a dry run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import quotas

Warn = Callable[[str], None]


class Account:
    """The quotas of an account in one region, each list of them and of what runs asked for once.

    ``vcpus`` are those of types that were asked for already.
    """

    def __init__(
        self, client: ec2.Client, quota_client: ec2.Client, warn: Warn, vcpus: Mapping[str, int] | None = None
    ) -> None:
        self._client, self._quota_client, self._warn = client, quota_client, warn
        self._region = client.meta.region_name
        self._lists: dict[str, list[ec2.Item]] = {}
        self._running: list[ec2.Item] | None = None
        self._vcpus = dict(vcpus or {})

    def check_nodes(self, params: Mapping[str, Any], count: int) -> None:
        """Raise TrainiumError where ``count`` nodes have no room in their quota; warn where nobody can tell."""
        if not count or not quotas.counts(params):
            return
        kind, market = params["instance_type"], params["market"]
        usage = self.usage(kind, market)
        if usage is not None:
            _refuse(quotas.problem(usage.quota, usage.used, count, kind, usage.vcpus, self._region))

    def usage(self, kind: str, market: str) -> quotas.Usage | None:
        """The quota of a type and what is in use of it; None, with a warning, where nobody can tell."""
        quota = self._quota(kind, f"{market} quota for {kind}", lambda found: quotas.quota_of(found, kind, market))
        if quota is None:
            return None
        if self._running is None:
            self._running = ec2.describe_instances(self._client, {"instance-state-name": ["pending", "running"]})
        rivals = quotas.rivals(self._running, quota, market)
        unknown = sorted({kind, *rivals} - set(self._vcpus))
        self._vcpus.update(ec2.default_vcpus(self._client, unknown) if unknown else {})
        return quotas.Usage(quota, sum(self._vcpus.get(item, 0) for item in rivals), self._vcpus[kind])

    def check_addresses(self, count: int) -> None:
        """The same for ``count`` Elastic IPs that do not exist yet."""
        if not count:
            return
        quota = self._quota("Elastic IPs", "quota for Elastic IPs", quotas.quota_of_addresses)
        if quota is not None:
            used = quotas.counted(ec2.describe_addresses(self._client))
            _refuse(quotas.problem_of_addresses(quota, used, count, self._region))

    def check_all_addresses(self, cluster: str, wanted: Mapping[str, int]) -> int:
        """The same for all that a cluster is to have, by their role; how many of them do not exist yet."""
        found = ec2.describe_addresses(self._client)
        missing = quotas.missing_addresses(found, cluster, wanted)
        count = sum(missing.values())
        quota = self._quota("Elastic IPs", "quota for Elastic IPs", quotas.quota_of_addresses) if count else None
        if quota is not None:
            _refuse(quotas.problem_of_addresses(quota, quotas.counted(found), count, self._region, missing))
        return count

    def _quota(
        self, of: str, what: str, choose: Callable[[list[ec2.Item]], quotas.Quota | None]
    ) -> quotas.Quota | None:
        """None, with a warning, where it cannot be told."""
        try:
            # "If the applied quota value is not available for a quota, the quota is not retrieved" (ListServiceQuotas).
            quota = choose(self._list("list_service_quotas")) or choose(self._list("list_aws_default_service_quotas"))
        except AwsCallError as error:
            self._warn(f"The quota of {of} was not looked at: {error}.")
            return None
        if quota is None:
            self._warn(f"Service Quotas shows no {what} in {self._region}; whether it suffices is not known.")
        return quota

    def _list(self, operation: str) -> list[ec2.Item]:
        if operation not in self._lists:
            self._lists[operation] = list(ec2.list_quotas(self._quota_client, operation))
        return self._lists[operation]


def _refuse(problem: str) -> None:
    if problem:
        raise TrainiumError(problem)
