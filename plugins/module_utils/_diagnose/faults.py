# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The faults that clusters for Trainium are known to have: the words of a log that show them, cause and remedy. Pure.

The words are those of ParallelCluster 3, Slurm, libfabric, NCCL, apt, glibc, PyTorch and AWS's own error codes.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One known fault.

    ``signs`` are alternatives; a line shows the fault if all pieces of one are in it, in lower case. ``cause`` and
    ``remedy`` are a sentence each. With ``names_nodes`` a line tells of other nodes than the one that wrote it.
    """

    name: str
    cause: str
    remedy: str
    signs: tuple[tuple[str, ...], ...]
    names_nodes: bool = False


COMM_ID_ADDRESS = Fault(
    "Invalid NCCL_COMM_ID: wrong address",
    "/etc/hosts gives the node of rank 0 a wrong or no address, as ParallelCluster up to 3.5.1 wrote it on nodes with "
    "several interfaces.",
    "Update to ParallelCluster 3.6.0 or newer, or run the role cluster_hosts with cluster_hosts_mode strip-alias on "
    "the nodes.",
    (("invalid nccl_comm_id",),),
)
COMM_ID_LENGTH = Fault(
    "Invalid NCCL_COMM_ID: name too long",
    "The full name of a node, <queue>-<st or dy>-<compute resource>-<number>.<cluster>.pcluster, is longer than 63 "
    "characters.",
    "Shorten the names of the cluster, the queue or the compute resource, and create the cluster anew.",
    # Recognised by the length of the name in the line of the fault above.
    (),
)

# The nearest to a cause first; what follows from others comes last.
FAULTS: tuple[Fault, ...] = (
    Fault(
        "AMI of another pcluster version",
        "The AMI was made by another version of ParallelCluster than the one that creates the cluster, or by none.",
        "Build the AMI anew with playbooks/image.yml and the version in parallelcluster_version, or leave "
        "parallelcluster_custom_ami empty.",
        (
            ("this ami was created with", "but is trying to be used with"),
            ("this ami was not baked by",),
            ("amiversionmismatch",),
        ),
    ),
    Fault(
        "insufficient capacity",
        "EC2 has no more instances of this type in the Availability Zone at the moment.",
        "Use a subnet in another zone that offers the type, a capacity reservation or a Capacity Block, or fewer "
        "nodes.",
        (
            ("insufficientinstancecapacity",),
            ("insufficienthostcapacity",),
            ("insufficientreservedinstancecapacity",),
            ("reservationcapacityexceeded",),
            ("due to limited ec2 capacity",),
            ("in down state due to insufficient capacity",),
        ),
        names_nodes=True,
    ),
    Fault(
        "quota of the namespace",
        "The namespace's ResourceQuota does not let the pods be made.",
        "End other jobs of the namespace, or have its quota raised: kubectl describe resourcequota.",
        (("exceeded quota:",), ("must specify limits for",)),
    ),
    Fault(
        "Volcano's admission not ready",
        "Volcano's webhooks refuse every job until the pods of volcano-admission answer.",
        "Wait until Job volcano-admission-init has ended and volcano-admission runs in volcano-system, then run again.",
        (("failed calling webhook", "volcano"), ("volcano-admission", "connection refused")),
    ),
    Fault(
        "Volcano's queue closed",
        "The queue of Volcano does not take jobs: it is closed, or does not exist.",
        "Open it (vcctl queue operate --action open --name <queue>), run playbooks/nodes.yml, or set another "
        "trainium_queue.",
        (("can only submit job to queue with state",), ("queue", "status is `clos"), ("unable to find job queue",)),
    ),
    Fault(
        "access denied by Kubernetes",
        "The user of the kubeconfig may not do this in the namespace, or is none that the cluster knows.",
        "Have the role of docs/eks.md bound to the user in the namespace, or an access entry made "
        "(trainium_eks_admins); check aws sts get-caller-identity.",
        (("is forbidden: user",), ("cannot create resource",), ("you must be logged in to the server",)),
    ),
    Fault(
        "image cannot be pulled",
        "The container image does not exist under this name, or the nodes may not read its registry.",
        "Correct image in trainium_training (of an add-on, eks_addons_mirrors), push the image, or let the node role "
        "read the repository.",
        (("imagepullbackoff",), ("errimagepull",), ("invalidimagename",), ("failed to pull image",)),
    ),
    Fault(
        "CreateContainerConfigError",
        "A container's configuration cannot be made: an object that it reads is missing, or it may not run as root, as "
        "EFA's device plugin of old manifests, without which no node has EFA.",
        "Read its message with kubectl describe pod; for EFA's plugin run playbooks/nodes.yml, which installs a "
        "release that runs.",
        (("createcontainerconfigerror",), ("container has runasnonroot",)),
    ),
    Fault(
        "add-on does not run",
        "A container of an add-on ends again and again, or what makes its pods is not allowed to.",
        "Read its log (kubectl --namespace kube-system logs POD --previous) and kubectl describe pod; "
        "playbooks/nodes.yml brings the release that fits.",
        (("crashloopbackoff",), ("-system: ", "failed with code"), ("-system: ", "cannot make its pods")),
    ),
    Fault(
        "no Lustre client",
        "A node cannot mount FSx for Lustre: it has no client of Lustre for its kernel.",
        "Leave eks_cluster_lustre true and let the node be replaced, or install lustre-client in an image of your own; "
        "see cloud-init-output.log of the node.",
        (
            ("mount.lustre", "no such device"),
            ("are the lustre modules loaded",),
            ("unknown filesystem type", "lustre"),
        ),
    ),
    Fault(
        "Lustre not reached",
        "A node does not reach the file system of FSx for Lustre: a security group does not let port 988 and ports "
        "1018 to 1023 in, the node gives packets another source port (SNAT), or the file system is not there any more.",
        "Give the file system the security group of the nodes, as the role network does, or let those ports in from "
        "it, and see aws fsx describe-file-systems.",
        (
            ("is the mgs running",),
            ("mount.lustre", "timed out"),
        ),
    ),
    Fault(
        "FailedMount",
        "A node cannot mount a volume of the pod: the driver of the storage does not run there, the name of the file "
        "system is wrong, or what is mounted does not exist.",
        "Wait some minutes, as on a new node it passes by itself; then read its other events with kubectl describe "
        "pod, and the log of the driver on its node; playbooks/nodes.yml installs that of FSx for Lustre.",
        (
            ("unable to attach or mount volumes",),
            ("mountvolume.setup failed", "deadlineexceeded"),
            ("not found in the list of registered csi drivers",),
            ("mount.lustre", "the correct filesystem name"),
            ("mountvolume.setup failed", "configmap", "not found"),
            ("mountvolume.setup failed", "secret", "not found"),
        ),
    ),
    Fault(
        "claim pending",
        "A claim for storage is not bound: it does not exist, its file system is still made, or its driver does not "
        "run.",
        "See kubectl describe pvc; set training_job_claim to one that exists, or wait for the file system.",
        (
            ("unbound immediate persistentvolumeclaims",),
            ("persistentvolumeclaim", "not found"),
            ("waiting for a volume to be created",),
        ),
    ),
    Fault(
        "node of Kubernetes lost",
        "A node of the cluster has not answered its control plane for most of a minute or longer.",
        "Wait: its pods are made anew where there is room, or there when it answers again; see kubectl get nodes and "
        "the status checks of its instance, and end that one if it stays silent.",
        (("nodenotready",), ("its node", "does not answer"), ("of kubernetes", "do not answer")),
    ),
    Fault(
        "Unschedulable",
        "No node of the cluster has what the pod asks for; the counts say of how many nodes what is missing.",
        "Wait until another job ends, add nodes (trainium_node_count), or see why the device plugins do not offer the "
        "devices: kubectl describe node.",
        (
            (" nodes are available",),
            ("tasks in gang unschedulable",),
            ("pod group is not ready",),
            ("device plugins do not offer",),
        ),
    ),
    Fault(
        "quota exceeded",
        "The account's quota of vCPUs for this family of instances is used up in the region.",
        "Ask for a higher quota of 'Running On-Demand Trn instances' (spot has one of its own) in Service Quotas, or "
        "end other instances.",
        (("vcpulimitexceeded",), ("instancelimitexceeded",), ("maxspotinstancecountexceeded",)),
        names_nodes=True,
    ),
    Fault(
        "EFA security group",
        "EFA traffic does not reach the other node: the security group does not let all traffic in from and out to "
        "itself, or the nodes are in different subnets.",
        "Give every node one security group with all traffic in and out and itself as the peer, as the role network "
        "makes it, and one subnet.",
        (
            ("unreachable remote",),
            ("unresponsive remote",),
            ("efa", "requires a security group that allows all inbound and outbound traffic"),
            ("efasecuritygroupvalidator",),
        ),
    ),
    Fault(
        "S3 access denied",
        "The node may not read the object: its role has no right to the bucket, or the object is not there.",
        "Add the bucket to Iam/S3Access of head node and queue (parallelcluster_overrides), or put the object there, "
        "and check the key of an encrypted bucket.",
        (
            ("accessdenied", "s3"),
            ("access denied", "s3"),
            ("(accessdenied)", "getobject"),
            ("(accessdenied)", "listobjects"),
            ("(403)", "headobject"),
        ),
    ),
    Fault(
        "expired signing key of the Neuron packages",
        "The key that apt knows for the Neuron repository has expired.",
        "Run the role neuron, which installs the current key after checking it.",
        (("expkeysig 5749cad8646d9185",), ("5749cad8646d9185", "expired")),
    ),
    Fault(
        "glibc too old",
        "The node's operating system has an older glibc than PyTorch or the Neuron packages were built for.",
        "Use Ubuntu 24.04, or a release of the Neuron SDK that still supports this system (neuron_sdk_version).",
        (("version `glibc_", "not found"), ("version 'glibc_", "not found"), ("version glibc_", "not found")),
    ),
    Fault(
        "Neuron driver does not fit",
        "The kernel module neuron is missing, as after an update of the kernel, or older than the runtime wants.",
        "Run the role neuron, which builds the module for the running kernel and installs driver and runtime of one "
        "release; reboot the node if the old module is in use.",
        (
            ("module neuron not found",),
            ("unable to determine neuron driver version",),
            ("neuron driver", "not compatible"),
            ("neuron driver", "not supported"),
            ("neuron driver", "incompatible"),
            ("driver version", "nrt", "mismatch"),
        ),
    ),
    COMM_ID_ADDRESS,
    COMM_ID_LENGTH,
    Fault(
        "fork with EFA",
        "A process that uses EFA forked on a kernel older than 5.15, where libfabric must be told so.",
        "Set FI_EFA_FORK_SAFE=1 in the job's environment, or use a system with a newer kernel.",
        (
            ("to the fork() system call",),
            ("efa provider to work safely when fork()",),
            ("fork support", "fi_efa_fork_safe"),
        ),
    ),
    Fault(
        "too many open files",
        "A process reached its limit of open files, which EFA and data loaders use up quickly.",
        "Run the role efa, which raises nofile to 65536 (efa_nofile), and log in again or restart slurmd; in a job "
        "check it with ulimit -n.",
        (("too many open files",), ("emfile",)),
    ),
    Fault(
        "compile cache on NFS",
        "The cache of compiled graphs lies on a shared NFS, where its lock cannot be had.",
        "Leave cache.directory of the training out, so that each user has a folder on the node's own disk, or set "
        "NEURON_COMPILE_CACHE_URL to s3://...",
        (("enolck",), ("no locks available",), ("errno 37",)),
    ),
    Fault(
        "rendezvous timeout",
        "The processes of a job did not all find each other in time: a node did not start, rank 0's address or port is "
        "wrong, or the security group closes the port.",
        "Look at the log of the node that is missing; with backend ec2, playbooks/nodes.yml with --tags verify tests "
        "names, ports and an all-reduce.",
        (
            ("rendezvoustimeouterror",),
            ("rendezvousconnectionerror",),
            ("client socket has timed out",),
            ("timed out after", "waiting for clients"),
        ),
    ),
    Fault(
        "OnNodeConfigured failed",
        "The script that sets a node up ended with an error or could not be fetched.",
        "Read the lines before it in /var/log/trainium-node.log on the node, and in cfn-init.log on the head node or "
        "cloud-init-output.log on a compute node.",
        (
            ("failed to execute onnodeconfigured",),
            ("failed to run onnodeconfigured",),
            ("failed to download onnodeconfigured",),
            ("error executing onnodeconfigured",),
            ("onnodeconfiguredexecutionfailure",),
            ("onnodeconfigureddownloadfailure",),
            ("trainium: ", "the node is not set up"),
        ),
    ),
    Fault(
        "bootstrap timeout",
        "A node was launched and did not become part of the cluster in time (2100 s unless configured).",
        "Look at cloud-init-output.log of the node for what it was doing; check its way to AWS and to the head node, "
        "and make a long set-up shorter with an AMI of playbooks/image.yml.",
        (
            ("resume timeout expires",),
            ("replacement timeout expires",),
            ("failed during bootstrap",),
            ("resumetimeout reached",),
            ("headnodebootstraptimeout",),
            ("waitcondition timed out",),
        ),
        names_nodes=True,
    ),
    Fault(
        "protected compute fleet",
        "ParallelCluster stopped launching nodes because too many in a row failed to start.",
        "Repair what made them fail, then start the fleet with trainium.cluster.pcluster_compute_fleet, state running.",
        (
            ("cluster into protected mode",),
            ("cluster is in protected mode",),
            ("from running to protected",),
            ("bootstrap failure partitions to inactive",),
        ),
    ),
    Fault(
        "Slurm node down",
        "Slurm took the node out of service: it does not answer, or registered with less than slurm.conf says.",
        "Look at slurmd.log on the node; for INVALID_REG compare slurmd -C with slurm.conf; then scontrol update "
        "nodename=<node> state=resume.",
        (
            ("invalid_reg",),
            ("setting node", "to inval"),
            ("not responding, setting down",),
            ("not responding ", " slurm "),
            ("not responding ", " root "),
            ("low realmemory",),
            ("low socket*core*thread",),
            ("count reported lower than configured",),
            ("node unexpectedly rebooted",),
            ("state set to down",),
        ),
        names_nodes=True,
    ),
)
