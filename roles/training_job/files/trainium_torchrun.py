# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""torchrun that ends with the code of the script it ran.

torchrun ends with 1 whatever its processes ended with. A training that has stopped in time ends with 85, and the
batch script requeues the job only for that. Of several processes that failed, the first one's code counts.
"""

from __future__ import annotations

import sys

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main


def run() -> int:
    """Run torchrun with this program's arguments; the exit code as a shell would see it."""
    try:
        main()
    except ChildFailedError as error:
        code = error.get_first_failure()[1].exitcode
        if code == 85:
            return code
        # torchrun's own account says which process failed, and where.
        print(error, file=sys.stderr)
        # A process that a signal has killed has the signal's number, negated.
        return 128 - code if code < 0 else code
    return 0


if __name__ == "__main__":
    sys.exit(run())
