# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each task's worker would import anew, imported once before the first is forked. Private.

Ansible forks a worker for each task and host, loads filters and tests where a template first names one, and compiles
those of a collection from their source each time. It took a third of the processor time of ``validate.yml``.
"""

from __future__ import annotations

from ansible.plugins.loader import filter_loader, test_loader

# One of each that Ansible keeps in files of their own. All filters of a collection come with any one of them.
FILTERS = ("trainium.cluster.hostlist_expand", "ansible.builtin.combine", "ansible.builtin.unique")
TESTS = ("ansible.builtin.match", "ansible.builtin.file")


def preload() -> None:
    """Load filters and tests into this process, from which workers are forked."""
    for name in FILTERS:
        filter_loader.get(name)
    for name in TESTS:
        test_loader.get(name)
