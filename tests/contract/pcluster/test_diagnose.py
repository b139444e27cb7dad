"""The playbook diagnose where no node is left: what CloudWatch kept of a cluster is read."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.contract.conftest import REGION, REPOSITORY
from tests.contract.pcluster.conftest import Site
from tests.contract.warm_python import PCLUSTER, warm_ansible, warm_python

LINE = "2026-11-21 07:40:02,113 - Node bootstrap error: Resume timeout expires for node trn1-dy-trn1-{}(192.0.2.7)"


def diagnose(site: Site, folder: Path, *options: str) -> str:
    """What the playbook shows, for the cluster gone, which has no stack."""
    variables: dict[str, Any] = {
        "ansible_python_interpreter": warm_python(),
        "trainium_cluster_name": "gone",
        "trainium_backend": "pcluster",
        "trainium_region": REGION,
        "trainium_report_dir": str(folder),
        "parallelcluster_python": warm_python(*PCLUSTER),
    }
    (folder / "variables.json").write_text(json.dumps(variables))
    environment = {key: value for key, value in site.variables.items() if not key.startswith("ANSIBLE_")}
    environment.update(ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"))
    command = [str(warm_ansible() / "ansible-playbook"), "--inventory", "localhost,", *options]
    done = subprocess.run(
        [*command, "--extra-vars", f"@{folder / 'variables.json'}", "trainium.cluster.diagnose"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed=0" in done.stdout
    return done.stdout


def test_a_cluster_that_never_was_is_told(site: Site, tmp_path: Path) -> None:
    shown = " ".join(diagnose(site, tmp_path).split())
    assert "No known fault was found, as there was nothing to read." in shown
    assert "there is neither a stack nor a log group of a cluster of this name in this region" in shown


def test_what_cloudwatch_kept_of_a_cluster_is_read(site: Site, tmp_path: Path) -> None:
    logs = site.client("logs")
    names = {
        "logGroupName": "/aws/parallelcluster/gone-202611210700",
        "logStreamName": "ip-192-0-2-5.i-0a1b2c3d4e5f60001.clustermgtd",
    }
    logs.create_log_group(logGroupName=names["logGroupName"])
    logs.create_log_stream(**names)
    now = round(time.time() * 1000)
    messages = [LINE.format(3), LINE.format(4), "password=hunter2"]
    logs.put_log_events(**names, logEvents=[{"timestamp": now, "message": message} for message in messages])
    site.api.clear_calls()
    assert "bootstrap timeout (trn1-dy-trn1-[3-4]; ip-192-0-2-5" in diagnose(site, tmp_path, "--check")
    folder = tmp_path / "diagnose/gone"
    assert not folder.exists()
    shown = diagnose(site, tmp_path)
    assert "cause:" in shown and "remedy:" in shown
    assert site.api.writes() == []
    kept = {path.name: path for path in folder.iterdir()}
    assert sorted(kept) == ["cloud.log", "faults.json"]
    assert [oct(path.stat().st_mode & 0o777) for path in [folder, *kept.values()]] == ["0o700", "0o600", "0o600"]
    text = kept["cloud.log"].read_text()
    assert "password=****" in text and "hunter2" not in text
