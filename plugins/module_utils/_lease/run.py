# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Taking a cluster for one run of Ansible, and giving it back when that run has ended, however it ended."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import Client
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.background import detach
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import start_time, this_host
from ansible_collections.trainium.cluster.plugins.module_utils._lease import calls
from ansible_collections.trainium.cluster.plugins.module_utils._lease.plan import (
    FREE,
    Holder,
    holder_of,
    parameter_name,
    refusal,
    text_of,
)

SECONDS_BETWEEN_LOOKS = 1.0


def this_run(owner: str, pid: int) -> Holder:
    """The run whose process is ``pid``."""
    machine = host = socket.gethostname()
    with suppress(OSError):  # no Linux
        machine = this_host()
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Holder(owner, host, machine, pid, start_time(pid), now)


def lives(holder: Holder, machine: str) -> bool:
    """Whether a run still goes on; of one on another machine that cannot be seen."""
    if holder.machine != machine:
        return True
    if os.path.exists("/proc/self/stat"):
        return start_time(holder.pid) == holder.started != ""
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Lease:
    """The lease of a cluster, for the run ``me``."""

    def __init__(self, client: Client, cluster: str, me: Holder) -> None:
        self._client, self._cluster, self._me = client, cluster, me
        self._name = parameter_name(cluster)

    def take(self, broken: bool, tags: Mapping[str, str]) -> bool:
        """Have it from now on; False where this run had it. Raises TrainiumError where another run has it."""
        # Read first: the later phases of a run, which has it already, write nothing.
        found = calls.read(self._client, self._name)
        if found is None:
            if calls.create(self._client, self._name, text_of(self._me), tags):
                return True
            # Its answer may have been lost, and this was the second attempt.
            found = calls.read(self._client, self._name)
            if found is not None and self._is_mine(found[0]):
                return True
        if found is not None:
            text, version = found
            holder = holder_of(text)
            if holder and holder.is_run(self._me):
                return False
            if holder and not broken and lives(holder, self._me.machine):
                raise TrainiumError(refusal(self._cluster, self._client.meta.region_name, holder))
            if calls.replace(self._client, self._name, text_of(self._me)) == version + 1:
                return True
        raise TrainiumError(f"another run takes the lease of the cluster {self._cluster} at the same time; try again")

    def _is_mine(self, text: str) -> bool:
        holder = holder_of(text)
        return holder is not None and holder.is_run(self._me)

    def free(self, delete: bool = False) -> None:
        """Give it back, unless another run has it; ``delete``: with the cluster."""
        found = calls.read(self._client, self._name)
        if found is None or not self._is_mine(found[0]):
            return
        if delete:
            calls.delete(self._client, Name=self._name)
        else:
            calls.replace(self._client, self._name, FREE)

    def free_at_the_end(self, delete: bool = False) -> None:
        """Give it back as soon as the run has ended; returns at once."""
        detach(lambda: self._watch(delete))

    def _watch(self, delete: bool) -> None:
        while lives(self._me, self._me.machine):
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self.free(delete)
