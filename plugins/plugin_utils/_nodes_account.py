# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the inventory plugin asks AWS; imported only when no cache answers it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

with suppress(ImportError):  # Account reports a missing SDK.
    from botocore import exceptions as aws
    from botocore.parsers import ResponseParserError

from ansible.errors import AnsibleParserError
from ansible_collections.amazon.aws.plugins.module_utils.transformation import ansible_dict_to_boto3_filter_list
from ansible_collections.amazon.aws.plugins.plugin_utils.inventory import AWSInventoryBase
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import checked, unreadable
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.narrow import narrow
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import hosts as planner
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import node_names as slurm_names
from ansible_collections.trainium.cluster.plugins.plugin_utils._lighten import lighten

# DescribeInstances returns at most this many per page.
PAGE_SIZE = 1000
# An API that does not answer is reported within half a minute; throttling is waited out.
CLIENT_CONFIG = {"connect_timeout": 5, "read_timeout": 60, "retries": {"mode": "standard", "max_attempts": 4}}
REMEDIES = {
    "AuthFailure": "AWS does not accept the credentials; check the access key and the secret key",
    "ExpiredToken": "the credentials have expired; log in again",
    "ExpiredTokenException": "the credentials have expired; log in again",
    "InvalidClientTokenId": "AWS does not know the access key; check it",
    "RequestExpired": "the credentials or this machine's clock are out of date; log in again or set the clock",
    "SignatureDoesNotMatch": "AWS does not accept the credentials; check the secret key",
    "UnauthorizedOperation": "the credentials lack the permission ec2:DescribeInstances; have it granted",
}
# Answers of DynamoDB with which nodes do without their names in Slurm.
NO_NAMES = {
    "AccessDeniedException": "the credentials lack the permission dynamodb:Scan for the table {0} in {1}",
    "ResourceNotFoundException": "there is no table {0} in {1}",
}


class Account(AWSInventoryBase):
    """amazon.aws's credentials and clients, by the options of an inventory plugin."""

    def __init__(self, plugin: Any) -> None:
        super().__init__()
        self.get_option, self.get_options = plugin.get_option, plugin.get_options
        self._load_name = self.ansible_name = plugin.NAME
        self.require_aws_sdk()
        self._set_frozen_credentials()

    def records(self, regions: list[str], filters: dict[str, Any]) -> list[planner.Record]:
        """What is kept of every instance that matches."""
        return self._named([one for region in regions for one in self._describe(region, filters)])

    def _describe(self, region: str, filters: dict[str, Any]) -> Iterator[planner.Record]:
        """Every instance that matches, reduced page by page."""
        client = self.client("ec2", region=region, config=CLIENT_CONFIG)
        narrow(client.meta.service_model.operation_model("DescribeInstances").output_shape, planner.READ)
        client.meta.events.register("before-parse.ec2.DescribeInstances", lighten)
        try:
            pages = client.get_paginator("describe_instances").paginate(
                Filters=ansible_dict_to_boto3_filter_list(filters), PaginationConfig={"PageSize": PAGE_SIZE}
            )
            for page in pages:
                for reservation in checked(page)["Reservations"]:
                    for instance in reservation["Instances"]:
                        yield planner.reduce_instance(instance, region)
        except ResponseParserError:
            raise TrainiumError(str(unreadable(f"list the nodes in {region}"))) from None
        except (aws.BotoCoreError, aws.ClientError) as error:
            self._refuse(error, region, client.meta.endpoint_url)

    def _named(self, records: list[planner.Record]) -> list[planner.Record]:
        """The records with the names that Slurm has for a ParallelCluster's compute nodes; one read per cluster."""
        answers, unknown = {}, []
        for table in slurm_names.tables(records):
            client = self.client("dynamodb", region=table.region, config=CLIENT_CONFIG)
            try:
                pages = client.get_paginator("scan").paginate(
                    TableName=table.name, ProjectionExpression=slurm_names.PROJECTION, ConsistentRead=True
                )
                answers[table] = [item for page in pages for item in page["Items"]]
            except (aws.BotoCoreError, aws.ClientError) as error:
                code = error.response["Error"]["Code"] if isinstance(error, aws.ClientError) else ""
                if code not in NO_NAMES:
                    self._refuse(error, table.region, client.meta.endpoint_url)
                unknown.append(NO_NAMES[code].format(table.name, table.region))
        if unknown:
            self.display.warning(f"Compute nodes go by other names than in Slurm: {'; '.join(unknown)}.")
        return slurm_names.name_nodes(records, answers)

    def _refuse(self, error: Exception, region: str, endpoint: str) -> NoReturn:
        """One sentence for an error of the AWS SDK."""
        if isinstance(error, aws.ClientError):
            code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "").rstrip(".")
            reason = f"{REMEDIES.get(code, message)} ({code})"
        elif isinstance(error, (aws.NoCredentialsError, aws.PartialCredentialsError)):
            reason = "no AWS credentials were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        elif isinstance(error, (aws.EndpointConnectionError, aws.ConnectionError, aws.HTTPClientError)):
            reason = f"{endpoint} cannot be reached; check the network, the region and AWS_ENDPOINT_URL"
        else:
            reason = str(error).rstrip(".")
        raise AnsibleParserError(f"Cannot list the nodes in {region}: {reason}.") from None
