#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_job
version_added: 0.1.0
short_description: Submit, follow and end a training on Kubernetes
description:
  - Makes the objects of a training, unless one of the same O(name) waits, runs or has succeeded. What a run that was
    killed has left out is made by the next.
  - A second training on the compile cache of one that runs is refused; one that can never start makes room.
  - With O(wait=true) the training is followed until it has ended, with state, step, loss, throughput, time left, and
    what it waits for. It goes on where Ansible is killed, and the next run follows it.
  - The namespace is made where there is none.
  - Where there is a training, all that M(trainium.cluster.kubernetes_job_info) tells of it is returned as well.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.kubernetes
attributes:
  check_mode:
    details: The API server is asked whether it would take each object (C(dryRun=All)).
  idempotent:
    details: Not with O(resubmit=always).
options:
  name:
    description:
      - What all objects of one definition are called.
      - With O(state=absent) the exact name of the training, of which all definitions are ended.
    type: str
    required: true
  state:
    description:
      - V(present) submits the training.
      - V(stopped) deletes, once one of its Jobs has failed, those that still hold nodes. What has ended stays. It also
        deletes all Jobs of a training that can never start, if no pod of it ever ran.
      - V(absent) ends it and deletes its objects.
    type: str
    choices: [present, stopped, absent]
    default: present
  owner:
    description: Who ends it with O(state=absent). Objects of another owner are refused; empty does not ask.
    type: str
    default: ""
  objects:
    description: The objects, as P(trainium.cluster.training_objects#filter) makes them. Needed for O(state=present).
    type: list
    elements: dict
    default: []
  secret_data:
    description: What is in the Secret of O(objects), file to content in Base64, in place of its C(data). Never logged.
    type: dict
    default: {}
  resubmit:
    description:
      - Whether to submit where there is a training of this name that has ended.
      - V(failed) submits again after one that did not end well.
    type: str
    choices: [failed, never, always]
    default: failed
seealso:
  - module: trainium.cluster.kubernetes_job_info
"""

EXAMPLES = r"""
- name: Train and follow it
  trainium.cluster.kubernetes_job:
    name: "{{ job.app }}"
    objects: "{{ made.parts[0].objects }}"
    secret_data: "{{ made.parts[0].secret_data }}"
    steps: 28125
    wait: true
  delegate_to: localhost

- name: End it
  trainium.cluster.kubernetes_job:
    name: bert
    state: absent
  delegate_to: localhost
"""

RETURN = r"""
submitted:
  description: Whether this run has submitted the training.
  returned: O(state=present)
  type: bool
  sample: true
made:
  description: The objects that were made or changed.
  returned: success
  type: list
  elements: str
  sample: [ConfigMap bert-0123456789ab, Job bert-0123456789ab-0]
ended_others:
  description: Trainings that could never start, and were ended since this one has their compile cache.
  returned: O(state=present)
  type: list
  elements: str
  sample: []
cancelled:
  description: The definitions of the training that were ended.
  returned: O(state) is V(absent) or V(stopped)
  type: list
  elements: str
  sample: [bert-0123456789ab]
gone:
  description: The objects that were deleted.
  returned: O(state) is V(absent) or V(stopped)
  type: list
  elements: str
  sample: [Job bert-0123456789ab-0]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import run as runner
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.arguments import KUBERNETES_JOB
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.calls import Api


def submit(api: Api, options: dict[str, Any], check: bool) -> dict[str, Any]:
    success = options["success"]
    values = options["secret_data"]
    objects = [{**one, "data": values} if values and one["kind"] == "Secret" else one for one in options["objects"]]
    result = runner.present(api, options["name"], objects, options["resubmit"], check, success)
    before = result.pop("before")
    now = (
        before
        if check or not result["changed"]
        else runner.look(api, options["name"], options["steps"], success=success)
    )
    lines = "".join(f"{one}\n" for one in result["made"])
    return {**now, **result, "diff": {"before": f"{before['state']}\n", "after": f"{before['state']}\n{lines}"}}


def main() -> None:
    module = AnsibleModule(
        argument_spec=KUBERNETES_JOB,
        required_if=[("state", "present", ["objects"])],
        supports_check_mode=True,
    )
    options = module.params
    try:
        api = Api(options["kubeconfig"], options["context"], options["namespace"])
        if options["state"] == "present":
            result = submit(api, options, module.check_mode)
        else:
            if options["state"] == "stopped":
                result = runner.stop(api, options["name"], module.check_mode)
            else:
                result = runner.absent(api, options["name"], options["owner"], module.check_mode)
            result["diff"] = {"before": "".join(f"{one}\n" for one in result["gone"]), "after": ""}
    except ImportError:
        module.fail_json(msg=missing_required_lib("kubernetes"))
    except ValueError as error:
        module.fail_json(msg=f"kubernetes_job: {error}")
    except TrainiumError as error:
        module.fail_json(msg=f"kubernetes_job: {error}", **error.details)
    for warning in result.pop("warnings", []):
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
