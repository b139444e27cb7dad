# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options of the modules that use the library of AWS ParallelCluster."""

from __future__ import annotations


class ModuleDocFragment:
    """C(trainium.cluster.pcluster)."""

    DOCUMENTATION = r"""
options:
  pcluster_python:
    description:
      - The interpreter that has C(aws-parallelcluster), usually that of a virtual environment of its own.
      - By default, the interpreter that runs the module.
      - The connection options reach ParallelCluster by its environment. O(validate_certs=false) cannot, and is refused.
    type: path
requirements:
  - aws-parallelcluster >= 3.5.0 and Node.js, where O(pcluster_python) is
"""
