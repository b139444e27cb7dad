# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The only reader of ``neuron-ls -j``. Pure.

Needs nothing but Python, since jobs run it as a program: ``neuron-ls -j | python3 neuron_ls.py`` prints the number of
NeuronCores of a node.
"""

from __future__ import annotations

import json
import sys


def devices_of(text: str) -> list[int] | None:
    """NeuronCores of each device, in neuron-ls's order; None for a text that is no answer of neuron-ls.

    Releases differ: a list of devices, or a dictionary that holds one (Neuron's guide of neuron-ls).
    """
    try:
        records = json.loads(text)
    except ValueError:
        return None
    if isinstance(records, dict):
        records = next((value for value in records.values() if isinstance(value, list)), None)
    if not isinstance(records, list):
        return None
    try:
        return [int(record["nc_count"]) for record in records]
    except (KeyError, TypeError, ValueError):
        return None


if __name__ == "__main__":
    counted = devices_of(sys.stdin.read())
    if not counted or not sum(counted):
        raise SystemExit("neuron-ls -j shows no NeuronCore on this node; look into the kernel's log.")
    sys.stdout.write(f"{sum(counted)}\n")
