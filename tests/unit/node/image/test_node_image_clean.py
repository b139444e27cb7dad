"""What clean.sh leaves of a machine: in a view of its own, in which all folders that it changes are others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.rendered import unit

CLEAN = Path(__file__).resolve().parents[4] / "roles/node_image/files/clean.sh"
# Root needs no namespace of users.
NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
# Programs that would reach the machine itself only say that they were called; units that are not there are no units.
VIEW = """
mount -t tmpfs tmpfs /mnt
cp -a /etc/alternatives /etc/ld.so.* /mnt 2> /dev/null || :
for folder in /etc /root /home /var /tmp /run; do
  mount -t tmpfs tmpfs $folder
  [ "$(stat -f -c %T $folder)" = tmpfs ]
done
cp -a /mnt/* /etc
cd /
printf '%s\n' '#!/bin/sh' 'echo "${0##*/} $*" >> /mnt/calls' \
  'case "${0##*/} $*" in *" start "*) [ ! -e /mnt/late ] || sh /mnt/late ;; *stop*|jour*|chattr*) false ;; esac' \\
  'code=$?; case "$*" in *-i*/snap/*) [ ! -e /mnt/agent ] || sh /mnt/agent ;; esac; exit $code' > /mnt/systemctl
chmod 0755 /mnt/systemctl
for program in cloud-init apt-get journalctl chattr; do ln -s systemctl /mnt/$program; done
export PATH=/mnt:/usr/bin:/bin:/usr/sbin:/sbin
printf '%s\\n' root:x:0:0::/root:/bin/sh ubuntu:x:1000:1000::/home/ubuntu:/bin/sh ann:x:1001:1001::/var/ann:/bin/sh \\
  last:x:65533:1::/var/last:/bin/sh nobody:x:65534:1::/var/nobody:/bin/sh service:x:999:1::/var/service:/bin/sh \\
  daemon:x:1:1::/usr/sbin:/bin/sh > /etc/passwd
for file in $FILES; do
  mkdir -p "${file%/*}"
  echo secret > "$file"
done
"""
# What is kept is said by its name; the rest must go.
FILES = """
/etc/ssh/ssh_host_ed25519_key /etc/ssh/ssh_host_ed25519_key.pub /etc/ssh/ssh_host_rsa_key /etc/ssh/kept
/etc/machine-id /var/lib/dbus/machine-id
/etc/munge/munge.key /etc/apt/auth.conf /etc/apt/auth.conf.d/mirror /var/lib/ubuntu-advantage/private/token /etc/kept
/etc/systemd/system/trainium-stop.service /etc/systemd/system/trainium-stop.timer
/etc/systemd/system/timers.target.wants/trainium-stop.timer /etc/systemd/system/kept.timer
/root/.ssh/authorized_keys /home/ubuntu/.ssh/authorized_keys /home/ubuntu/.ssh/id_ed25519 /home/ubuntu/.bash_history
/home/ubuntu/.aws/credentials /home/ubuntu/.netrc /home/ubuntu/.ansible/tmp/a /home/ubuntu/.ansible_async/1
/home/ubuntu/.config/gh/hosts.yml /home/ubuntu/.docker/config.json /home/ubuntu/.gnupg/private
/home/ubuntu/.git-credentials /home/ubuntu/.cache/pip/a /home/ubuntu/.lesshst /home/ubuntu/.viminfo
/home/ubuntu/.local/kept /home/ubuntu/kept
/var/ann/.ssh/config /var/last/.ssh/id_rsa /var/nobody/.ssh/kept /var/service/.ssh/kept
/var/lib/systemd/credential.secret /var/lib/systemd/random-seed /var/lib/NetworkManager/secret_key
/var/lib/dkms/mok.key /var/lib/shim-signed/mok/MOK.priv /var/lib/shim-signed/mok/kept /var/lib/kept
/var/lib/cloud/instances/i-1/user-data.txt /var/lib/cloud/instance/boot-finished /var/lib/cloud/data/result.json
/var/lib/cloud/sem/config /var/lib/cloud/kept
/var/lib/amazon/ssm/Vault/Store/key /var/snap/amazon-ssm-agent/current/var/lib/amazon/ssm/registration
/var/tmp/ansible-tmp-1/arguments /tmp/.ansible-x/module /tmp/systemd-private-1/tmp/kept /tmp/snap-private-tmp/kept
/var/log/auth.log /var/log/amazon/ssm/agent.log /var/log/old.gz /var/log/syslog.1 /var/log/journal/1/system.journal
/var/lib/apt/lists/Packages
"""
KEPT = sorted(name for name in FILES.split() if "kept" in name)
# The keys and passwords among them, whose blocks a snapshot would have.
KEYS = {name for name in FILES.split() if "ssh_host" in name or "/etc/munge" in name or "/private" in name} | {
    *("/home/ubuntu/.ssh/id_ed25519", "/home/ubuntu/.aws/credentials", "/home/ubuntu/.netrc", "/etc/apt/auth.conf"),
    *("/var/lib/systemd/random-seed", "/var/lib/NetworkManager/secret_key", "/var/lib/dkms/mok.key"),
}
SHOW = "grep -rl secret /etc /root /home /var /tmp || :"


def clean(connection: str, before: str = ":", after: str = SHOW) -> tuple[int, list[str], str]:
    """Its exit code, the lines that ``after`` says, and what it says itself where it fails."""
    script = f'set -e\n{VIEW}\n{before}\nsh -c "$CLEAN" clean "$1" && code=0 || code=$?\n{after}\nexit $code'
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", script, "view", connection],
        # As where somebody logs in: not every byte is a letter there.
        env={
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "FILES": FILES,
            "CLEAN": CLEAN.read_text(encoding="utf-8"),
        },
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
    assert (code, left) == (0, KEPT), said


def test_what_makes_new_ones_is_left_in_its_first_state() -> None:
    # Empty, and there: without the file systemd takes no boot for the first one.
    show = "find /etc/machine-id /var/log /home /var/lib/apt/lists -printf '%p:%s:%y\\n'"
    left = clean("ssh", after=show)[1]
    assert [one for one in left if "machine-id" in one or one.endswith(":f")] == [
        "/etc/machine-id:0:f",
        *("/home/ubuntu/.local/kept:7:f", "/home/ubuntu/kept:7:f"),
        # Programs that have a log open go on in it; of old logs nothing is left.
        *("/var/log/amazon/ssm/agent.log:0:f", "/var/log/auth.log:0:f"),
    ]


def test_a_machine_that_has_none_of_it_is_clean() -> None:
    bare = "rm -rf /etc/ssh/* /etc/munge /etc/apt /etc/systemd /root/.ssh /home/* /var/lib /var/ann /var/last /var/snap"
    for connection in ("ssh", "ssm"):
        code, left, said = clean(connection, f"{bare} /var/nobody /var/service /tmp/* /var/tmp/*; mkdir -p /var/lib")
        assert (code, [one for one in left if "/log/" not in one], said) == (0, ["/etc/kept"], "")


def test_keys_are_overwritten_before_they_go() -> None:
    # One that only says what it would overwrite.
    before = "ln -s systemctl /mnt/shred"
    code, said_of, said = clean("ssh", before, f"sed -n 's/^shred -u //p' /mnt/calls; ({SHOW}) | sed 's/^/left:/'")
    left = sorted(one.removeprefix("left:") for one in said_of if one.startswith("left:"))
    assert (code, left) == (0, KEPT), said
    files = {one for one in said_of if not one.startswith("left:")}
    assert files >= KEYS
    # It is given files and no folders.
    assert files <= set(FILES.split())


def test_who_has_no_home_but_the_root_loses_nothing_of_it() -> None:
    # Neither of the two would do it.
    before = r"""ln -s systemctl /mnt/shred
echo no-home:x:1002:1::/:/bin/sh >> /etc/passwd
printf '%s\n' '#!/bin/sh' 'case "$*" in *//.*) echo "$*" >> /mnt/removed ;; *) exec /bin/rm "$@" ;; esac' > /mnt/rm
chmod 755 /mnt/rm"""
    code, removed, said = clean("ssh", before, "cat /mnt/removed 2> /dev/null || :")
    assert (code, removed, said) == (0, [], "")


def test_programs_are_told_to_forget_and_services_to_stop_first() -> None:
    for connection in ("ssh", "ssm"):
        code, _left, said = clean(connection, after="cat /mnt/calls >&2")
        calls = said.splitlines()
        assert code == 0
        assert {"cloud-init clean --logs --seed", "apt-get clean", "journalctl --relinquish-var"} <= set(calls)
        stopped = {word for call in calls for word in call.split()[2:] if call.startswith("systemctl stop")}
        assert calls[0].startswith("systemctl stop")
        assert {"slurmctld", "slurmd", "munge", "syslog.socket", "rsyslog", "cron", "crond"} <= stopped
        assert {"unattended-upgrades", "apt-daily.timer", "apt-daily-upgrade.timer"} <= stopped
        agents = {"amazon-ssm-agent.service", "snap.amazon-ssm-agent.amazon-ssm-agent.service"}
        # A session of the agent would end with it.
        assert agents & stopped == (agents if connection == "ssh" else set())
        assert [call for call in calls if call.startswith("systemctl")][-2:] == [
            "systemctl daemon-reload",
            "systemctl start trainium-clean.service",
        ]
        # The agent guards its keys against being deleted.
        guarded = [f"chattr -R -i {state}/var/lib/amazon/ssm" for state in ("", "/var/snap/amazon-ssm-agent/current")]
        assert [call for call in calls if call.startswith("chattr")] == (guarded if connection == "ssh" else [])


def test_the_unit_does_nothing_until_it_is_stopped() -> None:
    shown = clean("ssm", after="cat /run/systemd/system/trainium-clean.service >&2")[2]
    found = unit(shown)
    # Only what counts as started is stopped at the end.
    assert (found["Service"]["Type"], found["Service"]["RemainAfterExit"]) == (["oneshot"], ["yes"])
    assert found["Service"]["ExecStart"] == ["/bin/true"]
    assert found["Service"]["ExecStop"] == ["/bin/sh /run/trainium-clean.sh"]
    names = {"amazon-ssm-agent", "snap.amazon-ssm-agent.amazon-ssm-agent", "ssh", "sshd", "rsyslog", "cron", "crond"}
    assert {f"{name}.service" for name in names} == set(found["Unit"]["Before"][0].split())


@pytest.mark.parametrize(
    "file",
    [
        *("/etc/ssh/ssh_host_rsa_key", "/root/.ssh/authorized_keys", "/var/ann/.ssh/deep/key", "/etc/machine-id"),
        *("/etc/munge/munge.key", "/var/lib/cloud/instances/i-2/user-data.txt"),
    ],
)
def test_what_comes_back_meanwhile_is_told(file: str) -> None:
    late = f"printf '%s\\n' 'mkdir -p \"{file.rpartition('/')[0]}\"' 'echo x > \"{file}\"' > /mnt/late"
    code, _left, said = clean("ssh", late)
    assert code == 1
    assert said.startswith("These are left, and must not be in an image: ")
    assert file in said.split()


@pytest.mark.parametrize(("writes", "told"), [("mkdir -p {0}", False), ("mkdir -p {0}; echo x > {0}/key", True)])
def test_an_agent_that_has_registered_itself_meanwhile_is_told(writes: str, told: bool) -> None:
    state = "/var/lib/amazon/ssm"
    code, _left, said = clean("ssh", f"echo '{writes.format(state)}' > /mnt/agent")
    assert (code, f"{state}/key" in said) == (int(told), told)
    # Over whose session it runs, goes at the end.
    assert clean("ssm", f"echo '{writes.format(state)}' > /mnt/agent")[0] == 0


def test_empty_ones_that_come_back_are_none() -> None:
    late = "echo ': > /etc/machine-id; mkdir -p /etc/munge; : > /etc/munge/munge.key; mkdir -p /root/.ssh' > /mnt/late"
    assert clean("ssh", late)[::2] == (0, "")


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


@pytest.mark.parametrize(
    "source", ["/etc/apt/mirror.list", "/etc/yum.repos.d/a.repo", "/etc/pip.conf", "/etc/uv/uv.toml"]
)
def test_the_password_of_a_mirror_is_told(source: str) -> None:
    write = f"mkdir -p {source.rpartition('/')[0]}; echo 'deb https://{{}}c.example/a@b noble main' > {source}"
    code, _left, said = clean("ssh", write.format("ann:b@"))
    assert code == 1
    assert said.endswith(f"These are left, and must not be in an image: {source}\n")
    # A name alone is no password.
    assert clean("ssh", write.format("ann@"))[0] == 0


def test_a_password_of_other_letters_is_told_as_well() -> None:
    write = "printf 'deb https://me:pa\\351@c.example/a noble main\\n' > /etc/apt/mirror.list"
    code, _left, said = clean("ssh", write)
    assert (code, "/etc/apt/mirror.list" in said) == (1, True), said
