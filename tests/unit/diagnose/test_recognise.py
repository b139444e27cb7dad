"""Faults are recognised by what they leave in logs."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.faults import FAULTS
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.recognise import (
    LINE_LIMIT,
    known_faults,
    node_of,
    sections,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

NAMES = [fault.name for fault in FAULTS]
SIGNS = [" ".join(pieces) for fault in FAULTS for pieces in fault.signs]
MTGD = "2026-11-21 07:40:02,113 - [slurm_plugin.clustermgtd:_handle] - "

# (fault, line that a real log holds, hostlist)
LINES = [
    (
        "AMI of another pcluster version",
        (
            "2026-11-21T07:00:00.000Z CREATE_FAILED AWS::CloudFormation::WaitCondition HeadNodeWaitCondition "
            "WaitCondition received failed message: 'This AMI was created with aws-parallelcluster-cookbook-3.5.1, "
            "but is trying to be used with aws-parallelcluster-cookbook-3.16.1.'"
        ),
        "head",
    ),
    (
        "AMI of another pcluster version",
        "2026-11-21 07:00:00 This AMI was not baked by ParallelCluster. Please use pcluster build-image.",
        "head",
    ),
    (
        "insufficient capacity",
        (
            "2026-11-21 07:12:31,104 - [slurm_plugin.fleet_manager:run_instances] - ERROR - Error in CreateFleet "
            "request: InsufficientInstanceCapacity - We currently do not have sufficient trn1.32xlarge capacity in the "
            "Availability Zone."
        ),
        "head",
    ),
    (
        "insufficient capacity",
        MTGD + "ERROR - Failed to launch instances due to limited EC2 capacity for following nodes: (x2) "
        "['trn1-dy-trn1-1', 'trn1-dy-trn1-2']",
        "trn1-dy-trn1-[1-2]",
    ),
    (
        "insufficient capacity",
        "An error occurred (ReservationCapacityExceeded) when calling the RunInstances operation",
        "head",
    ),
    (
        "quota of the namespace",
        ('pods "bert-0-x" is forbidden: exceeded quota: small, requested: cpu=1, used: cpu=4, limited: cpu=4'),
        "head",
    ),
    (
        "Volcano's admission not ready",
        ('Internal error occurred: failed calling webhook "mutatejob.volcano.sh": failed to call webhook'),
        "head",
    ),
    (
        "Volcano's queue closed",
        ("can only submit job to queue with state `Open`, queue `trainium` status is `Closed`"),
        "head",
    ),
    (
        "access denied by Kubernetes",
        ('jobs.batch is forbidden: User "ann" cannot create resource "jobs" in API group "batch"'),
        "head",
    ),
    (
        "image cannot be pulled",
        ('bert-0: ImagePullBackOff: Back-off pulling image "registry.example/bert:1"'),
        "head",
    ),
    (
        "CreateContainerConfigError",
        ("efa-plugin: CreateContainerConfigError: container has runAsNonRoot and image will run as root"),
        "head",
    ),
    (
        "add-on does not run",
        "kube-system: fsx-csi-node-x2k4p: CrashLoopBackOff: back-off 5m0s restarting failed container=fsx-plugin",
        "head",
    ),
    (
        "no Lustre client",
        (
            'MountVolume.SetUp failed for volume "bert" : rpc error: code = Internal desc = Could not mount "fs-0a" '
            'at "/var/lib/kubelet/a": mount failed: exit status 19 Output: mount.lustre: mount fs-0a at '
            "/var/lib/kubelet/a failed: No such device Are the lustre modules loaded?"
        ),
        "head",
    ),
    (
        "Lustre not reached",
        (
            'MountVolume.SetUp failed for volume "bert" : rpc error: code = Internal desc = Could not mount "fs-0a" at '
            '"/var/lib/kubelet/a": mount failed: exit status 5 Output: mount.lustre: mount fs-0a at /var/lib/kubelet/a '
            "failed: Input/output error Is the MGS running?"
        ),
        "head",
    ),
    (
        "FailedMount",
        'MountVolume.SetUp failed for volume "a" : rpc error: code = DeadlineExceeded desc = context deadline exceeded',
        "head",
    ),
    (
        "FailedMount",
        (
            "Unable to attach or mount volumes: unmounted volumes=[shared], unattached volumes=[job shared]: timed out "
            "waiting for the condition"
        ),
        "head",
    ),
    (
        "FailedMount",
        (
            'MountVolume.SetUp failed for volume "bert" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: '
            "driver name fsx.csi.aws.com not found in the list of registered CSI drivers"
        ),
        "head",
    ),
    (
        "claim pending",
        'persistentvolumeclaim "fsx-claim" not found',
        "head",
    ),
    (
        "node of Kubernetes lost",
        "lost-0123456789ab-1-x2k4p: its node ip-10-77-0-9.us-west-2.compute.internal does not answer",
        "head",
    ),
    (
        "Unschedulable",
        ("0/2 nodes are available: 2 Insufficient aws.amazon.com/neuron."),
        "head",
    ),
    (
        "quota exceeded",
        (
            "An error occurred (VcpuLimitExceeded) when calling the RunInstances operation: You have requested more "
            "vCPU capacity than your current vCPU limit of 128 allows"
        ),
        "head",
    ),
    (
        "EFA security group",
        (
            "node-2:4242:4301 [0] NCCL WARN NET/OFI Request completed with error. RC: 107. Error: 15 (Unreachable "
            "remote (never received a response))."
        ),
        "head",
    ),
    (
        "EFA security group",
        (
            "An EFA requires a security group that allows all inbound and outbound traffic to and from the security "
            "group itself."
        ),
        "head",
    ),
    (
        "S3 access denied",
        "fatal error: An error occurred (403) when calling the HeadObject operation: Forbidden",
        "head",
    ),
    (
        "S3 access denied",
        "download failed: s3://bert-node/node.sh An error occurred (AccessDenied) when calling the GetObject operation",
        "head",
    ),
    (
        "expired signing key of the Neuron packages",
        (
            "W: GPG error: https://apt.repos.neuron.amazonaws.com focal InRelease: The following signatures were "
            "invalid: EXPKEYSIG 5749CAD8646D9185 Amazon AWS Neuron <neuron-maintainers@amazon.com>"
        ),
        "head",
    ),
    (
        "glibc too old",
        "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.35' not found (required by _XLAC.so)",
        "head",
    ),
    (
        "Neuron driver does not fit",
        "modprobe: FATAL: Module neuron not found in directory /lib/modules/6.8.0-1040-aws",
        "head",
    ),
    (
        "Neuron driver does not fit",
        (
            "2026-Nov-21 07:00:01.0042 77:77 ERROR NRT:nrt_init Unable to determine Neuron Driver version. Please "
            "check aws-neuronx-dkms package is installed."
        ),
        "head",
    ),
    (
        "Invalid NCCL_COMM_ID: wrong address",
        (
            "queue-0-dy-cr-1:9131:9167 [0] bootstrap.cc:30 NCCL WARN Invalid NCCL_COMM_ID "
            "[queue-0-dy-cr-1.tests.pcluster:42323], please use format: <ipv4>:<port> or [<ipv6>]:<port> or "
            "<hostname>:<port>"
        ),
        "head",
    ),
    (
        "Invalid NCCL_COMM_ID: name too long",
        (
            "q:1:2 [0] bootstrap.cc:30 NCCL WARN Invalid NCCL_COMM_ID "
            f"[{'q' * 25}-dy-{'c' * 25}-1.bert-large.pcluster:42323], please use format: <ipv4>:<port>"
        ),
        "head",
    ),
    ("fork with EFA", "to the fork() system call to create a child process.", "head"),
    ("fork with EFA", "For the Libfabric EFA provider to work safely when fork()", "head"),
    ("too many open files", "OSError: [Errno 24] Too many open files: '/fsx/data/part-0001.hdf5'", "head"),
    ("compile cache on NFS", "OSError: [Errno 37] No locks available", "head"),
    (
        "rendezvous timeout",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        "head",
    ),
    (
        "rendezvous timeout",
        (
            "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to "
            "connect to (10.77.16.5, 29500)."
        ),
        "head",
    ),
    (
        "OnNodeConfigured failed",
        (
            "Failed to execute OnNodeConfigured script s3://bert-node/node.sh, return code: 1. Please check "
            "/var/log/cloud-init-output.log in the node."
        ),
        "head",
    ),
    (
        "OnNodeConfigured failed",
        "trainium: ip-10-0-0-7: the node is not set up: The driver cannot be built.",
        "head",
    ),
    (
        "bootstrap timeout",
        MTGD + "WARNING - Node bootstrap error: Resume timeout expires for node trn1-dy-trn1-7(10.0.0.7)",
        "trn1-dy-trn1-7",
    ),
    (
        "bootstrap timeout",
        (
            "2026-11-21T07:40:00.000Z CREATE_FAILED AWS::CloudFormation::WaitCondition HeadNodeWaitCondition "
            "WaitCondition timed out. Received 0 conditions when expecting 1"
        ),
        "head",
    ),
    (
        "protected compute fleet",
        MTGD + "WARNING - Setting cluster into protected mode due to failures detected in node provisioning.",
        "head",
    ),
    (
        "Slurm node down",
        "[2026-11-21T07:00:00.101] error: Nodes trn1-st-trn1-[1-3] not responding, setting DOWN",
        "trn1-st-trn1-[1-3]",
    ),
    (
        "Slurm node down",
        "[2026-11-21T07:00:00.101] error: Setting node ip-10-77-16-5 state to INVAL with reason:Low RealMemory",
        "ip-10-77-16-5",
    ),
]


@pytest.mark.parametrize(("fault", "line", "node"), LINES, ids=[f"{row[0]} {place}" for place, row in enumerate(LINES)])
def test_a_real_line_of_each_fault_is_recognised(fault: str, line: str, node: str) -> None:
    (found,) = known_faults({"head:/var/log/some.log": ["starting", line, "done"]})
    assert (found["fault"], found["node"], found["count"]) == (fault, node, 1)
    assert found["line"] == line[:300]
    assert found["source"] == "head:/var/log/some.log"
    assert found["cause"].endswith(".") and found["remedy"].endswith((".", "..."))


def test_every_fault_has_a_line_here() -> None:
    assert {row[0] for row in LINES} == set(NAMES)
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize(
    "line",
    [
        "export FI_EFA_FORK_SAFE=1",
        "Node trn1-dy-trn1-1 is ready",
        "nofile 65536 open files",
        "slurmctld: Recovered state of 4 nodes",
        "GLIBC 2.39 found",
        "NCCL_COMM_ID is 10.0.0.5:6000",
    ],
)
def test_ordinary_lines_are_no_faults(line: str) -> None:
    assert known_faults({"head:x": [line]}) == []


def test_the_newest_line_of_all_sources_is_shown() -> None:
    word = "Too many open files"
    logs = {
        "a:one": ["2026-11-21 07:00:09 new", f"  {word} (of the line above)", f"2026-11-21T07:00:05 {word} (older)"],
        "b:two": [f"2026-11-21 07:00:01 {word} (oldest)"],
    }
    (found,) = known_faults(logs)
    assert found["line"].endswith("(of the line above)")
    assert (found["time"], found["source"], found["node"], found["count"]) == ("2026-11-21T07:00:09", "a:one", "a,b", 3)


def test_without_times_the_last_line_is_shown() -> None:
    (found,) = known_faults({"a:x": ["EMFILE 1", "EMFILE 2"]})
    assert found["line"] == "EMFILE 2"


def test_a_fault_of_many_nodes_is_told_once() -> None:
    logs = {f"ip-10-0-0-{n}.i-0a1b2c3d4e5f6{n:04d}.slurmd": ["Too many open files"] for n in (3, 1, 2, 7)}
    (found,) = known_faults(logs)
    assert found["node"] == "ip-10-0-0-[1-3,7]"


def test_the_reasons_that_slurm_lists_name_their_nodes() -> None:
    lines = [
        "REASON               USER      TIMESTAMP           NODELIST",
        "Not responding       slurm     2026-11-21T07:00:00 trn1-st-trn1-[1-2]",
        "Low RealMemory       root      2026-11-21T07:00:00 node7",
    ]
    (found,) = known_faults({"head:sinfo -R": lines})
    assert found["node"] == "node7,trn1-st-trn1-[1-2]"


def test_causes_come_before_what_follows_from_them() -> None:
    lines = [
        "Setting cluster into protected mode",
        "Resume timeout expires for node a-dy-b-1",
        "This AMI was created with 3.5.1, but is trying to be used with 3.16.1",
    ]
    assert [item["fault"] for item in known_faults({"head:x": lines})] == [
        "AMI of another pcluster version",
        "bootstrap timeout",
        "protected compute fleet",
    ]


def test_no_secret_is_shown() -> None:
    (found,) = known_faults({"a:x": ["EMFILE AWS_SECRET_ACCESS_KEY=abcdef password: hunter2"]})
    assert found["line"] == "EMFILE AWS_SECRET_ACCESS_KEY=**** password: ****"


@pytest.mark.parametrize(
    ("source", "node"),
    [
        ("head:/var/log/slurmctld.log", "head"),
        ("ip-10-0-0-1.i-0a1b2c3d4e5f60001.clustermgtd", "ip-10-0-0-1"),
        ("stack-events.log", ""),
        ("", ""),
    ],
)
def test_a_source_says_which_node_wrote_it(source: str, node: str) -> None:
    assert node_of(source) == node


def test_a_text_is_cut_at_its_headers() -> None:
    text = "before\n==> /var/log/a <==\n1\n2\n==> sinfo -R <==\n==> /var/log/b <==\n3\n"
    assert sections("n1", text) == {"n1": ["before"], "n1:/var/log/a": ["1", "2"], "n1:/var/log/b": ["3"]}


any_line = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from([*SIGNS, "node n[1-200]", "Nodes x[9-1]", "a-dy-b-[1-3]", "[", "]", ":", "é"]), max_size=6
    ).map(" ".join),
)


@settings(deadline=None)
@given(
    st.dictionaries(st.one_of(st.text(max_size=40), st.just("h:sinfo -R")), st.lists(any_line, max_size=6), max_size=4)
)
def test_no_text_makes_it_fail(logs: dict[str, list[str]]) -> None:
    found = known_faults(logs)
    names = [item["fault"] for item in found]
    assert names == [name for name in NAMES if name in names]
    assert sum(item["count"] for item in found) <= sum(map(len, logs.values())) * len(NAMES)


def test_a_few_words_do_not_stand_for_millions_of_names() -> None:
    lines = [f"INVALID_REG node n[{low}-60000]" for low in range(1, 300)]
    (found,) = known_faults({"h:x": lines})
    assert found["count"] == len(lines)


@given(st.lists(st.one_of(st.text(), st.sampled_from(["==> a <==", " ==> b c <== ", "==> <=="]))), st.text(max_size=20))
def test_no_line_is_lost_in_sections_and_none_is_made_up(lines: list[str], name: str) -> None:
    text = "\n".join(lines)
    found = sections(name, text)
    heads = [line.strip() for line in text.splitlines() if line.strip() in ("==> a <==", "==> b c <==")]
    plain = [line for line in text.splitlines() if line.strip() not in ("==> a <==", "==> b c <==")]
    # Text of any kind is hardly ever a head of its own.
    assume(not any(line.strip().startswith("==> ") and line.strip() != "==> <==" for line in plain))
    assert Counter(line for kept in found.values() for line in kept) == Counter(plain)
    assert {*found} <= {name, *(f"{name}:{head[4:-4]}" for head in heads)}


def test_no_half_of_a_secret_is_left_where_a_line_was_cut() -> None:
    """What is masked before it makes room for it."""
    secret = "AKIAIOSFODNN7EXAMPLE"
    for place in range(LINE_LIMIT - 25, LINE_LIMIT + 2):
        line = f"nccl: No locks available password={'x' * (place - 40)} {secret} and more"
        (found,) = known_faults({"h:x": [line]})
        assert "AKIAIO" not in found["line"], place
        assert "No locks available" in found["line"]


@pytest.mark.parametrize(
    "piece", ["Node a-dy-", "password=", "node n1", "EMFILE nodes a", "1-dy-1", "No locks available"]
)
def test_the_time_grows_with_the_lines_only(piece: str) -> None:
    line = "EMFILE not responding, setting down " + piece * 2000
    logs = {"h:x": [line] * 300}
    started = time.process_time()
    known_faults(logs)
    # A pattern that is quadratic in such lines takes minutes.
    assert time.process_time() - started < 10
