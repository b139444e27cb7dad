# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The variables that describe a cluster of ParallelCluster, its nodes among them."""

from __future__ import annotations

import json

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.arguments import CLUSTER_DOCUMENTATION


class ModuleDocFragment:
    """C(trainium.cluster.pcluster_variables)."""

    # JSON is YAML.
    DOCUMENTATION: str = json.dumps({"options": CLUSTER_DOCUMENTATION})
