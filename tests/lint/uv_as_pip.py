"""uv in the place of pip, in the environments that ansible-test makes for each of its tests.

``write FOLDER`` makes what ansible-test takes for its scripts that bootstrap pip; each gives an environment a package
``pip`` that hands its arguments to uv, which installs in a tenth of the time. Where uv does not know how to ask for the
packages of this machine, they bootstrap the pip that comes with Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

VERSIONS = ("20_3_4", "21_3_1", "23_1_2", "24_2", "24_3_1", "25_0_1", "25_2", "25_3", "26_0")
BUNDLED = "import ensurepip\nensurepip.bootstrap()\n"
# ansible-test hands on little of the environment, and the caller's may have what uv needs.
BOOTSTRAP = """\
import pathlib, sysconfig
folder = pathlib.Path(sysconfig.get_path("purelib"), "pip")
folder.mkdir(exist_ok=True)
(folder / "__init__.py").touch()
(folder / "__main__.py").write_text({main!r})
"""
MAIN = """\
import json, os, sys
told = json.loads(open({told!r}, encoding="utf-8").read())
command, *arguments = sys.argv[1:]
if command == "-V":
    print(f"pip of uv, {{told['uv']}}")
    sys.exit()
kept = [one for one in arguments if one not in ("--disable-pip-version-check", "-y")]
words = [told["uv"], "pip", command, "--quiet", "--python", sys.executable, *told["arguments"], *kept]
os.execve(told["uv"], words, {{**os.environ, **told["environment"]}})
"""


def write(folder: Path) -> None:
    """One script for each version of pip that ansible-test may ask for."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from sandbox import indexes

    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    listed = subprocess.run(pip, capture_output=True, text=True, check=False).stdout
    known = indexes.for_uv(listed, "", os.environ)
    # Which packages these are about nobody knows here.
    bound = {"constraint", "require-hashes"} & set(indexes.options(listed))
    uv = Path(sys.executable).with_name("uv")
    text = BUNDLED
    told = folder / "uv.json"
    told.unlink(missing_ok=True)
    if not known.refused and not bound and uv.exists():
        names = {"SSL_CERT_FILE", "UV_INDEX_STRATEGY", *(variable for variable, _between in indexes.VARIABLES.values())}
        names.update(indexes.OWN)
        handed = {name: known.environment[name] for name in sorted(names) if known.environment.get(name)}
        handed["UV_CACHE_DIR"] = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache/uv")
        # An address may hold a password; run-sanity deletes the file.
        with os.fdopen(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            json.dump({"uv": str(uv), "arguments": known.arguments, "environment": handed}, stream)
        text = BOOTSTRAP.format(main=MAIN.format(told=str(told)))
    for version in VERSIONS:
        (folder / f"get_pip_{version}.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
