"""What make publish-check finds of a boto3 that is too old."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.publish import sdk

ROOT = Path(__file__).resolve().parents[3]


def test_what_an_older_boto3_lacks_is_found_where_it_is_used(tmp_path: Path) -> None:
    used = sdk.words((ROOT / "plugins").rglob("*.py"))
    words = tmp_path / "words"
    words.write_text(json.dumps(sorted(used)), encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-c", sdk.TELL, str(words), "eks", "sts"], stdout=subprocess.PIPE, check=True
    )
    known = json.loads(told.stdout)
    assert sdk.lacking(used, known, known) == []
    older = [path for path in known if "deletionProtection" not in path and "describe_cluster_versions" not in path]
    found = sdk.lacking(used, known, older)
    assert "eks create_cluster input.deletionProtection" in found
    assert "eks describe_cluster_versions input.includeAll" in found
    # The collection has no use for it.
    assert "zonalShiftConfig" not in " ".join(found)


def test_the_pages_of_modules_name_the_lowest_boto3_of_the_requirements() -> None:
    wanted = dict(re.findall(r"(?m)^(boto\w+)>=([\d.]+)", (ROOT / "requirements.txt").read_text(encoding="utf-8")))
    told = re.findall(r"- (boto\w+) >= ([\d.]+)", (ROOT / "plugins/doc_fragments/aws.py").read_text(encoding="utf-8"))
    assert told
    assert dict(told) == wanted
