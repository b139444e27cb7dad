# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The instance profile by which the SSM agent of nodes may register with Systems Manager. Pure.

IAM is one for all regions, and neither roles nor profiles can be filtered by their tags; what is a cluster's is told by
its path (IAM user guide, "IAM identifiers"; ListRoles and ListInstanceProfiles take PathPrefix).
"""

from __future__ import annotations

import json

# "Permissions for SSM Agent to use Systems Manager and Session Manager" (Systems Manager user guide).
POLICY = "arn:{partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"},
        ],
    }
)


def path_of(region: str, cluster: str) -> str:
    """Where the cluster's role and profile lie."""
    return f"/trainium/{region}/{cluster}/"
