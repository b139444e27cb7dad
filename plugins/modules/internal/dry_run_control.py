#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dry_run_control
version_added: 0.3.0
short_description: Ask EC2 by DryRun for a launch that it must refuse
description:
  - EC2 promises of DryRun that it checks permissions, and nothing else. This puts two interfaces in one place of a
    launch that it accepts by DryRun, and tells what it says to that. Where it accepts that as well, it does not look
    at interfaces.
  - Launches nothing.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.aws
options:
  request:
    description: The RunInstances request, as M(trainium.cluster.efa_instance) returns it.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Ask EC2 for what it must refuse
  trainium.cluster.internal.dry_run_control:
    request: "{{ dry_run.request }}"
    region: us-west-2
"""

RETURN = r"""
code:
  description: EC2's error code; empty where it would accept it.
  returned: success
  type: str
  sample: InvalidParameterValue
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, unforeseen
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2


def _wrong(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with its last interface twice, and without the token of the right one."""
    interfaces = list(request["NetworkInterfaces"])
    kept = {key: value for key, value in request.items() if key not in ("ClientToken", "UserData", "DryRun")}
    return {**kept, "NetworkInterfaces": [*interfaces, interfaces[-1]]}


def main() -> None:
    module = AnsibleAWSModule(argument_spec={"request": {"type": "dict", "required": True}}, supports_check_mode=True)
    code = ""
    try:
        ec2.dry_run(module.client("ec2"), _wrong(module.params["request"]))
    except AwsCallError as error:
        if not error.code:
            module.fail_json(msg=f"dry_run_control: {error}.")
        code = error.code
    except Exception as error:
        module.fail_json(msg=f"dry_run_control: {unforeseen(error)}.")
    module.exit_json(changed=False, code=code)


if __name__ == "__main__":
    main()
