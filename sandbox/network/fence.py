"""Rules of the firewall: only this machine itself, and the hosts among themselves, reach what is on a bridge.

Linux takes a packet for any of its addresses on any of its interfaces, and passes on what it has a route for where
``net.ipv4.ip_forward`` is set, as every other use of containers sets it. So a neighbour in the network of this machine
could reach the mirror, the resolver, the AWS API and the hosts by way of the machine's own address. The rules drop
what arrives for a bridge on another interface. They stand in the table ``raw``, before connections are followed and
before any rule that others have (iptables(8), "raw"); what the machine itself sends does not pass there, or arrives on
``lo``. Nothing is passed on to public addresses: only the machine has a route to them.
"""

from __future__ import annotations

import os
import subprocess

from sandbox.errors import SandboxError
from sandbox.network import PUBLIC


def chain(name: str) -> str:
    """The chain of the sandbox with a short name (`Paths.name`)."""
    return name.upper()


def close(name: str, bridge: str, network: str) -> None:
    """Let nothing in for the addresses of a network but what arrives on its bridge. Doing so again changes nothing.

    Raises:
        SandboxError: the kernel does not take the rules; a host must not start then.
    """
    own = chain(name)
    _iptables("-N", own, check=False)
    public = [own, "-d", PUBLIC, "-j", "DROP"]
    for rule in ([own, "-i", "lo", "-j", "RETURN"], public, [own, *_rule(bridge, network)], ["PREROUTING", "-j", own]):
        if _iptables("-C", *rule, check=False):
            _iptables("-I" if rule[0] == "PREROUTING" else "-A", *rule)


def open_up(name: str, bridge: str, network: str) -> None:
    """Take the rule for a network away, which is gone."""
    _iptables("-D", chain(name), *_rule(bridge, network), check=False)


def remove(name: str) -> None:
    """Take all rules of a sandbox away."""
    own = chain(name)
    _iptables("-D", "PREROUTING", "-j", own, check=False)
    _iptables("-F", own, check=False)
    _iptables("-X", own, check=False)


def _rule(bridge: str, network: str) -> list[str]:
    return ["!", "-i", bridge, "-d", network, "-j", "DROP"]


def _iptables(*arguments: str, check: bool = True) -> int:
    """Its exit code; other programs that change rules at the same time are waited for."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    done = subprocess.run(
        ["iptables", "-w", "30", "-t", "raw", *arguments],
        env={**os.environ, "PATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and check:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SandboxError(
            f"'iptables -t raw {' '.join(arguments)}' failed ({last}), and without it neighbours of this machine could "
            "reach the sandbox's hosts: load the kernel module iptable_raw or nf_tables."
        )
    return done.returncode
