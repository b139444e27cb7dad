# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A component of TorchX for training on AWS Trainium with EKS and Volcano. It needs no Ansible and no other file.

    torchx run --workspace "" --scheduler kubernetes --scheduler_args queue=trainium,namespace=trainium \
        trainium_torchx.py:train --image IMAGE --script /data/train.py --nnodes 2 --precompile True

Compile first with ``--precompile True`` and a few steps, then train without it; both take the same ``--cacheset``, on
which there may be no second job. The role training_job of the Ansible collection trainium.cluster submits what this
component gives, with its launcher torchx.

Role, flags, variables, caches, retries and claim are those of Neuron's sample for EKS (aws-neuron-eks-samples,
dp_bert_hf_pretrain/lib/trn1_dist_ddp.py), but for the rendezvous: c10d on the pod of replica 0, whose name is known
beforehand (Volcano's plugin svc: ``<job>-<task>-<index>.<job>``), where the sample has etcd. Instance types and devices
are those of DescribeInstanceTypes; TorchX's own resources name devices that no plugin offers.
"""

import re
import shlex
from typing import Any

try:
    from torchx import specs
except ImportError:  # Whoever wants `appdef` only.

    class specs:  # type: ignore[no-redef]  # noqa: N801
        """What the annotation below names."""

        AppDef = Any


ROLE = "role1"
PORT = 29500
APP_ID = "${app_id}"
REPLICA = "${replica_id}"
# Type -> Neuron devices, EFA interfaces, NeuronCores as the runtime shows them.
TYPES = {
    "trn1.2xlarge": (1, 0, 2),
    "trn1.32xlarge": (16, 8, 32),
    "trn1n.32xlarge": (16, 16, 32),
    "trn2.3xlarge": (1, 1, 4),
    "trn2.48xlarge": (16, 16, 64),
    "trn2u.48xlarge": (16, 16, 64),
}
# torchrun's --local-addr. Without it, it announces the pod's whole name, which has more than the 63 characters that the
# Neuron runtime's communicator takes (torch/distributed/elastic/rendezvous/api.py, RendezvousStoreInfo.build).
ADDRESS = 'hostname -i | cut -d " " -f 1'
# c10d gives ranks in the order of these texts (dynamic_rendezvous.py, _mark_rendezvous_complete), and only that of rank
# 0 is connected to. The first pod has to be rank 0, since its log is followed: it says its address, the others what
# comes after every address, in the order of their replicas. etcd gives ranks as nodes come, and may ask any.
ORDERED = f"if [ {REPLICA} -eq 0 ]; then {ADDRESS}; else printf replica-%05d {REPLICA}; fi"
# EFA pins memory, and data loaders have many files open; what the container may have at most is the runtime's.
LIMITS = 'ulimit -S -l "$(ulimit -H -l)" -n "$(ulimit -H -n)"; '
CACHESET = re.compile(r"[A-Za-z0-9_-]+")


def appdef(options: "dict[str, Any]") -> "dict[str, Any]":
    """Fields of the AppDef's one role. ``options``: the arguments of `train`. Raises ValueError."""
    if not CACHESET.fullmatch(options["cacheset"]):
        raise ValueError("cacheset may have letters, digits, hyphens and underscores only")
    if options["instance_type"] not in TYPES:
        raise ValueError(f"instance_type {options['instance_type']} is none of {', '.join(TYPES)}")
    neuron, efa, cores = TYPES[options["instance_type"]]
    endpoint = f"{APP_ID}-{ROLE}-0-0.{APP_ID}:{PORT}" if options["rdzv_backend"] == "c10d" else "etcd-server:2379"
    endpoint = options["rdzv_endpoint"] or endpoint
    data, cache = options["data"].rstrip("/"), f"{options['cacheset']}_{REPLICA}"
    words = [
        *("python3", "-m", "torch.distributed.run", "--rdzv_backend", options["rdzv_backend"]),
        *("--rdzv_endpoint", endpoint, "--rdzv_id", APP_ID, "--nnodes", str(options["nnodes"])),
        *("--nproc_per_node", str(options["nproc_per_node"] or cores), "--tee", "3", "--role", "", options["script"]),
    ]
    # A macro is no word of the shell.
    command = " ".join(word if "${" in word else shlex.quote(word) for word in words)
    command = f"{command} {options['script_args']}".rstrip()
    compiled = f"neuron_parallel_compile {shlex.quote(command)}" if options["precompile"] else command
    source = f"set -a && . {shlex.quote(options['environment_file'])} && set +a && "
    address = f'export PET_LOCAL_ADDR="$({ORDERED if options["rdzv_backend"] == "c10d" else ADDRESS})" && '
    script = LIMITS + address + (source if options["environment_file"] else "") + compiled
    own = dict(word.partition("=")[::2] for word in shlex.split(options["env"]))
    env = {
        "CCOM_SOCKET_IFNAME": "eth0",
        "FI_EFA_USE_DEVICE_RDMA": "1",
        "FI_PROVIDER": "efa",
        "FI_EFA_FORK_SAFE": "1",
        "NEURON_RT_RESET_CORES": "1",
        "XLA_TRANSFER_SEED_ASYNC": "1",
        "TRANSFORMERS_CACHE": f"{data}/transformers_cache/{cache}",
        **({"XLA_DOWNCAST_BF16": "1"} if options["bf16"] else {}),
        **own,
        "NEURON_CC_FLAGS": f"{own.get('NEURON_CC_FLAGS', '')} --cache_dir={data}/neuron_cache/{cache}".strip(),
    }
    return {
        "entrypoint": "bash",
        "args": ["-c", script],
        "env": env,
        "devices": {"aws.amazon.com/neuron": neuron, **({"vpc.amazonaws.com/efa": efa} if efa else {})},
    }


def train(
    image: str,
    script: str,
    script_args: str = "",
    name: str = "training",
    nnodes: int = 2,
    nproc_per_node: int = 0,
    instance_type: str = "trn1.32xlarge",
    precompile: bool = False,
    cacheset: str = "default",
    bf16: bool = False,
    env: str = "",
    environment_file: str = "",
    claim: str = "fsx-claim",
    data: str = "/data",
    max_retries: int = 3,
    rdzv_backend: str = "c10d",
    rdzv_endpoint: str = "",
) -> specs.AppDef:
    """Trains on whole Trainium nodes, or fills the compile cache for that.

    Args:
        image: container image with Python, torchrun and Neuron's packages
        script: path of the script in the image or on the shared storage
        script_args: its arguments, as a shell takes them; $$ is a dollar sign
        name: name of the application
        nnodes: number of nodes
        nproc_per_node: processes a node; 0 for one a NeuronCore
        instance_type: type of the nodes
        precompile: run under neuron_parallel_compile, and train nothing
        cacheset: name of the compile cache, on which there may be no second job
        bf16: set XLA_DOWNCAST_BF16
        env: further variables, NAME=VALUE with blanks between them, as a shell takes them
        environment_file: file on the shared storage with variables for a shell, such as tokens
        claim: claim of the shared storage
        data: where pods see it
        max_retries: at which failure Volcano ends the whole job, which it starts again before; 0: at the first
        rdzv_backend: c10d, or etcd, with which rank 0 may be in any pod
        rdzv_endpoint: where etcd is, if not at etcd-server:2379
    """
    made = appdef(dict(locals()))
    resource = specs.Resource(
        cpu=0,
        gpu=0,
        memMB=0,
        capabilities={"node.kubernetes.io/instance-type": instance_type},
        devices=made["devices"],
    )
    return specs.AppDef(
        name=name,
        roles=[
            specs.Role(
                name=ROLE,
                image=image,
                entrypoint=made["entrypoint"],
                args=made["args"],
                env=made["env"],
                num_replicas=nnodes,
                resource=resource,
                max_retries=max_retries,
                retry_policy=specs.RetryPolicy.APPLICATION,
                mounts=[specs.VolumeMount(src=claim, dst_path=data)],
            )
        ],
    )
