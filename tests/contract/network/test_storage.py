"""The way of docs/training.md to shared storage with backend ec2: what the page shows is what runs."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.contract.conftest import REPOSITORY
from tests.contract.network.conftest import Controller, changed


def blocks() -> list[Any]:
    """The examples of the section, each as YAML."""
    text = (REPOSITORY / "docs" / "training.md").read_text(encoding="utf-8")
    section = text.partition("\n## Shared storage\n")[2].partition("\n## ")[0]
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)]


def options(role: str) -> dict[str, Any]:
    """The variables that a role has."""
    specs = (REPOSITORY / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(specs)["argument_specs"]["main"]["options"]
    return found


def test_the_play_of_the_page_makes_a_file_system_that_the_variables_of_the_page_mount(controller: Controller) -> None:
    (network, play), variables = blocks()
    # Making it takes a minute: here is another network, in the fact that the role would set.
    assert network["ansible.builtin.import_playbook"] == "trainium.cluster.network"
    vpc = controller.ec2.create_vpc(CidrBlock="10.77.0.0/16")["Vpc"]["VpcId"]
    subnet = controller.ec2.create_subnet(VpcId=vpc, CidrBlock="10.77.0.0/20")["Subnet"]["SubnetId"]
    group = controller.ec2.create_security_group(VpcId=vpc, GroupName="bert-efa", Description="EFA")["GroupId"]
    facts = {"private_subnet_ids": [subnet], "security_group_id": group}
    tasks = yaml.safe_load((REPOSITORY / "roles" / "network" / "tasks" / "main.yml").read_text(encoding="utf-8"))
    assert set(facts) <= set(tasks[-1]["ansible.builtin.set_fact"]["network_result"])
    given = {
        **controller.variables,
        "trainium_cluster_name": "bert",
        "network_cluster_owner": "me",
        "network_result": facts,
    }
    path, file = controller.folder / "storage.yml", controller.folder / "cluster.yml"
    path.write_text(yaml.safe_dump([play]))
    file.write_text(yaml.safe_dump(given))
    done = controller.run(path, "-e", f"@{file}")
    assert changed(done) == 1
    (system,) = controller.client("fsx").describe_file_systems()["FileSystems"]
    tags = {tag["Key"]: tag["Value"] for tag in system["Tags"]}
    assert tags == {"Name": "bert", "trainium:cluster": "bert", "trainium:owner": "me"}
    assert system["SubnetIds"] == [subnet]
    (mount,) = variables["shared_storage_mounts"]
    (shown,) = re.findall(r'"lustre\.file_system\.mount_source": "([^"]+)"', done.stdout)
    for source in (shown, mount["source"]):
        assert re.fullmatch(r"fs-[0-9a-f]{17}\.fsx\.us-west-2\.amazonaws\.com@tcp:/\w+", source)
    assert set(variables) <= set(options("trainium")) | set(options("shared_storage"))
    assert set(mount) <= set(options("shared_storage")["shared_storage_mounts"]["options"])
    assert variables["trainium_shared_dir"] == mount["path"]
