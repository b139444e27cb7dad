# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A ParallelCluster 3.16 configuration from a few variables.

The variables are those of the module pcluster_config. What was not given and has no safe default is left out; the
checks then name the missing key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.actions import actions_and_rights
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import given, merge
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.queues import render_queues
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.storage import render_storage

Variables = Mapping[str, Any]
Section = dict[str, Any]

DEFAULT_OS = "ubuntu2404"
HEAD_ROOT_VOLUME = 200


def render(variables: Variables) -> Section:
    """The configuration.

    Raises:
        TrainiumError: variables that contradict each other or name something that there is not.
    """
    head, login = variables.get("head_node") or {}, variables.get("login_nodes") or []
    configuration = given(
        Region=variables.get("region"),
        Image=given(Os=variables.get("os") or DEFAULT_OS, CustomAmi=variables.get("custom_ami")),
        Imds={"ImdsSupport": "v2.0"},
        HeadNode=_head_node(variables, head),
        LoginNodes=given(Pools=[_login_pool(variables, pool) for pool in login]),
        Scheduling=given(
            Scheduler="slurm",
            ScalingStrategy=variables.get("scaling_strategy"),
            SlurmSettings=_slurm_settings(variables),
            SlurmQueues=render_queues(variables),
        ),
        SharedStorage=render_storage(variables.get("shared_storage") or []),
        Monitoring=_monitoring(variables.get("monitoring") or {}),
        Tags=[{"Key": str(key), "Value": str(value)} for key, value in (variables.get("tags") or {}).items()],
        DevSettings=given(
            Timeouts=given(
                HeadNodeBootstrapTimeout=variables.get("head_bootstrap_timeout"),
                ComputeNodeBootstrapTimeout=variables.get("compute_bootstrap_timeout"),
            )
        ),
    )
    return merge(configuration, variables.get("overrides") or {})


def _head_node(variables: Variables, head: Variables) -> Section:
    key_name = head.get("key_name") or variables.get("key_name")
    return given(
        InstanceType=head.get("instance_type") or "m5.2xlarge",
        Networking=given(
            SubnetId=head.get("subnet_id"),
            ElasticIp=_elastic_ip(head.get("elastic_ip")),
            SecurityGroups=head.get("security_groups"),
            AdditionalSecurityGroups=head.get("additional_security_groups"),
        ),
        Ssh=given(KeyName=key_name, AllowedIps=variables.get("allowed_ips")),
        LocalStorage={
            "RootVolume": {
                "Size": head.get("root_volume_size") or HEAD_ROOT_VOLUME,
                "VolumeType": "gp3",
                "Encrypted": True,
            }
        },
        SharedStorageType=head.get("shared_storage_type"),
        # The remote desktop, open to those who may log in and to nobody else.
        Dcv=given(Enabled=True, AllowedIps=variables.get("allowed_ips")) if head.get("dcv") else None,
        **actions_and_rights(variables, "head", head),
        Imds={"Secured": True},
        Image=given(CustomAmi=head.get("custom_ami")),
    )


def _elastic_ip(value: Any) -> Any:
    """An allocation id as it is; a yes or no, which comes as text from a module's argument, as such."""
    return {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower(), value)


def _login_pool(variables: Variables, pool: Variables) -> Section:
    subnet = pool.get("subnet_id") or (variables.get("head_node") or {}).get("subnet_id")
    return given(
        Name=pool.get("name") or "login",
        InstanceType=pool.get("instance_type") or "m5.xlarge",
        Count=pool.get("count", 1),
        GracetimePeriod=pool.get("gracetime_period"),
        Networking=given(
            SubnetIds=[subnet] if subnet else None,
            SecurityGroups=pool.get("security_groups"),
            AdditionalSecurityGroups=pool.get("additional_security_groups"),
        ),
        Ssh=given(AllowedIps=pool.get("allowed_ips") or variables.get("allowed_ips")),
        **actions_and_rights(variables, "login", pool),
        Image=given(CustomAmi=pool.get("custom_ami")),
    )


def _slurm_settings(variables: Variables) -> Section:
    accounting = variables.get("accounting") or {}
    return given(
        ScaledownIdletime=variables.get("scaledown_idletime"),
        QueueUpdateStrategy=variables.get("queue_update_strategy"),
        CustomSlurmSettings=_settings_list(variables.get("custom_slurm_settings")),
        Database=given(
            Uri=accounting.get("uri"),
            UserName=accounting.get("user_name"),
            PasswordSecretArn=accounting.get("password_secret_arn"),
            DatabaseName=accounting.get("database_name"),
        ),
    )


def _settings_list(settings: Any) -> list[Section] | None:
    """ParallelCluster wants a list of one-line mappings; a single mapping is easier to write."""
    if isinstance(settings, Mapping):
        return [{key: value} for key, value in settings.items()]
    return list(settings) if isinstance(settings, Iterable) and settings else None


def _monitoring(monitoring: Variables) -> Section:
    """Dashboard and alarms are on by themselves; logs are kept for a month."""

    def switch(name: str) -> Section:
        value = monitoring.get(name)
        return {} if value is None else {"Enabled": bool(value)}

    retention = monitoring.get("log_retention_days", 30)
    return given(
        DetailedMonitoring=monitoring.get("detailed"),
        Logs={
            "CloudWatch": given(
                Enabled=True, RetentionInDays=retention, DeletionPolicy=monitoring.get("log_deletion_policy")
            )
        },
        Dashboards=given(CloudWatch=switch("dashboard")),
        Alarms=switch("alarms"),
    )


def known_reservations(variables: Variables) -> dict[str, list[str]]:
    """Reservations whose owner the variables state: {"self": [ids and ARNs], "aws": [...]}."""
    owners: dict[str, list[str]] = {"self": [], "aws": []}
    targets = [variables.get("capacity_reservation") or {}]
    for queue in variables.get("queues") or []:
        targets.append(queue.get("capacity_reservation") or {})
        targets += [resource.get("capacity_reservation") or {} for resource in queue.get("compute_resources") or []]
    for target in targets:
        name, owner = target.get("id") or target.get("resource_group_arn"), target.get("owner")
        if name and owner:
            owners[owner].append(name)
    return owners
