"""Makes the archives that the server gives; prints the SHA-256 of set.tar."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
import zipfile


def tar(name: str, mode: str, members: dict[str, bytes]) -> None:
    with tarfile.open(name, mode) as archive:  # type: ignore[call-overload]
        for path, content in members.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
shards = {f"set/shard {number}.h5": os.urandom(2_000_000) for number in range(8)}
tar("set.tar", "w", shards)
tar("slow.tar", "w", shards)
tar("set.tar.gz", "w:gz", {"compressed/one.txt": b"one\n"})
tar("outside.tar", "w", {"good.txt": b"good\n", "../outside.txt": b"bad\n"})
with zipfile.ZipFile("set.zip", "w") as archive:
    archive.writestr("zipped/one.txt", "one\n")
with open("set.tar", "rb") as stream:
    print(hashlib.sha256(stream.read()).hexdigest())
