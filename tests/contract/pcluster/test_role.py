"""The role parallelcluster as a play: an empty account, a cluster, the same again, and an empty account."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import REGION, REPOSITORY
from tests.contract.pcluster.conftest import Site
from tests.contract.warm_python import PCLUSTER, warm_ansible, warm_python

Item = dict[str, Any]
NAME = "bert"
RECAP = re.compile(r"localhost .*ok=(\d+) +changed=(\d+) .*failed=(\d+)")


class Role:
    """Plays with the role in them, against the emulator."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        self.variables: Item = {
            "ansible_python_interpreter": warm_python(),
            "trainium_cluster_name": NAME,
            "trainium_backend": "pcluster",
            "trainium_region": REGION,
            "trainium_key_name": "lab",
            "trainium_subnet_ids": [site.subnet_id],
            "parallelcluster_python": warm_python(*PCLUSTER),
            "parallelcluster_cache": str(folder / "cache"),
            # Their findings are pcluster's own business, and cost seconds.
            "parallelcluster_suppress_validators": ["ALL"],
            "neuron_sdk_version": "2.29.1",
            "efa_version": "1.51.0",
            "efa_nodes_tags": {"Password": "of another role"},
        }

    def play(
        self, *options: str, tasks_from: str = "main", tasks: list[Item] | None = None, **variables: Any
    ) -> subprocess.CompletedProcess[str]:
        include = {"name": "trainium.cluster.parallelcluster", "tasks_from": tasks_from}
        play = {
            "name": "Test",
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "roles": [{"role": "trainium.cluster.trainium"}],
            "tasks": tasks or [{"name": "Role", "ansible.builtin.include_role": include}],
        }
        (self.folder / "play.yml").write_text(json.dumps([play]))
        (self.folder / "variables.json").write_text(json.dumps({**self.variables, **variables}))
        environment = {key: value for key, value in self.site.variables.items() if not key.startswith("ANSIBLE_")}
        environment.update(ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"))
        command = [str(warm_ansible() / "ansible-playbook"), "--inventory", "localhost,", *options]
        return subprocess.run(
            [*command, "--extra-vars", f"@{self.folder / 'variables.json'}", str(self.folder / "play.yml")],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def good(self, *options: str, **changes: Any) -> int:
        """How many tasks changed something."""
        done = self.play(*options, **changes)
        assert done.returncode == 0, done.stdout + done.stderr
        found = RECAP.search(done.stdout)
        assert found, done.stdout
        return int(found.group(2))

    def bad(self, **changes: Any) -> str:
        """What it says when it refuses."""
        done = self.play(**changes)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return " ".join((done.stdout + done.stderr).split())

    def refusals(self, **variables: Any) -> list[str]:
        """What the parts of the role say that change something, each in turn, in one play."""
        parts = ("main", "account", "update", "delete")
        blocks = [
            {
                "name": part,
                "block": [
                    {
                        "name": "Role",
                        "ansible.builtin.include_role": {
                            "name": "trainium.cluster.parallelcluster",
                            "tasks_from": part,
                        },
                    }
                ],
                "rescue": [
                    {
                        "name": "Keep",
                        "ansible.builtin.set_fact": {"said": "{{ said | default([]) + [ansible_failed_result.msg] }}"},
                    }
                ],
            }
            for part in parts
        ]
        output = {"content": "{{ said | default([]) | to_json }}", "dest": str(self.folder / "said"), "mode": "0600"}
        done = self.play(tasks=[*blocks, {"name": "Hand over", "ansible.builtin.copy": output}], **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        said: list[str] = json.loads((self.folder / "said").read_text())
        assert len(said) == len(parts), done.stdout
        return said

    def buckets(self) -> list[str]:
        found = self.site.client("s3").list_buckets()["Buckets"]
        return [item["Name"] for item in found if item["Name"].startswith("trainium-")]

    def objects(self) -> dict[str, bytes]:
        (bucket,) = self.buckets()
        s3 = self.site.client("s3")
        keys = [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]]
        return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


@pytest.fixture(scope="module")
def role(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Role:
    return Role(site, tmp_path_factory.mktemp("role"))


@pytest.fixture(scope="module")
def created(role: Role) -> int:
    """The cluster that the tests share; how many tasks changed something."""
    return role.good()


def test_check_mode_on_a_blank_account_makes_nothing(role: Role) -> None:
    role.site.api.clear_calls()
    assert role.good("--check", trainium_subnet_ids=[], trainium_key_name="none")
    assert role.site.api.writes() == []
    assert role.site.left() == {}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"trainium_shared_dir": "/data"},
            "trainium_shared_dir is '/data', and the nodes of bert share only /home, /shared",
        ),
        (
            {"trainium_node_count": 4, "parallelcluster_configuration": {"min_count": 5}},
            "5 is more than MaxCount, which is 4",
        ),
        # Whatever has the last word about it.
        *(
            (changes, "ssh would be open too widely: 3.0.0.0/8 is 16777216 addresses of the Internet")
            for changes in (
                {"parallelcluster_ssh_allowed_cidrs": ["3.0.0.0/8"]},
                {"parallelcluster_configuration": {"allowed_ips": "3.0.0.0/8"}},
                {"parallelcluster_overrides": {"HeadNode": {"Ssh": {"AllowedIps": "3.0.0.0/8"}}}},
                {"parallelcluster_overrides": {"HeadNode": {"Dcv": {"Enabled": True, "AllowedIps": "3.0.0.0/8"}}}},
            )
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_made(role: Role, changes: Item, sentence: str) -> None:
    role.site.api.clear_calls()
    assert sentence in role.bad(tasks_from="account", **changes)
    assert role.site.api.writes() == []


def test_a_cluster_from_an_empty_account(role: Role, created: int) -> None:
    assert created > 3
    objects = role.objects()
    script = objects["node/node.sh"].decode()
    syntax = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert syntax.returncode == 0, syntax.stderr
    assert sorted(key.partition("-")[0] for key in objects) == ["node/collection", "node/node.sh", "node/variables"]
    assert all(key in script for key in objects if key != "node/node.sh")
    variables = json.loads(next(body for key, body in objects.items() if key.startswith("node/variables")))
    assert "environment=/opt/aws_neuron_venv_pytorch\n" in script
    assert "neuron_venv_path" not in variables
    assert variables["efa_version"] == "1.51.0"
    assert not [name for name in variables if name.startswith(("efa_nodes", "trainium", "ansible"))]


def test_the_bucket_is_closed_and_encrypted(role: Role, created: int) -> None:
    s3 = role.site.client("s3")
    (bucket,) = role.buckets()
    assert all(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())
    rules = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rules[0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    tags = {item["Key"]: item["Value"] for item in s3.get_bucket_tagging(Bucket=bucket)["TagSet"]}
    assert tags["trainium:cluster"] == NAME


def test_the_second_run_changes_nothing(role: Role, created: int) -> None:
    assert role.good() == 0


def test_the_cluster_of_another_owner_is_left_alone(role: Role, created: int) -> None:
    tags = {item["Key"]: item["Value"] for item in role.site.stack(NAME)["Tags"]}
    assert tags["trainium:owner"].startswith("arn:aws:")
    role.site.api.clear_calls()
    for sentence in role.refusals(trainium_owner="ann"):
        assert f"The ParallelCluster bert in {REGION} belongs to arn:aws:" in sentence
        assert "and you are ann; take another trainium_cluster_name, or set trainium_owner" in sentence
    assert role.site.api.writes() == []


def test_other_software_for_the_nodes_stops_the_fleet_only_where_that_is_allowed(role: Role, created: int) -> None:
    before = role.objects()
    said = role.bad(tasks_from="update", efa_nofile=1024)
    assert "The software of the nodes of bert would be another one now" in said
    assert role.objects()["node/node.sh"] == before["node/node.sh"]
    role.site.api.clear_calls()
    assert role.good(tasks_from="update", efa_nofile=1024, parallelcluster_fleet_policy="stop_and_start")
    assert role.objects()["node/node.sh"] != before["node/node.sh"]
    told = [json.dumps(call) for call in role.site.api.calls() if call["service"] == "dynamodb" and call["write"]]
    asked = [match.group(1) for match in (re.search(r"(STOP|START)_REQUESTED", text) for text in told) if match]
    assert asked == ["STOP", "START"]


def test_deletion_leaves_nothing(role: Role, created: int) -> None:
    assert role.good(tasks_from="delete", parallelcluster_keep_logs=False)
    assert role.buckets() == []
    assert role.site.left() == {}


def test_a_cluster_that_somebody_made_by_hand_is_left_alone(role: Role) -> None:
    role.site.create("theirs")
    role.site.wait("theirs", "CREATE_COMPLETE")
    role.site.api.clear_calls()
    for sentence in role.refusals(trainium_cluster_name="theirs"):
        assert "The stack theirs in us-west-2 does not carry the tag trainium:cluster=theirs, so" in sentence
    # Of another backend it says nothing, and does not stand in the way.
    assert role.good(tasks_from="delete", trainium_cluster_name="theirs", trainium_backend="ec2") == 0
    assert role.site.api.writes() == []
