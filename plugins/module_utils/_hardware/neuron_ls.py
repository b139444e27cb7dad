# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How neuron-ls is asked, and the only reader of its answer. Pure.

Needs nothing but Python, since jobs run it as a program: with the answer on its standard input it prints the number of
NeuronCores of a node.
"""

from __future__ import annotations

import json
import sys

# As far as Neuron SDK 2.33, and from 2.34 on, which knows the first no longer (announcement of 16 October 2026).
ARGUMENTS = (("-j",), ("--output-format", "json"))


def devices_of(text: str) -> list[int] | None:
    """NeuronCores of each device, in neuron-ls's order; None for a text that is no answer of neuron-ls.

    Releases differ: a list of devices, or a dictionary that holds one beside what all devices have in common.
    """
    try:
        records = json.loads(text)
    except ValueError:
        return None
    listed = records.values() if isinstance(records, dict) else [records]
    found = [counts for counts in map(_counts, listed) if counts is not None]
    # A list without an entry may be of something else.
    return max(found, key=len, default=None)


def _counts(records: object) -> list[int] | None:
    """None for what is no list of devices; a list without any is one."""
    if not isinstance(records, list):
        return None
    try:
        return [int(record["nc_count"]) for record in records]
    except (KeyError, TypeError, ValueError):
        return None


if __name__ == "__main__":
    counted = devices_of(sys.stdin.read())
    if not counted or not sum(counted):
        raise SystemExit("neuron-ls shows no NeuronCore on this node; look into the kernel's log.")
    sys.stdout.write(f"{sum(counted)}\n")
