"""Many dry runs of the real library in one process, because starting it costs more than a dry run.

As a program: a list of ``[operation, arguments]`` as JSON on stdin, the answers as JSON on the last line of stdout,
each ``{"code", "content"}``; code 412 says that the request would have been accepted. What AWS said is kept from one to
the next, so the account must not change in between.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ACCEPTED, REFUSED = 412, 400
Answer = dict[str, Any]


def rehearse(site: Any, requests: list[tuple[str, dict[str, Any]]]) -> list[Answer]:
    """The library's answers to dry runs, in the same order."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__))],
        input=json.dumps(requests),
        env=site.variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers: list[Answer] = json.loads(done.stdout.splitlines()[-1])
    return answers


def main() -> None:
    import pcluster.lib

    answers = []
    for operation, arguments in json.load(sys.stdin):
        try:
            getattr(pcluster.lib, operation)(**arguments, dryrun=True)
            answers.append({"code": 200, "content": {}})
        except Exception as error:
            content = getattr(error, "content", None)
            to_dict = getattr(content, "to_dict", None)
            if to_dict:
                content = to_dict()
            answers.append({"code": getattr(error, "code", 500), "content": content or repr(error)})
    sys.stdout.write("\n" + json.dumps(answers, default=str) + "\n")


if __name__ == "__main__":
    main()
