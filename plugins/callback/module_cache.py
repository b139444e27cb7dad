# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Callback plugin trainium.cluster.module_cache."""

from __future__ import annotations

DOCUMENTATION = r"""
name: module_cache
type: aggregate
version_added: 0.3.0
short_description: Keep modules as they are sent to hosts from one run for the next
description:
  - Ansible packs each module with everything it imports before it sends it, and forgets the packed module when the run
    ends. That takes a fifth of a second for each module that a run uses, whatever the module finds to do. This plugin
    keeps the packed modules of Ansible, of this collection and of those that it depends on, and gives them to the next
    run; with ansible-core 2.17 and 2.18 those of collections only.
  - A packed module is used as long as no file of these has changed, by name, size and time, and the version of Ansible
    and of Python is the same. Where there is another folder C(module_utils) than those of Ansible and of collections,
    beside a playbook, in a role or in the user's own folder of plugins, nothing is used and nothing is kept. One of a
    role that comes by C(include_role) is seen when the playbook ends.
  - What is kept is read as the user's own code is, so the folder must belong to the user, and nobody else may write to
    it; otherwise nothing is kept.
author:
  - The trainium.cluster founders (@trainium)
options:
  folder:
    description:
      - Where packed modules are kept, some megabytes for each state of the code. Six states are kept. It can be
        removed at any time.
      - With an empty value nothing is kept.
    type: str
    default: ~/.ansible/trainium/modules
    env:
      - name: TRAINIUM_MODULE_CACHE
    ini:
      - section: callback_module_cache
        key: folder
requirements:
  - C(callbacks_enabled = trainium.cluster.module_cache) in the section C(defaults) of ansible.cfg, or
    ANSIBLE_CALLBACKS_ENABLED
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible_collections.trainium.cluster.plugins.plugin_utils._module_cache import ModuleCache


class CallbackModule(CallbackBase):
    """Packed modules are offered when a playbook starts, and kept when it ends."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "trainium.cluster.module_cache"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._cache: ModuleCache | None = None

    def v2_playbook_on_start(self, playbook: Any) -> None:
        folder = str(self.get_option("folder") or "")
        self._cache = ModuleCache(Path(folder).expanduser()) if folder else None
        if self._cache:
            self._said("modules are there already", self._cache.offer)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if self._cache:
            self._said("modules are kept for the next run", self._cache.keep)

    def _said(self, what: str, work: Callable[[], int]) -> None:
        """A run is not worse for a folder that cannot be used, only slower."""
        try:
            self._display.vv(f"module_cache: {work()} {what}")
        except OSError as error:
            self._display.vv(f"module_cache: not used: {error}")
