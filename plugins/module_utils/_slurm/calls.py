# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of a Slurm command each, as the user that we are. Arguments never pass through a shell."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.commands import Reply, find, run
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.jobs import (
    SACCT_FIELDS,
    accounted,
    completed,
    jobs_of,
    present,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SINFO_FORMAT, SlurmNode, parse_sinfo
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.submit import digest_in

# Where Slurm is when PATH does not lead to it; the first is ParallelCluster's.
FOLDERS = ["/opt/slurm/bin", "/usr/local/bin", "/usr/bin", "/bin"]
# Slurm's own patience with its controller is 10 s (MessageTimeout), a few times over.
SECONDS = 60.0
# Accounting is asked for this many days, where a job is looked for by its name.
DAYS = 90
_BUSY = re.compile(
    r"unable to contact|timed out|connection (?:refused|failure|reset)|zero bytes|standby mode|"
    r"temporarily (?:unavailable|unable)|communication|controller not responding|try again",
    re.IGNORECASE,
)


class SlurmBusyError(TrainiumError):
    """Slurm does not answer; it may later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True)


def _folders() -> list[str]:
    return list(dict.fromkeys([*filter(None, os.environ.get("PATH", "").split(os.pathsep)), *FOLDERS]))


def installed() -> bool:
    """Whether this host has Slurm's commands."""
    return find("sbatch", _folders()) is not None


def _reason(reply: Reply) -> str:
    """The last thing that a Slurm command complained of, without its name before it."""
    lines = [line.strip() for line in reply.err.splitlines() if line.strip()]
    if not reply.ended:
        return f"no answer within {SECONDS:.0f} s"
    text = lines[-1] if lines else f"exit code {reply.code}"
    return re.sub(r"^(?:\w+: )?(?:error: )?(?:Batch job submission failed: |allocation failure: )?", "", text)


def _call(argv: Sequence[str], environment: Mapping[str, str] | None = None, pass_fds: Sequence[int] = ()) -> Reply:
    # The answers to questions have their times in seconds.
    wanted = {**os.environ, "SLURM_TIME_FORMAT": "%s"} if environment is None else environment
    reply = run(argv, SECONDS, _folders(), wanted, pass_fds)
    if not reply.found:
        raise TrainiumError(f"{argv[0]} is not installed on this host; run this on a node of the cluster.")
    return reply


def _busy(reply: Reply) -> SlurmBusyError:
    return SlurmBusyError(f"Slurm does not answer ({_reason(reply)}); check slurmctld on the head node.")


def jobs(job_id: int) -> list[dict[str, Any]]:
    """What the controller knows of a job, or of the tasks of an array; [] where it has forgotten it."""
    reply = _call(["scontrol", "show", "job", "--oneliner", str(job_id)])
    if reply.code and "Invalid job id" not in reply.err:
        raise _busy(reply)
    return jobs_of(reply.out)


def named(name: str) -> list[dict[str, Any]]:
    """Our own jobs of a name that the controller knows, newest first: ``job_id``, ``state`` and ``digest``."""
    argv = ["squeue", "--noheader", f"--user={os.getuid()}", f"--name={name}", "--states=all", "--format=%F|%T|%k"]
    reply = _call(argv)
    if reply.code:
        raise _busy(reply)
    found: dict[int, dict[str, Any]] = {}
    for line in reply.out.splitlines():
        number, state, comment = (*line.strip().split("|", 2), "", "")[:3]
        if number.isdigit():
            found.setdefault(int(number), {"job_id": int(number), "state": state, "digest": digest_in(comment)})
    return [found[number] for number in sorted(found, reverse=True)]


def _sacct(*arguments: str) -> str:
    """'' where the cluster has no accounting."""
    argv = ["sacct", "--noheader", "--parsable2", "--duplicates", f"--format={SACCT_FIELDS}", *arguments]
    if find("sacct", _folders()) is None:
        return ""
    reply = _call(argv)
    if not reply.code:
        return reply.out
    if "disabled" in reply.err:
        return ""
    raise SlurmBusyError(f"Slurm's accounting does not answer ({_reason(reply)}); check slurmdbd on the head node.")


def accounted_job(job_id: int) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """What accounting knows of a job: the job or the tasks of the array, and their steps."""
    return accounted(_sacct(f"--jobs={job_id}"))


def accounted_named(name: str) -> list[dict[str, Any]]:
    """Our own jobs of a name in accounting, newest first, with their ``digest``."""
    arguments = ["--allocations", f"--name={name}", f"--user={os.getuid()}", f"--starttime=now-{DAYS}days"]
    found = accounted(_sacct(*arguments))[0]
    return sorted(
        ({**job, "digest": digest_in(job["comment"])} for job in found), key=lambda job: job["job_id"], reverse=True
    )


def completion(job_id: int) -> list[dict[str, Any]]:
    """What the controller's list of completed jobs says, where it is a file that we may read; [] otherwise."""
    reply = _call(["scontrol", "show", "config"])
    config = dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", reply.out, re.MULTILINE))
    path = config.get("JobCompLoc", "")
    if config.get("JobCompType") != "jobcomp/filetxt" or not os.access(path, os.R_OK):
        return []
    # A cluster's whole history: read line by line.
    with open(path, encoding="utf-8", errors="replace") as file:
        return completed(line for line in file if line.startswith("JobId="))[job_id]


def nodes(partition: str = "") -> dict[str, SlurmNode]:
    """The nodes of a partition, or all."""
    argv = ["sinfo", "--Node", "--noheader", f"--format={SINFO_FORMAT}"]
    reply = _call([*argv, f"--partition={partition}"] if partition else argv)
    if reply.code or not reply.ended:
        raise _busy(reply)
    return parse_sinfo(reply.out)


def jobs_on(names: Iterable[str]) -> dict[str, list[str]]:
    """The numbers of the jobs on each node that Slurm knows; the states of the nodes do not tell of all."""
    wanted = list(names)
    if not wanted:
        return {}
    # One question for all, as squeue(1) asks for.
    words = ["squeue", "--noheader", "--all", "--states=all", f"--nodelist={','.join(wanted)}", "--format=%i|%T|%N"]
    reply = _call(words)
    if reply.code or not reply.ended:
        raise _busy(reply)
    return present(reply.out, wanted)


def update_node(name: str, *what: str) -> None:
    """Change a node's state; ``what`` are words of scontrol(1). Raises TrainiumError when Slurm does not take it."""
    reply = _call(["scontrol", "update", f"nodename={name}", *what])
    if reply.code or not reply.ended:
        raise TrainiumError(f"Slurm does not take {' '.join(what)} for {name}: {reply.err.strip() or 'no reply'}.")


def nodes_down() -> str:
    """The nodes that Slurm has given up, as a hostlist; '' for none."""
    reply = _call(["sinfo", "--noheader", "--states=down,fail,no_respond", "--format=%N"])
    return "" if reply.code else ",".join(reply.out.split())


def _clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """A job's environment: that of a login and what the job asks for, whatever the session of Ansible brings along.

    Variables such as SBATCH_PARTITION would change the job unseen.
    """
    user = pwd.getpwuid(os.getuid())
    base = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell or "/bin/sh"}
    kept = {name: os.environ[name] for name in ("SLURM_CONF", "LANG") if name in os.environ}
    return {**base, **kept, "PATH": os.pathsep.join(_folders()), **environment}


def submit(arguments: Sequence[str], environment: Mapping[str, str], lock: int) -> int:
    """The number of a new job. ``lock`` stays open as long as sbatch runs, even where we are killed.

    Raises SlurmBusyError where nobody knows whether the job was taken.
    """
    reply = _call(["sbatch", "--parsable", *arguments], _clean_environment(environment), [lock])
    number = reply.out.strip().partition(";")[0]
    if reply.ended and not reply.code and number.isdigit():
        return int(number)
    if not reply.ended or _BUSY.search(reply.err):
        raise _busy(reply)
    raise TrainiumError(f"Slurm refuses the job: {_reason(reply)}; see sinfo for nodes and partitions.")


def test(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """What sbatch foresees, such as 'Job 13 to start at ...'; nothing is submitted. TrainiumError where it refuses."""
    reply = _call(["sbatch", "--test-only", *arguments], _clean_environment(environment))
    if not reply.ended or _BUSY.search(reply.err):
        raise _busy(reply)
    if reply.code:
        raise TrainiumError(f"Slurm would refuse the job: {_reason(reply)}; see sinfo for nodes and partitions.")
    return _reason(reply)


def cancel(job_ids: Sequence[int]) -> None:
    """End jobs; one that has ended already is no error."""
    reply = _call(["scancel", *map(str, job_ids)])
    if reply.code and _BUSY.search(reply.err):
        raise _busy(reply)
    if reply.code and "Invalid job id" not in reply.err and "already" not in reply.err:
        raise TrainiumError(f"Slurm does not cancel job {', '.join(map(str, job_ids))}: {_reason(reply)}.")
