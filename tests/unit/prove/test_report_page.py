"""How the report of a proof reads, and which files the module writes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._prove.report import make, markdown, sentence
from ansible_collections.trainium.cluster.plugins.module_utils._prove.shown import hostless, is_of_aws, nameless, public

from tests.unit.prove.proof import ACCEPTED, BOOT, PAGE, READY, ROOT, RUN, Item, seen, steps


def report(**changes: Any) -> dict[str, Any]:
    return make(PAGE, seen(**changes), RUN)


def test_the_report_holds_what_was_known_and_what_was_seen() -> None:
    job = {"steps": 10, "processes": 2, "final_loss": 1.5, "state": "ended", "versions": {}, "host": "ip-10-0-0-1"}
    notes = {"notes": ["no price of 203.0.113.9"]}
    made = make(PAGE, seen(capacity=notes)._replace(job=job), {**RUN, "left": {"VPCs": ["vpc-1", "vpc-2"]}})
    assert not made["proved"]
    assert made["missing"] == []
    assert made["left"] == {"VPCs": 2}
    assert (made["region"], made["instance_type"], made["price"]) == ("us-west-2", "trn1.2xlarge", 1.63)
    assert made["began"] == "2026-12-01T10:00:00Z"
    assert made["seconds"] == 90
    assert made["versions"]["trainium.cluster"] == "0.3.0"
    assert made["versions"]["ansible-core"] == "2.19.0"
    assert made["notes"] == ["no price of (address)"]
    # Nothing else of what the job says of itself.
    assert made["training"] == {key: job[key] for key in ("steps", "processes", "final_loss", "state")}
    assert made["steps"][0] == {"name": "validate", "ok": True, "seconds": 10, "why": ""}
    assert made["endpoint"] == ""


def test_all_of_the_time_is_rounded_to_tenths() -> None:
    assert report(done=[{**step, "seconds": 0.123} for step in steps()])["seconds"] == 1.1


@pytest.mark.parametrize("name", ["validate", "network", "account", "compute", "boot", "nodes", "training", "ready"])
def test_a_proof_needs_each_of_its_steps(name: str) -> None:
    made = report(done=[step for step in steps() if step["name"] != name])
    assert not made["proved"]
    assert made["missing"] == [name]
    assert sentence(made) == f"Steps did not run: {name}."


def test_a_proof_may_have_further_steps() -> None:
    made = report(done=[*steps(), {"name": "more", "ok": True, "seconds": 1}])
    assert made["proved"]
    counts = {one: sum(row["verdict"] == one for row in made["rows"]) for one in ("seen", "refuted", "not looked at")}
    assert sentence(made) == (
        "All 10 steps succeeded and nothing is left; of the rows of docs/fidelity.md "
        f"{counts['seen']} were seen, {counts['refuted']} refuted and {counts['not looked at']} not looked at."
    )


def test_the_page_from_its_title_to_its_notes() -> None:
    done = [{**step, "seconds": 100} for step in steps(nodes="no `answer` |\n here")]
    refused = {**ACCEPTED, "accepted": False, "code": "Bad", "said": "not  so"}
    made = make(
        PAGE,
        seen(done=done, dry_runs=[refused], capacity={"notes": ["no price"]})._replace(job={"steps": 10}),
        RUN,
    )
    lines = markdown(made).split("\n")
    assert lines[:7] == [
        "# Proof of trainium.cluster 0.3.0",
        "",
        "Step nodes failed.",
        "",
        "trn1.2xlarge in us-west-2, begun 2026-12-01T10:00:00Z.",
        "15 min 0 s in all. At most 1.63 USD without traffic.",
        "",
    ]
    assert [line for line in lines if line.startswith("#")] == [
        "# Proof of trainium.cluster 0.3.0",
        *("## Steps", "## Versions", "## Dry runs of big launches", "## Training", "## Rows of docs/fidelity.md"),
        "## What AWS did not tell",
    ]
    at = lines.index("## Steps")
    assert lines[at + 1 : at + 5] == [
        "",
        "| step | outcome | time | why |",
        "|---|---|---|---|",
        "| validate | ok | 1 min 40 s |  |",
    ]
    assert "| nodes | failed | 1 min 40 s | `no 'answer' \\| here` |" in lines
    assert "| kernel | `6.8.0-1021-aws` |" in lines
    assert "| trn1.32xlarge | efa | 8 | refused (Bad) | `not so` |" in lines
    assert "| steps | `10` |" in lines
    assert lines[-4:] == ["## What AWS did not tell", "", "* `no price`", ""]
    row = next(row for row in made["rows"] if row["part"] == "`images.json`")
    assert f"| `images.json` | {row['stands_for']} | seen | `{row['evidence']}` |" in lines


def test_a_page_without_training_and_notes_has_no_sections_of_them() -> None:
    page = markdown({**report(), "training": {}})
    assert "## Training" not in page
    assert "## What AWS" not in page


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("", False),
        ("https://ec2.us-west-2.amazonaws.com", False),
        ("https://ec2.cn-north-1.amazonaws.com.cn", False),
        ("https://ec2.us-west-2.api.aws", False),
        ("http://localhost:4566", True),
        ("https://gateway.example", True),
    ],
)
def test_an_api_that_is_not_aws_s_is_told(address: str, told: bool) -> None:
    assert ("says nothing about AWS" in markdown(report(endpoint=address))) == told


@pytest.mark.parametrize("address", ["aws", "http://127.0.0.1", "http://[::1", "https://localhost", "https://aws", ""])
def test_what_is_no_address_of_aws(address: str) -> None:
    assert not is_of_aws(address)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("at 12:30:45", "at 12:30:45"),
        ("::1 and fe80::1 and ::", "::1 and fe80::1 and ::"),
        ("2001:db8::1 is", "(address) is"),
        ("/Users/ann/x and /root/y and a/root", "(home)/x and (home)/y and a/root"),
        ("version 2.29.0.0", "version 2.29.0.0"),
        ("vpce-123456789012 of 1234567890123", "vpce-(ARN or account) of 1234567890123"),
    ],
)
def test_names_are_left_out_and_times_and_versions_are_not(told: str, shown: str) -> None:
    assert nameless(told) == shown


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        *((f"{address} is", f"{address} is") for address in ("10.1.2.3", "127.0.0.2", "192.168.1.1", "169.254.1.1")),
        *((f"{address} is", f"{address} is") for address in ("172.16.0.1", "172.31.255.1", "0.0.0.0")),
        *((f"{address} is", "(address) is") for address in ("172.15.0.1", "172.32.0.1", "11.0.0.1", "192.0.2.1")),
        ("https://ann@ec2.amazonaws.com/x", "https://(another host)"),
        ("http://[::1]:80/x and http://[1", "http://[::1]:80/x and http://(another host)"),
        ("http://[2001:db8::1]:80/x is", "http://(another host) is"),
        ("(see http://intern.example/x)", "(see http://(another host))"),
        ("HTTPS://intern.example/x", "HTTPS://(another host)"),
        ("http://[::1].intern.example:8443/secret", "http://(another host)"),
        ("http://[s3.amazonaws.com].intern.example/x", "http://(another host)"),
        ("http://ann:word@[2001:db8::1]:8443/secret", "http://(another host)"),
    ],
)
def test_addresses_of_private_networks_stay_and_others_go(told: str, shown: str) -> None:
    assert public(told) == shown


def run_module(folder: Path, collection: Path, check: bool = False) -> dict[str, Any]:
    run = {key: RUN[key] for key in ("region", "instance_type", "began", "price", "ansible")}
    options = {"directory": str(folder), "collection": str(collection), "steps": steps(), **run}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.trainium.cluster.plugins.modules.internal.prove_report"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "_ansible_check_mode": check}}),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def collection(folder: Path, files: dict[str, str]) -> Path:
    """A collection with the page, of a version that its files say."""
    for name, text in {"docs/fidelity.md": PAGE, **files}.items():
        path = folder / "collection" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "collection"


def left(folder: Path) -> None:
    """What the steps of a proof leave."""
    files: dict[str, Item] = {
        "account.json": {"endpoint": "http://127.0.0.1:1", "dry_runs": [ACCEPTED]},
        "boot.json": {"look": BOOT, "instances": [], "image": {"name": "an image", "description": ""}},
        "ready.json": {"look": READY},
        "training/report.json": {"steps": 12},
    }
    for name, record in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record), encoding="utf-8")


INSTALLED = json.dumps({"collection_info": {"version": "1.2.3"}})


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"MANIFEST.json": INSTALLED}, "1.2.3"),
        ({"galaxy.yml": "name: cluster\nversion:  4.5.6\nreadme: x\n"}, "4.5.6"),
        ({"galaxy.yml": "name: cluster\n"}, ""),
    ],
)
def test_the_module_writes_both_files(tmp_path: Path, files: dict[str, str], version: str) -> None:
    folder = tmp_path / "reports" / "prove"
    left(folder)
    done = run_module(folder, collection(tmp_path, files))
    assert done["proved"]
    assert done["changed"]
    assert done["sentence"].startswith("All 9 steps succeeded")
    assert done["files"] == [str(folder / "report.json"), str(folder / "report.md")]
    text = (folder / "report.json").read_text(encoding="utf-8")
    made = json.loads(text)
    assert text == json.dumps(made, indent=2) + "\n"
    assert made["versions"]["trainium.cluster"] == version
    assert made["versions"]["image"] == "an image"
    assert made["versions"]["torch-neuronx"] == "2.9.0"
    assert made["training"] == {"steps": 12}
    assert made["endpoint"] == "http://127.0.0.1:1"
    page = (folder / "report.md").read_text(encoding="utf-8")
    assert page == markdown(made)


def test_a_proof_of_which_nothing_is_left_has_a_report_in_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert run_module(folder, ROOT, check=True)["changed"]
    assert not folder.exists()
    assert run_module(folder, ROOT)["proved"]
    assert sorted(path.name for path in folder.iterdir()) == ["report.json", "report.md"]
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run_module(tmp_path / "file" / "x", ROOT)
    assert done["failed"]
    assert done["msg"] == f"prove_report: {tmp_path / 'file' / 'x'}: Not a directory; correct prove_directory."


def test_a_long_text_takes_no_longer_than_its_length() -> None:
    """Its time would grow with the square: minutes for a text that a node can send."""
    began = time.process_time()
    for beginning in ('http://["', "http://[)", "http://a", "http://a:"):
        hostless(beginning * 40_000)
    assert time.process_time() - began < 10
