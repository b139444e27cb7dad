#!/bin/sh
# Takes from a machine what must not be in an image that others start from: names, keys, logs, traces of who was here.
# What is left of it in the end is said, and is a failure. What writes anew for as long as somebody is logged in goes by a
# unit when the machine is stopped. $1 is how it is logged in to: ssh, or ssm, of whose agent the session lives.
set -eu
export LC_ALL=C

agents="amazon-ssm-agent.service snap.amazon-ssm-agent.amazon-ssm-agent.service"
# syslog.socket starts rsyslog again with the next line of a log.
systemctl stop slurmctld slurmd munge syslog.socket rsyslog cron crond unattended-upgrades apt-daily.timer \
    apt-daily-upgrade.timer 2> /dev/null || :
if [ "$1" != ssm ]; then
    # shellcheck disable=SC2086 # two words
    systemctl stop $agents 2> /dev/null || :
fi

# Keys are overwritten where that can be, as a snapshot has the blocks of files that are gone.
forget() {
    if command -v shred > /dev/null; then
        find "$@" -type f -exec shred -u {} + 2> /dev/null || :
    fi
    rm -rf "$@"
}

# cloud-init takes the next boot for the first one; it makes host keys, names and the user's key anew.
if command -v cloud-init > /dev/null; then
    cloud-init clean --logs --seed
fi
rm -rf /var/lib/cloud/instance /var/lib/cloud/instances /var/lib/cloud/data /var/lib/cloud/sem
forget /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub
# Empty, and not absent: systemd makes a new one at the next boot (machine-id(5), "First boot semantics").
: > /etc/machine-id
rm -f /var/lib/dbus/machine-id
forget /var/lib/systemd/random-seed /var/lib/systemd/credential.secret /var/lib/NetworkManager/secret_key
# The key that dkms signs modules with, of which it makes another.
forget /var/lib/shim-signed/mok/MOK.* /var/lib/dkms/mok.*
# By which the builder would have stopped itself.
rm -f /etc/systemd/system/trainium-stop.service /etc/systemd/system/trainium-stop.timer \
    /etc/systemd/system/timers.target.wants/trainium-stop.timer
# Every cluster has a key of its own.
forget /etc/munge/munge.key /var/lib/ubuntu-advantage/private /etc/apt/auth.conf /etc/apt/auth.conf.d/*

people=$(getent passwd | awk -F : '$3 == 0 || ($3 >= 1000 && $3 < 65534) { print $6 }')
printf '%s\n' "$people" | while read -r home; do
    [ "$home" != / ] && [ -d "$home" ] || continue
    forget "$home/.ssh" "$home/.aws" "$home/.config" "$home/.docker" "$home/.gnupg" "$home/.git-credentials" "$home/.netrc"
    rm -rf "$home"/.ansible "$home"/.ansible_async "$home"/.cache "$home"/.*_history "$home"/.lesshst "$home"/.viminfo
done

if command -v apt-get > /dev/null; then
    apt-get clean
    rm -rf /var/lib/apt/lists/*
fi
find /tmp /var/tmp -mindepth 1 -maxdepth 1 ! -name 'systemd-private-*' ! -name snap-private-tmp -exec rm -rf {} + 2> /dev/null || :
# From here on the journal is written into memory.
if command -v journalctl > /dev/null; then
    journalctl --relinquish-var > /dev/null 2>&1 || :
fi

# Both lie in memory, and so in no image. Units stop in the reverse order of their start.
mkdir -p /run/systemd/system
cat > /run/trainium-clean.sh << 'END'
for state in /var/lib/amazon/ssm /var/snap/amazon-ssm-agent/current/var/lib/amazon/ssm; do
    [ ! -d "$state" ] || chattr -R -i "$state" 2> /dev/null || :
    rm -rf "$state"
done
find /var/log -type f \( -name '*.gz' -o -name '*.[0-9]' -o -name '*.journal' \) -delete
find /var/log -type f -exec truncate --size 0 {} +
END
cat > /run/systemd/system/trainium-clean.service << END
[Unit]
Description=Remove what the last session has written
Before=$agents ssh.service sshd.service rsyslog.service cron.service crond.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
ExecStop=/bin/sh /run/trainium-clean.sh
END
systemctl daemon-reload
systemctl start trainium-clean.service
if [ "$1" != ssm ]; then
    sh /run/trainium-clean.sh
fi

# A folder that is not there has nothing in it. Logs are no reason: sshd and sudo write them of this very run.
left=$(
    set +e
    find /etc/ssh -name 'ssh_host_*_key*'
    printf '%s\n' "$people" | while read -r home; do find "$home/.ssh" -type f 2> /dev/null; done
    find /etc/machine-id /etc/munge/munge.key -size +0 2> /dev/null
    find /var/lib/cloud/instances -mindepth 1 2> /dev/null
    [ "$1" = ssm ] || find /var/lib/amazon/ssm -type f 2> /dev/null
    # Passwords of mirrors.
    grep -rlE '://[^/@[:space:]]+:[^/@[:space:]]+@' /etc/apt /etc/yum.repos.d /etc/pip.conf /etc/uv 2> /dev/null || :
)
if [ -n "$left" ]; then
    printf 'These are left, and must not be in an image: %s\n' "$(printf '%s' "$left" | tr '\n' ' ')" >&2
    exit 1
fi
