"""Makes a host a node of the cluster that its user data names: ``python3 -m sandbox.kubernetes.inside.nodeadm``.

Stands for nodeadm of the AL2023 images for EKS. Who the node is (``/seed/kubernetes``, from the reconciler) is what a
real one learns from the metadata service and proves by its role.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sandbox.kubernetes import network
from sandbox.kubernetes.inside import node_config
from sandbox.kubernetes.inside.node_config import NodeConfigError

SEED = Path("/seed")
DEVICES = Path("/var/lib/kubelet/device-plugins/sandbox")
FILESYSTEMS = Path("/var/lib/kubelet/plugins/sandbox-filesystems")
PAUSE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.10"  # the account of EKS's own images
# kubelet and kube-proxy set these for the whole machine: they get files of their own to write to.
SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
CONTAINERD = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_apparmor = true
  # runc may not lower the score of a container below that of the host it is in.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
"""
# Every registry is the sandbox's; containerd says which one it means.
REGISTRY = """\
server = "{url}"
[host."{url}"]
  capabilities = ["pull", "resolve"]
"""


def cni(pods: str) -> dict[str, Any]:
    """A veth for each Pod, as the VPC CNI makes them, with an address of the node's range."""
    ipam = {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
    ]
    return {"cniVersion": "0.4.0", "name": "sandbox", "plugins": plugins}


def labels(node: dict[str, Any]) -> dict[str, str]:
    """What AWS's cloud controller says of an instance."""
    return {
        "node.kubernetes.io/instance-type": node["instance_type"],
        "topology.kubernetes.io/zone": node["zone"],
        "topology.kubernetes.io/region": node["zone"][:-1],
    }


def _run(*command: str, check: bool = True) -> None:
    subprocess.run(command, check=check)


def _write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def prepare_kernel(node: dict[str, Any]) -> None:
    """Mounts, settings and routes that the node's programs count on."""
    if not Path("/etc/resolv.conf").read_text(encoding="ascii").strip():
        Path("/etc/resolv.conf").write_text((SEED / "resolv.conf").read_text(encoding="ascii"), encoding="ascii")
    for name, value in SYSCTLS.items():
        own = f"/run/sandbox-sysctl/{name.replace('/', '.')}"
        _write(own, f"{value}\n")
        _run("mount", "--bind", own, f"/proc/sys/{name}")
    _run("mount", "--make-rshared", "/")
    # Where the stand-in of the FSx CSI driver finds the file systems of the VPC.
    FILESYSTEMS.mkdir(parents=True, exist_ok=True)
    _run("mount", "--bind", "/filesystems", str(FILESYSTEMS))
    # A node says that it has the addresses of its Pods: other nodes find them on the network they share.
    for name, value in {"ip_forward": "1", "conf/eth0/proxy_arp": "1", "neigh/eth0/proxy_delay": "0"}.items():
        Path(f"/proc/sys/net/ipv4/{name}").write_text(value, encoding="ascii")
    _run("ip", "route", "replace", str(network.PODS), "dev", "eth0")
    _run("ip", "route", "replace", "default", "via", network.gateway(node["vpc_cidr"]))
    # Outside of the cluster a Pod has its node's address, as AWS_VPC_K8S_CNI_EXTERNALSNAT=false makes it.
    leaving = ["-s", str(network.PODS), "!", "-d", str(network.PODS), "-j", "MASQUERADE"]
    _run("iptables", "-w", "-t", "nat", "-A", "POSTROUTING", *leaving)


def write_files(spec: dict[str, Any], node: dict[str, Any]) -> None:
    """The configuration of containerd, kubelet and kube-proxy."""
    cluster = spec["cluster"]
    authority = base64.b64decode(cluster["certificateAuthority"]).decode("ascii")
    _write("/etc/kubernetes/pki/ca.crt", authority)
    for name in ("kubelet", "proxy"):
        config = json.loads((SEED / "kubernetes" / f"{name}.kubeconfig").read_text(encoding="utf-8"))
        config["clusters"][0]["cluster"] = {
            "server": cluster["apiServerEndpoint"],
            "certificate-authority-data": cluster["certificateAuthority"],
        }
        _write(f"/etc/kubernetes/{name}.kubeconfig", json.dumps(config))
    settings = node_config.kubelet(spec, network.dns(cluster["cidr"]), network.MAX_PODS)
    _write("/etc/kubernetes/kubelet/config.json", json.dumps(settings, indent=1))
    words = [
        f"--hostname-override={node['name']}",
        f"--node-ip={node['private_ip']}",
        f"--provider-id=aws:///{node['zone']}/{node['instance_id']}",
        *node_config.flags(spec, labels(node)),
    ]
    size = f"SANDBOX_NODE_CORES={node['cores']}\nSANDBOX_NODE_MEMORY={node['memory']}\n"
    _write("/etc/kubernetes/kubelet.env", f"{size}NODE_NAME={node['name']}\nFLAGS={' '.join(words)}\n")
    _write("/etc/containerd/config.toml", CONTAINERD.format(pause=PAUSE))
    _write("/etc/containerd/certs.d/_default/hosts.toml", REGISTRY.format(url=node["registry"]))
    pods = network.pods_of(node["private_ip"], node["vpc_cidr"])
    _write("/etc/cni/net.d/10-sandbox.conflist", json.dumps(cni(pods), indent=1))
    # Where the plugins of devices look; kubelet empties the folder above, but leaves folders in it.
    DEVICES.mkdir(parents=True, exist_ok=True)
    (DEVICES / "devices.json").write_text(json.dumps(node["devices"]), encoding="ascii")


def run_scripts(user_data: str) -> None:
    """The scripts of the user data, once, as cloud-init runs them before the node joins."""
    for number, script in enumerate(node_config.scripts(user_data)):
        path = Path(f"/var/lib/cloud/part-{number:03}")
        if path.exists() or not script.startswith("#!"):
            continue
        _write(str(path), script)
        path.chmod(0o700)
        print(f"part {number} of the user data", flush=True)
        _run(str(path), check=False)


def main() -> int:
    file = SEED / "user-data"
    user_data = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    try:
        spec = node_config.merged(user_data)
    except NodeConfigError as error:
        print(f"nodeadm: {error}", file=sys.stderr)
        return 1
    run_scripts(user_data)
    if spec is None:
        print("nodeadm: no NodeConfig in the user data, so this host joins no cluster")
        return 0
    if not (SEED / "kubernetes" / "node.json").exists():
        print(f"nodeadm: there is no cluster {spec['cluster']['name']} for this host", file=sys.stderr)
        return 1
    node = json.loads((SEED / "kubernetes" / "node.json").read_text(encoding="utf-8"))
    os.umask(0o022)
    write_files(spec, node)
    prepare_kernel(node)
    _run("systemctl", "start", "--no-block", "containerd", "kubelet", "kube-proxy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
