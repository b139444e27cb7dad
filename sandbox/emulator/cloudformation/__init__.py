"""CloudFormation as a ParallelCluster stack needs it: the resources that stock moto lacks, and stacks that live.

``resource`` and ``resources`` are the kinds added, ``nested`` stacks in stacks, ``waiting`` the wait conditions,
``cleanup`` the custom resources, ``changes`` the steps with their events, ``stacks`` the states, ``answers`` requests.
"""

from __future__ import annotations


def install() -> None:
    """Patch moto in this process."""
    from sandbox.emulator.cloudformation import answers, kinds, stacks

    for module in (kinds, stacks, answers):
        module.install()
