# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file that lies on the host already, or is fetched from an address."""

from __future__ import annotations

import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import fetch_url


def obtain(module: AnsibleModule, source: str, folder: str, timeout: int) -> str:
    """The path of ``source``: itself, or what was fetched from it into ``folder``.

    A failure ends the module, with the keys ``url`` and ``response`` of ``ansible.builtin.get_url``.

    Args:
        source: an absolute path, or a URL.
        timeout: seconds that the server may be silent.
    """
    if "://" not in source:
        if not os.path.isfile(source):
            module.fail_json(msg=f"There is no file {source}: put it there first, or give a URL.")
        return source
    answer, details = fetch_url(module, source, timeout=timeout)
    # A file:// has no status.
    if details["status"] not in (-1, 200, None) or answer is None:
        module.fail_json(msg=f"{source} was not fetched: {details['msg']}", url=source, response=details["msg"])
    path = os.path.join(folder, os.path.basename(source))
    try:
        with open(path, "wb") as file:
            shutil.copyfileobj(answer, file)
    except OSError as error:
        module.fail_json(msg=f"{source} was not fetched: {error}", url=source, response=str(error))
    expected = answer.headers.get("Content-Length")
    if expected is not None and os.path.getsize(path) != int(expected):
        reason = f"the connection ended after {os.path.getsize(path)} of {expected} bytes"
        module.fail_json(msg=f"{source} was not fetched: {reason}", url=source, response=reason)
    return path
