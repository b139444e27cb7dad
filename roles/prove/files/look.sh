#!/bin/sh
# What a node shows of itself, in sections that module_utils/_prove/evidence.py reads. Changes nothing.
export LC_ALL=C PATH="/opt/aws/neuron/bin:/opt/amazon/efa/bin:$PATH:/usr/sbin:/sbin"
# By the environment, so that no shell reads it as words of its own.
export VENV="$1"
limit=30

section() {
    printf '== %s\n' "$1"
    shift
    # What is not there or hangs is an empty section.
    timeout "$limit" sh -c "$*" 2> /dev/null | head -c 4000
    printf '\n'
}

section name hostname -s
section kernel uname -r
section system '. /etc/os-release; echo "$PRETTY_NAME"'
# Those that came with the image: apt-daily may have fetched some since then. apt sets the other times as its server says.
section apt_lists 'find /var/lib/apt/lists -maxdepth 1 -name "*Packages*" ! -newerct "$(ps -o lstart= -p 1)" | wc -l'
limit=300
section cloud_init 'cloud-init status --wait || :'
limit=30
# systemd-resolved answers for the node's own name by itself (systemd-resolved(8), "Synthetic records").
section resolver '
    name=$(hostname -s).$(awk "\$1 == \"search\" { print \$2; exit }" /etc/resolv.conf)
    if systemctl --quiet is-active systemd-resolved.service; then
        resolvectl query --synthesize=no --legend=no -4 "${name%.}" 2>&1
    else
        getent ahostsv4 "${name%.}" || echo "${name%.}: not found"
    fi'
section metadata 'curl --silent --max-time 3 --output /dev/null --write-out "%{http_code}" --request PUT \
    --header "X-aws-ec2-metadata-token-ttl-seconds: 60" http://169.254.169.254/latest/api/token'
section neuron_source 'cat /etc/apt/sources.list.d/neuron* | grep -v "^ *#" | grep . | tr "\n" " "'
section eni_helper systemctl is-enabled aws-ubuntu-eni-helper.service
section neuron_module modinfo -F version neuron
section dkms dkms status
section devices 'ls -d /dev/neuron[0-9]* | wc -l'
section neuron_ls 'neuron-ls -j || neuron-ls --output-format json'
section neuron_packages 'dpkg-query --show "aws-neuronx-*"'
section efa_installer 'head -n 1 /opt/amazon/efa_installed_packages'
section slurm 'slurmctld -V || slurmd -V'
# What lies in the environment runs as the user whose it is.
section wheels 'runuser -u "$(stat -c %U "$VENV")" -- "$VENV/bin/python" -I -c "
from importlib.metadata import distributions
for one in distributions():
    print(one.metadata[\"Name\"].replace(\"_\", \"-\") + \"==\" + one.version)" | grep -iE "^(torch|torch-neuronx|torch-xla|neuronx-cc|libneuronxla)=="'
