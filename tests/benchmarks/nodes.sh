#!/usr/bin/env bash
# What the node roles do, as a plain script over ssh to all nodes at once: the measure for playbooks/nodes.yml.
#   nodes.sh KEY SITE EFA_FINGERPRINT NEURON_FINGERPRINT REQUIREMENTS ADDRESS...
# It checks what the roles check (signatures, devices, Slurm, an all-reduce) and knows nothing of a second run.
set -euo pipefail
key=$1 site=$2 efa_key=$3 neuron_key=$4 requirements=$5
shift 5
addresses=("$@")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ssh_to() { # address command...
  local address=$1
  shift
  ssh -q -i "$key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "ubuntu@$address" "$@"
}
on_all() { # script on stdin: it runs on every node at once
  local script processes=() address
  script=$(cat)
  for address in "${addresses[@]}"; do
    ssh_to "$address" sudo bash -euo pipefail -s <<< "$script" > "$work/$address.log" 2>&1 &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || { tail -n 5 "$work"/*.log >&2; exit 1; }; done
}

{
  echo "cat >> /etc/hosts <<'HOSTS'"
  for address in "${addresses[@]}"; do echo "$address $(ssh_to "$address" hostname)"; done
  echo HOSTS
} > "$work/hosts.sh"
names=$(sed -n 's/^[0-9.]* //p' "$work/hosts.sh" | paste -sd ,)

on_all <<NODE
$(cat "$work/hosts.sh")
fetch() { python3 -c 'import sys, urllib.request as u; u.urlretrieve(sys.argv[1], sys.argv[2])' "\$1" "\$2"; }
fingerprint() { gpg --show-keys --with-colons "\$1" | awk -F: '\$1 == "fpr" { print \$10; exit }'; }
export DEBIAN_FRONTEND=noninteractive
cd "\$(mktemp -d)"

for file in aws-efa-installer-1.51.0.tar.gz aws-efa-installer-1.51.0.tar.gz.sig aws-efa-installer.key; do
  fetch "$site/standins/efa/\$file" "\$file"
done
[ "\$(fingerprint aws-efa-installer.key)" = "$efa_key" ]
export GNUPGHOME=\$PWD/gnupg
mkdir -m 0700 gnupg
gpg -q --no-autostart --import aws-efa-installer.key
gpg -q --no-autostart --trust-model always --verify aws-efa-installer-1.51.0.tar.gz.sig aws-efa-installer-1.51.0.tar.gz
tar -xzf aws-efa-installer-1.51.0.tar.gz
(cd aws-efa-installer && ./efa_installer.sh --yes)
printf '%s\n' '* soft nofile 16384' '* hard nofile 16384' > /etc/security/limits.d/60-nofile.conf

fetch "$site/standins/neuron/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB" neuron.asc
[ "\$(fingerprint neuron.asc)" = "$neuron_key" ]
install -m 0644 neuron.asc /etc/apt/keyrings/neuron.asc
echo "deb [signed-by=/etc/apt/keyrings/neuron.asc] $site/standins/neuron \$(. /etc/os-release; echo "\$VERSION_CODENAME") main" \
  > /etc/apt/sources.list.d/neuron.list
apt-get update -qq
apt-get install -qq --yes --no-install-recommends "linux-headers-\$(uname -r)"
apt-get install -qq --yes --no-install-recommends 'aws-neuronx-dkms=2.27.4.0*' 'aws-neuronx-collectives=2.31.24.0*' \
  'aws-neuronx-runtime-lib=2.31.24.0*' 'aws-neuronx-tools=2.29.22.0*'
apt-mark hold aws-neuronx-dkms aws-neuronx-collectives aws-neuronx-runtime-lib aws-neuronx-tools
modprobe neuron

apt-get install -qq --yes --no-install-recommends python3-venv munge slurm-client slurmctld slurmd
python3 -m venv /opt/aws_neuron_venv_pytorch
/opt/aws_neuron_venv_pytorch/bin/python -m pip install --quiet --disable-pip-version-check --index-url "$site/simple/" \
  --trusted-host "\$(echo "$site" | sed -E 's#.*//([^:/]*).*#\1#')" $requirements

[ "\$(/opt/amazon/efa/bin/fi_info -p efa -t FI_EP_RDM | grep -c domain:)" = 8 ]
[ "\$(/opt/aws/neuron/bin/neuron-ls -j | grep -c neuron_device)" = 16 ]
install -d -o ubuntu /opt/trainium
NODE

secret=$(head -c 96 /dev/urandom | base64 -w 0)
hardware=$(ssh_to "${addresses[0]}" sudo slurmd -C | head -n 1 | cut -d ' ' -f 2-)
on_all <<SLURM
printf '%s' '$secret' > /etc/munge/munge.key
chown munge: /etc/munge/munge.key
chmod 0400 /etc/munge/munge.key
cat > /etc/slurm/slurm.conf <<'CONF'
ClusterName=benchmark
SlurmctldHost=${names%%,*}
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=$names $hardware State=UNKNOWN
PartitionName=compute Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
CONF
systemctl restart munge
[ "\$(hostname)" != "${names%%,*}" ] || systemctl restart slurmctld
systemctl restart slurmd
SLURM

head=${addresses[0]}
until [ "$(ssh_to "$head" sinfo --noheader --Node --format=%t | grep -c idle)" = "${#addresses[@]}" ]; do :; done
on_all << ALLREDUCE
cat > /opt/trainium/allreduce.py <<'SCRIPT'
$(cat "$here/roles/acceptance/files/allreduce.py")
SCRIPT
ALLREDUCE
ssh_to "$head" srun --chdir=/tmp --nodes="${#addresses[@]}" --ntasks-per-node=1 /opt/aws_neuron_venv_pytorch/bin/torchrun \
  --nnodes="${#addresses[@]}" --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint="$head:29510" --rdzv-id=1 \
  /opt/trainium/allreduce.py 2> "$work/allreduce.log" | grep -q '"correct": true'
