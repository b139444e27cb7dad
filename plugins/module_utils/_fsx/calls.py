# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call of FSx each, see ec2.py for errors."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import call_of

# Safe to repeat: the requests of both carry a ClientRequestToken.
create = call_of("make the file system", "create_file_system", "FileSystem")
update = call_of("change the file system", "update_file_system")
tag = call_of("tag the file system", "tag_resource")
delete = call_of("delete the file system", "delete_file_system", passed=("FileSystemNotFound",))
