"""The versions that the collection says it works with."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import yaml

from tests.publish import sdk
from tests.publish.check import Check
from tests.publish.documents import documented, parsed, validated
from tests.publish.users import FailedError, User, execute


def matrix(check: Check) -> str:
    """The oldest ansible-core, the lowest versions of requirements.txt, the newest: documentation, syntax, validate"""
    told, wrong = [], []
    for name, make in (("oldest", check.oldest), ("lowest", check.lowest), ("newest", check.newest)):
        user = make()
        for step in (_collections, documented, parsed, validated, _sdk):
            try:
                step(check, user)
            except FailedError as error:
                wrong.append(f"{user.versions()}: {error}")
        told.append(f"{name}: {user.versions()}")
    if wrong:
        raise FailedError("; ".join(wrong))
    return "; ".join(told)


def _collections(check: Check, user: User) -> str:
    """What galaxy.yml calls the lowest of other people's collections is what is tried as such."""
    bounds = yaml.safe_load((check.clone / "galaxy.yml").read_text(encoding="utf-8"))["dependencies"]
    tried = {}
    for name in bounds:
        manifest = Path(
            user.collections.split(os.pathsep)[-1], "ansible_collections", *name.split("."), "MANIFEST.json"
        )
        tried[name] = f">={json.loads(manifest.read_text(encoding='utf-8'))['collection_info']['version']}"
    if user.folder.name != "newest" and tried != bounds:
        raise FailedError(f"galaxy.yml wants {bounds}, and what is tried as the lowest is {tried}")
    return "as galaxy.yml says"


def _sdk(check: Check, user: User) -> str:
    """Its boto3 knows what the collection asks of it, of all that this checkout's boto3 knows."""
    used = sdk.words((check.clone / "plugins").rglob("*.py"))
    words = user.empty / "words"
    words.write_text(json.dumps(sorted(used)), encoding="utf-8")
    ours = execute([sys.executable, "-c", sdk.TELL, str(words), *sdk.SERVICES], check.folder, {}, check.log)
    theirs = user.run("python", "-c", sdk.TELL, words, *sdk.SERVICES, where=words.parent)
    lost = sdk.lacking(used, json.loads(ours), json.loads(theirs))
    if lost:
        raise FailedError(f"boto3 does not know {len(lost)} names that are used, first: {lost[0]}")
    return "boto3 knows all names"
