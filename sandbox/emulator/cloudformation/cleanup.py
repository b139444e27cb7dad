"""Custom resources: no function runs here, but what ParallelCluster's do when a stack is deleted is done.

Each has a property ``Action``: the cluster's instances are terminated, its DNS records deleted, its objects removed.
"""

from __future__ import annotations

from moto.ec2.models import ec2_backends
from moto.route53.models import route53_backends
from moto.s3.models import s3_backends
from moto.utilities.utils import get_partition

from sandbox.emulator.cloudformation.resource import Resource


class Custom(Resource):
    """AWS::CloudFormation::CustomResource and Custom::anything."""

    def remove(self) -> None:
        action = {
            "TERMINATE_EC2_INSTANCES": self._terminate,
            "DELETE_DNS_RECORDS": self._delete_records,
            "DELETE_S3_ARTIFACTS": self._delete_objects,
        }.get(self.properties.get("Action", ""))
        if action:
            action()

    def _terminate(self) -> None:
        backend = ec2_backends[self.account][self.region]
        cluster = self.properties["StackName"]
        left = [
            instance
            for reservation in backend.reservations.values()
            for instance in reservation.instances
            if backend.tags.get(instance.id, {}).get("parallelcluster:cluster-name") == cluster
            and instance._state.name != "terminated"
        ]
        for instance in left:
            instance.terminate()
        if any(instance._state.name != "terminated" for instance in left):
            raise RuntimeError(f"{len(left)} instances of {cluster} are shutting down.")

    def _delete_records(self) -> None:
        zones = route53_backends[self.account][get_partition(self.region)].zones
        zone = zones.get(self.properties["ClusterHostedZone"].replace("/hostedzone/", ""))
        domain = self.properties["ClusterDNSDomain"].rstrip(".")
        if zone:
            zone.rrsets = [
                record
                for record in zone.rrsets
                if not (record.type == "A" and record.name.rstrip(".").endswith(domain))
            ]

    def _delete_objects(self) -> None:
        buckets = s3_backends[self.account][get_partition(self.region)].buckets
        bucket = buckets.get(self.properties["ResourcesS3Bucket"])
        if bucket:
            prefix = f"{self.properties['ArtifactS3RootDirectory']}/"
            for key in [key for key in bucket.keys if key.startswith(prefix)]:
                bucket.keys.pop(key)
