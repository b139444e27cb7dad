"""The callback trainium.cluster.module_cache, by playbooks that ansible-playbook really runs."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.plugin_utils import _module_cache

from tests.sandbox_driver import REPOSITORY

COLLECTION = "ansible_collections/trainium/cluster"
MODULE = """
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.told import TOLD

AnsibleModule({}).exit_json(told=TOLD)
"""
# Of the two modules of the playbook.
KEPT = len(_module_cache.KEPT)
ANSIBLE = str(Path(sys.executable).with_name("ansible-playbook"))


class Site:
    """A copy of the collection with one module more, and a playbook that calls it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "home/modules"
        self.collection = folder / "collections" / COLLECTION
        for name in ("plugins", "meta"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(REPOSITORY / name, self.collection / name, ignore=ignored)
        (self.collection / "plugins/modules/told.py").write_text(MODULE, encoding="utf-8")
        self.tell("before")
        tasks = [
            {"name": "Ask", "trainium.cluster.told": {}},
            {"name": "Look", "ansible.builtin.stat": {"path": str(folder)}},
        ]
        play = {"name": "Tell", "hosts": "localhost", "gather_facts": False, "tasks": tasks}
        (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")

    def tell(self, text: str) -> None:
        path = self.collection / "plugins/module_utils/_common/told.py"
        path.write_text(f"TOLD = {text!r}\n", encoding="utf-8")

    def run(self, cache: str | None = None) -> tuple[int, int, str]:
        """How many modules were there and how many are kept (-1: the folder was not used), and what the module told."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "TRAINIUM_"))}
        variables = json.dumps({"ansible_connection": "local", "ansible_python_interpreter": sys.executable})
        done = subprocess.run(
            [ANSIBLE, "-vv", "-i", "localhost,", "-e", variables, "play.yml"],
            cwd=self.folder,
            env={
                **clean,
                "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
                "ANSIBLE_COLLECTIONS_PATH": str(self.folder / "collections"),
                "TRAINIUM_LOG_DIR": str(self.folder / "log"),
                "TRAINIUM_MODULE_CACHE": str(self.cache) if cache is None else cache,
            },
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        counts = [re.search(rf"module_cache: (\d+) modules are {how}", done.stdout) for how in ("there", "kept")]
        there, kept = (int(count[1]) if count else -1 for count in counts)
        told = re.search(r'"told": "(\w+)"', done.stdout)
        assert told
        return there, kept, told[1]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_next_run_finds_what_was_packed_unless_the_code_has_changed(site: Site) -> None:
    assert site.run() == (0, KEPT, "before")
    assert site.run() == (KEPT, 0, "before")
    site.tell("behind")
    assert site.run() == (0, KEPT, "behind")
    site.tell("before")
    # The file has another time.
    assert site.run() == (0, KEPT, "before")


def test_what_is_kept_is_what_is_used(site: Site) -> None:
    """Otherwise the count that the others look at says nothing."""
    site.run()
    (kept,) = site.cache.glob("*/*.told-*")
    packed = None if _module_cache.PACKED is None else _module_cache.PACKED.load(str(kept))
    data = packed.zip_data if packed else kept.read_bytes()
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(data))) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"before", b"packed"))
    data = base64.b64encode(changed.getvalue())
    if packed:
        dataclasses.replace(packed, zip_data=data).dump(str(kept))
    else:
        kept.write_bytes(data)
    assert site.run()[2] == "packed"


def test_a_folder_that_others_can_write_is_not_used(site: Site) -> None:
    site.run()
    site.cache.chmod(0o770)
    assert site.run() == (0, 0, "before")
    site.cache.chmod(0o700)
    assert site.run()[0] == KEPT
    site.cache.rename(site.folder / "elsewhere")
    site.cache.symlink_to(site.folder / "elsewhere")
    assert site.run() == (0, 0, "before")


def test_a_folder_that_cannot_be_made_is_said_and_fails_nothing(site: Site) -> None:
    (site.folder / "file").write_text("", encoding="utf-8")
    assert site.run(cache=str(site.folder / "file/modules")) == (-1, 0, "before")


def test_an_empty_folder_turns_it_off(site: Site) -> None:
    assert site.run(cache="") == (-1, -1, "before")
    assert not site.cache.exists()


def test_module_utils_beside_the_playbook_are_not_passed_over(site: Site) -> None:
    site.run()
    (site.folder / "module_utils").mkdir()
    assert site.run() == (0, 0, "before")


def test_modules_of_others_are_not_kept(site: Site) -> None:
    (site.folder / "library").mkdir()
    (site.folder / "library/told.py").write_text(MODULE.replace("TOLD)", "'own')"), encoding="utf-8")
    play = (site.folder / "play.yml").read_text(encoding="utf-8")
    (site.folder / "play.yml").write_text(play.replace("trainium.cluster.told", "told"), encoding="utf-8")
    assert site.run()[2] == "own"
    assert not list(site.cache.glob("*/*told*"))
    assert bool(list(site.cache.glob("*/ansible.modules.stat-*"))) is (KEPT == 2)


BASIC = (_module_cache.CORE / "module_utils/basic.py").read_bytes()


@pytest.mark.parametrize(
    ("member", "content", "ours"),
    [
        ("ansible/module_utils/basic.py", BASIC, True),
        ("ansible/module_utils/basic.py", BASIC + b"\n", False),
        ("ansible/module_utils/of_a_role.py", b"", False),
        ("ansible_collections/__init__.py", b"", True),
        ("ansible_collections/__init__.py", b"import os\n", False),
        ("ansible_collections/trainium/cluster/plugins/module_utils/_common/tags.py", b"TAG = 1\n", False),
        ("ansible_collections/community/aws/plugins/modules/x.py", b"", False),
        ("library/x.py", b"", False),
    ],
)
def test_whose_code_is_looked_at_before_it_is_used(member: str, content: bytes, ours: bool) -> None:
    assert _module_cache._is_ours(member, content) is ours


def test_module_utils_of_a_role_that_comes_later_are_not_kept(site: Site) -> None:
    role = site.folder / "roles/later"
    (role / "module_utils").mkdir(parents=True)
    (role / "module_utils/own.py").write_text("", encoding="utf-8")
    (role / "tasks").mkdir()
    (role / "tasks/main.yml").write_text(json.dumps([{"name": "Ask", "trainium.cluster.told": {}}]), encoding="utf-8")
    include = {"name": "Role", "ansible.builtin.include_role": {"name": "later"}}
    play = {"name": "Tell", "hosts": "localhost", "gather_facts": False, "tasks": [include]}
    (site.folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    assert site.run() == (0, 0, "before")


def test_the_folder_of_a_state_and_its_files_are_the_users_own(site: Site) -> None:
    site.run()
    (folder,) = site.cache.iterdir()
    folder.chmod(0o777)
    assert site.run()[0] == 0
    folder.chmod(0o700)
    assert site.run()[0] == KEPT
    for file in folder.iterdir():
        file.chmod(0o666)
    assert site.run()[0] == 0


def test_what_was_packed_before_the_playbook_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The code may have changed since; two playbooks of one command have one folder."""
    monkeypatch.setattr(_module_cache.constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "run"))
    run = tmp_path / "run/ansiballz_cache"
    run.mkdir(parents=True)
    (run / "ansible_collections.trainium.cluster.plugins.modules.x-ZIP").write_bytes(b"of the playbook before")
    cache = _module_cache.ModuleCache(tmp_path / "modules")
    assert cache.offer() == 0
    assert cache.keep() == 0


def test_earlier_states_go(tmp_path: Path) -> None:
    cache = _module_cache.ModuleCache(tmp_path)
    (tmp_path / "of the user").mkdir()
    os.utime(tmp_path / "of the user", (0, 0))
    for number in range(12):
        folder = tmp_path / f"{number:032}"
        folder.mkdir()
        # The last two are in use, the others were used days ago.
        age = 0 if number > 9 else 10**6 - number
        seconds = folder.stat().st_mtime - age
        os.utime(folder, (seconds, seconds))
    cache._forget()
    assert sorted(path.name[-11:] for path in tmp_path.iterdir()) == [
        *(f"{n:011}" for n in range(6, 12)),
        "of the user",
    ]
