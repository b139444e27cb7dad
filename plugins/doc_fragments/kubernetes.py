# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the modules for Kubernetes have in common."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments of trainium.cluster.kubernetes."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description: The kubeconfig. The default is E(KUBECONFIG), else C(~/.kube/config).
    type: path
  context:
    description: Its context. The default is the current one.
    type: str
  namespace:
    description: The namespace of the training.
    type: str
    default: trainium
  steps:
    description: How many steps the training is to do, to be shown beside those that it has done.
    type: int
  success:
    description: Regular expression of what the log of each rank has to have for the training to have succeeded.
    type: str
  wait:
    description: Whether to wait until the training has ended.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait at most. The training goes on after that.
    type: int
    default: 604800
requirements:
  - kubernetes >= 24.2.0
"""
