"""The archive: built, installed, released."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import yaml

from tests.publish.check import NAME, Check
from tests.publish.users import REPOSITORY, FailedError, User


def archive(check: Check) -> str:
    """Build the archive from a plain clone"""
    shutil.rmtree(check.folder / "clone", ignore_errors=True)
    check.here("git", "clone", "--quiet", str(REPOSITORY), str(check.clone), where=REPOSITORY)
    for old in check.folder.glob("*.tar.gz"):
        old.unlink()
    check.here("ansible-galaxy", "collection", "build", "--output-path", str(check.folder))
    (check.archive,) = check.folder.glob("trainium-cluster-*.tar.gz")
    open_changes = check.here("git", "status", "--porcelain", where=REPOSITORY).splitlines()
    note = f"; {len(open_changes)} changes of the checkout are not committed" if open_changes else ""
    return f"{check.archive.name}, {check.archive.stat().st_size // 1024} KB{note}"


def install(check: Check) -> str:
    """Install it into an empty environment, as the README says"""
    return check.galaxy().versions()


def changelog(check: Check) -> str:
    """antsibull-changelog cuts the next release on a copy"""
    copy = check.folder / "release/ansible_collections/trainium/cluster"
    shutil.rmtree(check.folder / "release", ignore_errors=True)
    shutil.copytree(check.clone, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    told = copy / "changelogs/changelog.yaml"
    card = (copy / "galaxy.yml").read_text(encoding="utf-8")
    version = str(yaml.safe_load(card)["version"])
    if version in yaml.safe_load(told.read_text(encoding="utf-8"))["releases"]:
        page = copy / "CHANGELOG.rst"
        if not page.exists() or f"v{version}" not in page.read_text(encoding="utf-8").splitlines():
            raise FailedError(f"CHANGELOG.rst as committed has no section v{version}: commit it with the release")
        # It was cut; the next one has something to tell, whether there are fragments yet or not.
        major, minor, _patch = map(int, version.split("."))
        version = f"{major}.{minor + 1}.0"
        note = copy / "changelogs/fragments/publish-check.yml"
        note.parent.mkdir(exist_ok=True)
        note.write_text("trivial:\n  - A trial.\nminor_changes:\n  - A trial.\n", encoding="utf-8")
    else:
        version = max(version, "0.2.0", key=lambda text: [int(part) for part in text.split(".")])
    (copy / "galaxy.yml").write_text(re.sub(r"(?m)^version: .*", f"version: {version}", card), encoding="utf-8")
    for words in (
        ["lint"],
        ["release", "--version", version],
        ["lint-changelog-yaml", "changelogs/changelog.yaml"],
    ):
        check.here("antsibull-changelog", *words, where=copy)
    made = yaml.safe_load(told.read_text(encoding="utf-8"))["releases"]
    if f"v{version}" not in (copy / "CHANGELOG.rst").read_text(encoding="utf-8"):
        raise FailedError(f"CHANGELOG.rst has no section v{version} after antsibull-changelog release")
    return f"CHANGELOG.rst with v{version}, {sum(map(len, made[version]['changes'].values()))} entries"


def release(check: Check) -> str:
    """make release: what ansible-galaxy builds, the same bytes twice, signed, and verified by ansible-galaxy"""
    check.here("python", "docs/tools/release.py", "compare", str(check.archive))
    other, output = check.folder / "other-clone", check.folder / "dist"
    for old in (other, output):
        shutil.rmtree(old, ignore_errors=True)
    # Of a path as short as sockets want it.
    keys = tempfile.mkdtemp()
    try:
        check.here("gpg", "--quiet", "--batch", "--passphrase", "", "--quick-generate-key",
                   "publish-check <check@example.com>", "ed25519", "sign", "never", GNUPGHOME=keys)  # fmt: skip
        told = check.here("make", "release", f"OUTPUT={output}/first", GNUPGHOME=keys, MAKEFLAGS="")
        words = f"umask 077; git clone --quiet --no-hardlinks {check.clone} {other}; make -C {other} release"
        check.here("bash", "-ec", f"{words} OUTPUT={output}/second", GNUPGHOME=keys, MAKEFLAGS="")
    finally:
        check.here("gpgconf", "--kill", "all", where=check.folder, GNUPGHOME=keys)
        shutil.rmtree(keys, ignore_errors=True)
        shutil.rmtree(other, ignore_errors=True)
    (made,), (again,) = (list((output / name).glob("*.tar.gz")) for name in ("first", "second"))
    if made.read_bytes() != again.read_bytes():
        raise FailedError(f"{made} and {again} differ, though they are of one commit")
    _verified(check.galaxy(), made.parent, told)
    return f"{made.name} twice the same, {made.stat().st_size // 1024} KB; a changed file and another's key are noticed"


def _verified(user: User, released: Path, told: str) -> None:
    """The commands that `make release` prints, word for word; and that they fail where they should."""
    where = user.empty
    for path in released.iterdir():
        shutil.copy2(path, where)
    imported, installed, verified = (line.strip() for line in told.splitlines() if line.startswith("  "))
    environment = {"ANSIBLE_COLLECTIONS_PATH": str(where / "collections"), "GNUPGHOME": tempfile.mkdtemp()}
    try:
        user.run("bash", "-c", imported, where=where, **environment)
        # Its dependencies came with Ansible's package.
        user.run("bash", "-c", f"{installed} --no-deps", where=where, **environment)
        user.run("bash", "-c", verified, where=where, **environment)
        changed = where / "collections/ansible_collections/trainium/cluster/playbooks/site.yml"
        before = changed.read_text(encoding="utf-8")
        changed.write_text(f"{before}# changed\n", encoding="utf-8")
        _refused(user, verified, where, environment, "a changed playbook")
        changed.write_text(before, encoding="utf-8")
        (where / "trainium-cluster.kbx").unlink()
        user.run("gpg", "--no-default-keyring", "--keyring", "./trainium-cluster.kbx", "--list-keys", where=where,
                 **environment)  # fmt: skip
        _refused(user, verified, where, environment, f"a signature of {NAME} without its key")
    finally:
        user.run("gpgconf", "--kill", "all", where=where, **environment)
        shutil.rmtree(environment["GNUPGHOME"], ignore_errors=True)


def _refused(user: User, command: str, where: Path, environment: dict[str, str], what: str) -> None:
    try:
        user.run("bash", "-c", command, where=where, **environment)
    except FailedError:
        return
    raise FailedError(f"ansible-galaxy collection verify passes over {what}")


def environment(check: Check) -> str:
    """ansible-builder reads what an execution environment needs, and makes the context of its image"""
    tools, user = check.tools(), check.galaxy()
    told = yaml.safe_load(
        tools.run("ansible-builder", "introspect", "--sanitize", user.collection.parents[2], where=tools.empty)
    )
    python, system = (
        {key: set(map(str, value)) for key, value in (told.get(kind) or {}).items()} if isinstance(told.get(kind), dict)
        else {"": set(map(str, told.get(kind) or ()))} for kind in ("python", "system")
    )  # fmt: skip
    found = " ".join(sorted(set().union(*python.values()) | set().union(*system.values())))
    # The image has its own Ansible.
    names = [re.split("[<>=]", line)[0] for line in check.requirements() if not line.startswith("ansible>")]
    packages = (check.clone / "meta/bindep.txt").read_text(encoding="utf-8").splitlines()
    names += [line.split()[0] for line in packages if line and not line.startswith("#")]
    if lost := [name for name in names if not re.search(rf"(^|\s){re.escape(name)}\b", found)]:
        raise FailedError(f"ansible-builder does not find {', '.join(lost)} in {found or 'nothing'}")
    where = tools.empty
    definition = {
        "version": 3,
        "images": {"base_image": {"name": "registry.fedoraproject.org/fedora:latest"}},
        "dependencies": {
            "ansible_core": {"package_pip": "ansible-core"},
            "ansible_runner": {"package_pip": "ansible-runner"},
            "galaxy": {"collections": [{"name": str(check.archive), "type": "file"}]},
        },
    }
    (where / "execution-environment.yml").write_text(yaml.safe_dump(definition), encoding="utf-8")
    tools.run("ansible-builder", "create", "--context", "context", where=where)
    if not (where / "context/Containerfile").exists() and not (where / "context/Dockerfile").exists():
        raise FailedError(f"ansible-builder create has made no file for an image; see {check.log}")
    return f"{len(names)} requirements; the image itself wants a registry, which is not asked"


def licences(check: Check) -> str:
    """reuse lint"""
    check.tools().run("reuse", "lint", "--quiet", where=check.clone)
    return "each file has its licence"


def workflows(check: Check) -> str:
    """The workflows by their schema and by zizmor, a check of their security"""
    tools, folder = check.tools(), check.clone / ".github"
    files = sorted((folder / "workflows").glob("*.yml"))
    tools.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files, where=check.clone)
    tools.run("check-jsonschema", "--builtin-schema", "vendor.dependabot", folder / "dependabot.yml", where=check.clone)
    tools.run("zizmor", "--offline", "--no-progress", "--min-severity", "medium", folder, where=check.clone,
              NO_COLOR="1", TERM=os.environ.get("TERM", "dumb"))  # fmt: skip
    return f"{len(files)} workflows"
