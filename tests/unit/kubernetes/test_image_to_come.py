"""The name that stands for an image which is not built yet is never submitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import pods, run

ROOT = Path(__file__).parents[3]


def test_it_stands_in_the_role_and_is_refused_at_the_end() -> None:
    text = (ROOT / "roles" / "training_job" / "defaults" / "main.yml").read_text(encoding="utf-8")
    assert f"'{pods.NO_IMAGE}'" in yaml.safe_load(text)["training_job_definition"]
    assert pods.NO_IMAGE.partition("/")[0].endswith(".invalid")
    assert pods.checked_image(pods.NO_IMAGE, to_come=True) == pods.NO_IMAGE
    with pytest.raises(ValueError, match="is not built; run role eks_image before"):
        pods.checked_image(pods.NO_IMAGE)
    job: dict[str, Any] = {"kind": "Job", "spec": {"tasks": [{"containers": [{"image": pods.NO_IMAGE}]}]}}
    api: Any = None
    with pytest.raises(ValueError, match="is not built; run role eks_image before"):
        run.present(api, "bert", [job], "never", False)
