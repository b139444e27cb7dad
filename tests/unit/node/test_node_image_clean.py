"""What clean.sh leaves of a machine: in a view of its own, in which all folders that it changes are others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CLEAN = Path(__file__).resolve().parents[3] / "roles/node_image/files/clean.sh"
# Root needs no namespace of users.
NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
# Programs that would reach the machine itself only say that they were called.
VIEW = """
mount -t tmpfs tmpfs /mnt
cp -a /etc/alternatives /etc/ld.so.* /mnt 2> /dev/null || :
for folder in /etc /root /home /var /tmp /run; do
  mount -t tmpfs tmpfs $folder
  [ "$(stat -f -c %T $folder)" = tmpfs ]
done
cp -a /mnt/* /etc
cd /
printf '#!/bin/sh\\necho "${0##*/} $*" >> /mnt/calls\\n' > /mnt/systemctl
chmod 0755 /mnt/systemctl
for program in cloud-init apt-get journalctl; do ln -s systemctl /mnt/$program; done
export PATH=/mnt:/usr/bin:/bin:/usr/sbin:/sbin
printf '%s\\n' root:x:0:0::/root:/bin/sh ubuntu:x:1000:1000::/home/ubuntu:/bin/sh ann:x:1001:1001::/var/ann:/bin/sh \\
  daemon:x:1:1::/usr/sbin:/bin/sh > /etc/passwd
for file in $FILES; do
  mkdir -p "${file%/*}"
  echo secret > "$file"
done
"""
FILES = """
/etc/ssh/ssh_host_ed25519_key /etc/machine-id /etc/munge/munge.key /etc/apt/auth.conf.d/mirror /etc/kept
/root/.ssh/authorized_keys /home/ubuntu/.ssh/authorized_keys /home/ubuntu/.ssh/id_ed25519 /home/ubuntu/.bash_history
/home/ubuntu/.aws/credentials /home/ubuntu/.netrc /home/ubuntu/.ansible/tmp/a /home/ubuntu/.local/kept
/var/ann/.ssh/config /var/lib/systemd/credential.secret /var/lib/dkms/mok.key /var/lib/kept
/var/lib/cloud/instances/i-1/user-data.txt
/var/lib/amazon/ssm/Vault/Store/key /var/tmp/ansible-tmp-1/arguments /tmp/.ansible-x/module
/var/log/auth.log /var/log/amazon/ssm/agent.log /var/log/old.gz /var/lib/apt/lists/Packages
"""
SHOW = "grep -rl secret /etc /root /home /var /tmp || :"


def clean(connection: str, before: str = ":", after: str = SHOW) -> tuple[int, list[str], str]:
    """Its exit code, the lines that ``after`` says, and what it says itself where it fails."""
    script = f'set -e\n{VIEW}\n{before}\nsh -c "$CLEAN" clean "$1" && code=0 || code=$?\n{after}\nexit $code'
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", script, "view", connection],
        env={"PATH": os.environ["PATH"], "FILES": FILES, "CLEAN": CLEAN.read_text(encoding="utf-8")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, sorted(done.stdout.split()), done.stderr


def test_nothing_that_is_one_machine_s_alone_is_left() -> None:
    # Somebody who writes a log all the time does not keep an image from being made.
    writes = "(while :; do echo x >> /var/log/syslog; sleep 0.01; done) & writer=$!; trap 'kill $writer' EXIT"
    code, left, said = clean("ssh", writes)
    assert (code, left) == (0, ["/etc/kept", "/home/ubuntu/.local/kept", "/var/lib/kept"]), said


def test_what_the_session_needs_goes_when_the_machine_stops() -> None:
    agent = "/var/lib/amazon/ssm/Vault/Store/key"
    code, left, said = clean("ssm")
    assert (code, agent in left, "/var/log/auth.log" in left) == (0, True, True), said
    # What the unit runs when systemd stops it, which it does after agent and sshd.
    at_stop = "sed -n 's/^ExecStop=//p' /run/systemd/system/trainium-clean.service > /mnt/stop; sh -e /mnt/stop; "
    code, left, said = clean("ssm", after=f"{at_stop} cat /mnt/calls; {SHOW}")
    assert not {agent, "/var/log/auth.log", "/var/log/amazon/ssm/agent.log"} & set(left), said
    assert {"daemon-reload", "trainium-clean.service", "syslog.socket"} <= set(left)
    assert "amazon-ssm-agent.service" not in left
    order = "sed -n 's/^Before=//p' /run/systemd/system/trainium-clean.service"
    assert {"amazon-ssm-agent.service", "ssh.service", "rsyslog.service"} <= set(clean("ssm", after=order)[1])


def test_the_password_of_a_mirror_is_told() -> None:
    source = "/etc/apt/mirror.list"
    code, _left, said = clean("ssh", f"echo 'deb https://ann:b@c.example noble main' > {source}")
    assert code == 1
    assert said.endswith(f"These are left, and must not be in an image: {source}\n")
