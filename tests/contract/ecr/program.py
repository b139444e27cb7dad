"""What stands in for podman: it keeps what it was told, and its push makes the image known to the emulated ECR.

Real programs build and push to the sandbox's registry in tests/kubernetes and in the demonstration of EKS.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.contract.conftest import CREDENTIALS, REGION, REPOSITORY, Account, client

MANIFEST = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
    "config": {
        "mediaType": "application/vnd.docker.container.image.v1+json",
        "size": 1,
        "digest": "sha256:" + "1" * 64,
    },
    "layers": [],
}


def builder(cloud: Account, folder: Path, name: str = "podman") -> dict[str, str]:
    """The environment in which a program of this name is the one that there is; ``said.jsonl`` is what it was told."""
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    lines = ["#!/bin/sh", f"cd {REPOSITORY}", f'exec {sys.executable} -m tests.contract.ecr.program "$0" "$@"']
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin", "BUILDER_URL": cloud.api.url, "BUILDER_FOLDER": str(folder)}


def told(folder: Path) -> list[dict[str, Any]]:
    path = folder / "said.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(argv: list[str]) -> int:
    folder = Path(os.environ["BUILDER_FOLDER"])
    words = [word for word in argv if not word.startswith("/tmp")]  # noqa: S108 - only compared
    one: dict[str, Any] = {"program": Path(argv[0]).name, "argv": argv[1:]}
    if "--password-stdin" in words:
        one["written"] = sys.stdin.read()
    if "build" in words or "bud" in words:
        one["dockerfile"] = Path(argv[argv.index("--file") + 1]).read_text()
        one["context"] = sorted(path.name for path in Path(argv[-1]).iterdir())
    with (folder / "said.jsonl").open("a") as stream:
        stream.write(json.dumps(one) + "\n")
    if "RUN false" in one.get("dockerfile", ""):
        print("STEP 2/2: RUN false")
        print("Error: building at STEP RUN false: exit status 1", file=sys.stderr)
        return 1
    if "push" in words:
        name, _colon, tag = argv[-1].partition("/")[2].rpartition(":")
        ecr = client("ecr", os.environ["BUILDER_URL"])
        manifest = json.dumps({**MANIFEST, "of": tag})
        ecr.put_image(repositoryName=name, imageTag=tag, imageManifest=manifest)
        digest = os.environ.get("BUILDER_DIGEST") or f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"
        (folder / "digest").write_text(digest)
        if "--digestfile" in argv:
            Path(argv[argv.index("--digestfile") + 1]).write_text(digest)
    if "inspect" in words:
        print(json.dumps([f"{argv[-1].rpartition(':')[0]}@{(folder / 'digest').read_text()}"]))
    return 0


if __name__ == "__main__":
    os.environ.update(CREDENTIALS, AWS_DEFAULT_REGION=REGION)
    sys.exit(main(sys.argv[1:]))
