"""User data of a node that stops itself."""

from __future__ import annotations

import email
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.checks import check_launch
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.template import mime
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.user_data import LIMIT, with_stop
from hypothesis import given
from hypothesis import strategies as st

LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"], include_characters="\n")
TEXTS = st.text(LETTERS, max_size=60)


def parts(text: str) -> list[Any]:
    """As cloud-init reads an archive: decoded first, then parsed."""
    return [part for part in email.message_from_string(text).walk() if not part.is_multipart()]


def payload(part: Any) -> str:
    return bytes(part.get_payload(decode=True)).decode()


@given(TEXTS)
def test_without_a_time_it_is_what_was_given(text: str) -> None:
    assert with_stop(text, 0) == text


@given(TEXTS.filter(lambda text: text.strip("\n") and "==trainium-stop==" not in text), st.integers(1, 10**6))
def test_what_was_given_runs_beside_the_timer(text: str, minutes: int) -> None:
    timer, own = parts(with_stop(f"#!/bin/sh\n{text}", minutes))
    assert (timer.get_content_type(), own.get_content_type()) == ("text/x-shellscript", "text/plain")
    assert payload(timer).rstrip("\n") == with_stop("", minutes).rstrip("\n")
    assert payload(own).rstrip("\n") == f"#!/bin/sh\n{text}".rstrip("\n")


def test_an_archive_is_a_part_of_the_archive() -> None:
    timer, own = parts(with_stop(mime("#!/bin/sh\necho größer\n"), 60))
    assert "trainium-stop.timer" in payload(timer)
    assert (own.get_content_type(), payload(own).rstrip("\n")) == ("text/x-shellscript", "#!/bin/sh\necho größer")


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    script = with_stop("", 90).replace("/etc/systemd/system", str(tmp_path))
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    units = re.sub("^systemctl.*", "", script, flags=re.MULTILINE)
    subprocess.run(["sh"], input=units, text=True, check=True)
    assert "\nOnBootSec=90min\n" in (tmp_path / "trainium-stop.timer").read_text(encoding="utf-8")
    service = (tmp_path / "trainium-stop.service").read_text(encoding="utf-8")
    assert service.endswith("ExecStart=/usr/bin/systemctl poweroff\n")


def launch(**options: Any) -> dict[str, Any]:
    return {"market": "on-demand", **options}


def test_no_more_than_ec2_takes() -> None:
    check_launch(launch(user_data="x" * LIMIT))
    for options in ({"user_data": "x" * (LIMIT + 1)}, {"user_data": "x" * LIMIT, "stop_after": 5}):
        with pytest.raises(TrainiumError, match="for EC2, which takes 16384; let it fetch what it needs"):
            check_launch(launch(**options))
    with pytest.raises(TrainiumError, match="stop_after is -1; give minutes, or 0"):
        check_launch(launch(stop_after=-1))
