"""R6: up to a thousand nodes in the emulator, and how time and memory grow with them.

For each size: a launch, the launch that finds nothing to do, the inventory, the hosts file, Slurm's configuration and
the teardown. What grows faster than the nodes do is a fault.
"""

from __future__ import annotations
