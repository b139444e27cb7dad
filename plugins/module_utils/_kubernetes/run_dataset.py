# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The code of the pod that brings a dataset: our own source, as an archive that Python runs."""

from __future__ import annotations

import io
import os
import re
import zipfile

PACKAGE = "ansible_collections/trainium/cluster/plugins/module_utils"
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_IMPORT = re.compile(
    rf"^from {PACKAGE.replace('/', '[.]')}[.](?P<module>[\w.]+) import (?P<names>\([^)]*\)|.+)$", re.MULTILINE
)
_START = f"import sys\nfrom {PACKAGE.replace('/', '.')}._dataset.run_pod import main\nsys.exit(main(sys.argv))\n"


def _read(name: str, found: dict[str, str]) -> None:
    """Into ``found``: the source of a module by its path below ours, and of all that it imports of ours."""
    if name in found:
        return
    with open(os.path.join(_ROOT, *name.split("/")) + ".py", encoding="utf-8") as stream:
        found[name] = stream.read()
    for match in _IMPORT.finditer(found[name]):
        module = match["module"].replace(".", "/")
        inner = [f"{module}/{part.split()[0]}" for part in match["names"].strip("()").split(",") if part.strip()]
        for one in (module, *inner):
            if os.path.isfile(os.path.join(_ROOT, *one.split("/")) + ".py"):
                _read(one, found)


def archive() -> bytes:
    """The code of the pod, which Python runs as it is: the same bytes for the same code."""
    sources: dict[str, str] = {}
    _read("_dataset/run_pod", sources)
    files = {"__main__.py": _START, **{f"{PACKAGE}/{name}.py": text for name, text in sources.items()}}
    for path in list(files):
        folder = os.path.dirname(path)
        while folder:
            files.setdefault(f"{folder}/__init__.py", "")
            folder = os.path.dirname(folder)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(files):
            target.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), files[path], zipfile.ZIP_DEFLATED)
    return written.getvalue()
