# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the module fsx_lustre and shows how far its waiting is."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """What Ansible loads."""
