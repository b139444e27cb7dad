"""A pinned key of a repository carries no other key with it: what is kept on the host is what gpg exports.

``Signed-By`` (sources.list(5)) names a file of keys, which may be in ASCII armour; apt takes every block of it whatever
its label, and gpg only those that are labelled as keys. So the file is never kept as it was fetched.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from sandbox.mirror.signing import Key
from tests.own_process import run

REPOSITORY = Path(__file__).resolve().parents[2]
ARMOUR = re.compile(r"-----BEGIN ([^-]+)-----\n(.*?)-----END \1-----", re.DOTALL)


class Keys(NamedTuple):
    """A publisher's key, somebody else's, and the files made of them."""

    folder: Path
    publisher: Key
    stranger: Key
    fingerprint: str


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """The publisher's key alone, and in files with more in them."""
    folder = tmp_path_factory.mktemp("keys")
    publisher = Key(folder / "publisher", "Publisher <publisher@example.org>")
    stranger = Key(folder / "stranger", "Stranger <stranger@example.org>")
    fingerprint = publisher.fingerprint()
    publisher.export(folder / "publisher.asc", armor=True)
    publisher.export(folder / "publisher.gpg")
    stranger.export(folder / "stranger.asc", armor=True)
    stranger._gpg("--export-secret-keys", "--armor", "--output", str(folder / "secret.asc"))
    own = (folder / "publisher.asc").read_text(encoding="ascii")
    other = (folder / "stranger.asc").read_text(encoding="ascii")
    hidden = other.replace("PGP PUBLIC KEY BLOCK", "PGP ARMORED FILE")
    files = {
        "hidden-before.asc": hidden + own,
        "hidden-after.asc": own + hidden,
        "text-around.asc": "Our key\n" + own + "Bye\n",
        "beside.asc": own + other,
        "with-secret.asc": own + (folder / "secret.asc").read_text(encoding="ascii"),
        "no-key.asc": "<html>404</html>\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="ascii")
    return Keys(folder, publisher, stranger, fingerprint)


def keep(keys: Keys, temporary: Path, name: str) -> tuple[dict[str, Any], Path]:
    """What signed_file answers for one of the files, and where it keeps the key."""
    dest = temporary / "keyrings" / "kept.asc"
    source = str(keys.folder / name)
    return run("signed_file", temporary, key=source, fingerprint=keys.fingerprint, dest=str(dest)), dest


def primary_keys(file: Path, folder: Path) -> list[str]:
    """The fingerprints of the keys in all armoured blocks of a file, whatever the label: what apt trusts."""
    packets = b""
    for _label, block in ARMOUR.findall(file.read_text(encoding="ascii")):
        body = block.partition("\n\n")[2] if ":" in block.partition("\n\n")[0] else block
        packets += base64.b64decode("".join(line for line in body.split() if not line.startswith("=")))
    plain = folder / "packets.gpg"
    plain.write_bytes(packets)
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    command = ["gpg", "--homedir", str(home), "--batch", "--with-colons", "--show-keys", str(plain)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^pub:.*\nfpr:+([0-9A-F]{40}):", listing, re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["publisher.asc", "publisher.gpg", "hidden-before.asc", "hidden-after.asc", "text-around.asc"]
)
def test_only_the_pinned_key_is_kept(keys: Keys, tmp_path: Path, name: str) -> None:
    answer, dest = keep(keys, tmp_path, name)
    assert answer["changed"], answer
    assert primary_keys(dest, tmp_path) == [keys.fingerprint]
    assert dest.read_text(encoding="ascii").startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----\n")
    assert dest.read_text(encoding="ascii").count("-----BEGIN") == 1
    assert not keep(keys, tmp_path, name)[0]["changed"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("beside.asc", "holds the key"),
        ("stranger.asc", "holds the key"),
        ("with-secret.asc", "holds a secret key"),
        ("secret.asc", "holds a secret key"),
        ("no-key.asc", "holds no OpenPGP key"),
    ],
)
def test_no_other_file_is_taken(keys: Keys, tmp_path: Path, name: str, sentence: str) -> None:
    answer, dest = keep(keys, tmp_path, name)
    assert answer["failed"]
    assert f"{name} {sentence}" in answer["msg"]
    assert not dest.exists()


def test_a_key_that_was_kept_before_is_cleaned(keys: Keys, tmp_path: Path) -> None:
    dest = tmp_path / "keyrings" / "kept.asc"
    dest.parent.mkdir()
    shutil.copyfile(keys.folder / "hidden-before.asc", dest)
    assert len(primary_keys(dest, tmp_path)) == 2
    assert keep(keys, tmp_path, "hidden-before.asc")[0]["changed"]
    assert primary_keys(dest, tmp_path) == [keys.fingerprint]


def test_a_key_may_come_from_a_file_url(keys: Keys, tmp_path: Path) -> None:
    assert keep(keys, tmp_path, "publisher.asc")[0]["changed"]
    source = f"file://{keys.folder}/publisher.asc"
    dest = str(tmp_path / "keyrings" / "kept.asc")
    answer = run("signed_file", tmp_path, key=source, fingerprint=keys.fingerprint, dest=dest)
    assert answer["changed"] is False


def test_an_archive_signed_by_a_hidden_key_is_refused(keys: Keys, tmp_path: Path) -> None:
    archive = keys.folder / "tool.tar"
    archive.write_bytes(b"no archive")
    keys.stranger.detach(archive)
    files = {"archive": str(archive), "signature": f"{archive}.sig", "key": str(keys.folder / "hidden-before.asc")}
    answer = run("signed_file", tmp_path, fingerprint=keys.fingerprint, **files)
    assert "it was signed with another key" in answer["msg"]


@pytest.mark.skipif(not shutil.which("apt-get"), reason="no apt here")
@pytest.mark.parametrize("name", ["hidden-before.asc", "hidden-after.asc"])
def test_apt_refuses_a_repository_of_the_hidden_key(keys: Keys, tmp_path: Path, name: str) -> None:
    kept = keep(keys, tmp_path, name)[1]
    site = tmp_path / "site"
    site.mkdir()
    (site / "Packages").write_text("", encoding="ascii")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (site / "Release").write_text(
        f"Date: Sun, 01 Jan 2023 00:00:00 UTC\nSHA256:\n {empty} 0 Packages\n", encoding="ascii"
    )
    for signer, accepted in ((keys.publisher, True), (keys.stranger, False)):
        root = tmp_path / signer.folder.name
        for folder in ("lists/partial", "cache/archives/partial", "parts"):
            (root / folder).mkdir(parents=True)
        signer.clearsign(site, "Release", "InRelease")
        (root / "sources.list").write_text(f"deb [signed-by={kept}] file://{site} ./\n", encoding="ascii")
        settings = {
            "Dir::State::Lists": root / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": root / "cache",
            "Dir::Etc::sourcelist": root / "sources.list",
            "Dir::Etc::sourceparts": root / "parts",
            "APT::Sandbox::User": "",
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        done = subprocess.run(["apt-get", *options, "update"], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is accepted, done.stdout + done.stderr


def tasks(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All tasks, those of blocks too."""
    found = []
    for item in items:
        found.append(item)
        for part in ("block", "rescue", "always"):
            found += tasks(item.get(part) or [])
    return found


# Role -> what installs the key that was pinned.
KEYRINGS = {
    "neuron": "__neuron_keyring",
    "shared_storage": "__shared_storage_key_file",
    "monitoring": "__monitoring_grafana_keyring",
}


@pytest.mark.parametrize(("role", "keyring"), KEYRINGS.items())
def test_every_role_keeps_what_gpg_exports(role: str, keyring: str) -> None:
    found = []
    for file in sorted((REPOSITORY / "roles" / role / "tasks").glob("*.yml")):
        found += tasks(yaml.safe_load(file.read_text(encoding="utf-8")) or [])
    # In check mode it only looks.
    pinned = [
        task["trainium.cluster.internal.signed_file"]
        for task in found
        if "trainium.cluster.internal.signed_file" in task and not task.get("check_mode")
    ]
    assert [keyring in task["dest"] for task in pinned] == [True]
    # rpm takes the key from the file that was kept, never from an address.
    rpm = [task["ansible.builtin.rpm_key"] for task in found if "ansible.builtin.rpm_key" in task]
    assert all(keyring in task["key"] and task["fingerprint"] for task in rpm)
