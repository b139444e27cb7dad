# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asking for the quota before a launch, since EC2 itself says nothing of it in a dry run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import quotas


def check_quota(
    client: ec2.Client, quota_client: ec2.Client, params: Mapping[str, Any], count: int, warn: Callable[[str], None]
) -> None:
    """Raise TrainiumError where ``count`` nodes have no room in their quota; warn where nobody can tell."""
    if not count or not quotas.counts(params):
        return
    kind, market, region = params["instance_type"], params["market"], client.meta.region_name
    try:
        # "If the applied quota value is not available for a quota, the quota is not retrieved" (ListServiceQuotas).
        quota = quotas.quota_of(ec2.list_quotas(quota_client, "list_service_quotas"), kind, market) or quotas.quota_of(
            ec2.list_quotas(quota_client, "list_aws_default_service_quotas"), kind, market
        )
    except AwsCallError as error:
        warn(f"The quota of {kind} was not looked at: {error}.")
        return
    if quota is None:
        warn(f"Service Quotas shows no {market} quota for {kind} in {region}; whether it suffices is not known.")
        return
    running = ec2.describe_instances(client, {"instance-state-name": ["pending", "running"]})
    used = quotas.rivals(running, quota, market)
    vcpus = ec2.default_vcpus(client, sorted({kind, *used}))
    problem = quotas.problem(quota, sum(vcpus.get(item, 0) for item in used), count, kind, vcpus[kind], region)
    if problem:
        raise TrainiumError(problem)
