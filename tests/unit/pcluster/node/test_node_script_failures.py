"""What the nodes' script tells Ansible, and what it says where something does not work; and that of an image."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.sandbox_driver import REPOSITORY
from tests.unit.pcluster.node.test_node_script import COLLECTION, ENVIRONMENTS, VARIABLES, Cluster, sha256

IMAGE = REPOSITORY / "roles" / "parallelcluster" / "templates" / "image.sh.j2"
# Ansible notes what it was asked, and does as FAIL says.
PLAYBOOK = 'printf "%s\\n" "$@" "$ANSIBLE_COLLECTIONS_PATH" > "$NODE/asked"; umask > "$NODE/umask"; eval "$FAIL"'
METADATA = """case $* in
*--request' 'PUT*169.254.169.254/latest/api/token) echo token;;
*X-aws-ec2-metadata-token:' 'token*/latest/meta-data/instance-type) printf trn1.32xlarge;;
*) exit 1;;
esac"""


class Boot:
    """A head node whose programs a test may replace."""

    def __init__(self, folder: Path) -> None:
        self.cluster, self.node = Cluster(folder), folder / "head"
        self.node.mkdir()
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        (self.node / "cfnconfig").write_text("cfn_node_type=HeadNode\n")
        self.stub("made/ansible-playbook", PLAYBOOK)

    def stub(self, name: str, text: str) -> None:
        path = self.cluster.folder / "stubs" / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run(self, script: str = "", fail: str = "", *arguments: str) -> subprocess.CompletedProcess[str]:
        stubs = self.cluster.folder / "stubs"
        script = script or self.cluster.script(self.node, False)
        return subprocess.run(
            ["bash", "-c", script.replace("/etc/chef/dna.json", str(self.node / "dna.json")), "script", *arguments],
            env={
                "PATH": f"{stubs}:{os.environ['PATH']}",
                "TMPDIR": str(self.temporary),
                "STUBS": str(stubs),
                "NODE": str(self.node),
                "FAIL": fail,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def asked(self) -> list[str]:
        return (self.node / "asked").read_text().splitlines()


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    return Boot(tmp_path)


def variables_of(kind: str, types: str = "", efa: str | None = None) -> str:
    known = f'"instance_type": "{types}", "parallelcluster_node_type": "{kind}"'
    return f"{{{known}}}" if efa is None else f'{{{known}, "parallelcluster_efa": "{efa}"}}'


def test_ansible_is_told_of_the_node(boot: Boot) -> None:
    boot.stub("curl", METADATA)
    (boot.node / "dna.json").write_text('{"cluster": {"enable_efa": "efa"}}')
    done = boot.run("", "", "--check")
    assert done.returncode == 0, done.stderr
    assert boot.asked[:6] == ["--inventory", "localhost,", "--connection", "local", "--extra-vars", boot.asked[5]]
    assert boot.asked[5].startswith("@/") and boot.asked[5].endswith("/variables.json")
    told = variables_of("HeadNode", "trn1.32xlarge", "efa")
    assert boot.asked[6:10] == ["--extra-vars", told, "--check", "trainium.cluster.node"]
    assert boot.asked[10].startswith(str(boot.node)) and boot.asked[10].endswith("/collections")
    assert (boot.node / "umask").read_text() == "0022\n"
    log = boot.node / "trainium-node.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o640
    assert f"is set up as HeadNode; see {log}." in done.stdout
    assert list(boot.temporary.iterdir()) == []


@pytest.mark.parametrize("known", ["{}", '{"cluster": {}}', ""])
def test_what_is_not_known_of_a_node_is_left_empty(boot: Boot, known: str) -> None:
    (boot.node / "dna.json").write_text(known)
    done = boot.run()
    assert done.returncode == 0, done.stderr
    assert boot.asked[7] == variables_of("HeadNode", "", "")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            (
                'echo \'fatal: [a]: FAILED! => {"msg": "first"}\'; '
                'echo \'fatal: [a]: FAILED! => {"changed": false, "msg": "No disk is left."}\''
            ),
            "No disk is left.",
        ),
        ("echo '[ERROR]: it is no playbook'", "[ERROR]: it is no playbook"),
        ('echo \'failed: [a] (item=b) => {"msg": "no b", "rc": 1}\' >&2', "no b"),
        ("echo nothing that says why", "see "),
    ],
)
def test_why_ansible_failed_is_said(boot: Boot, said: str, reason: str) -> None:
    done = boot.run(fail=f"{said}; exit 2")
    assert done.returncode == 1
    assert list(boot.temporary.iterdir()) == []
    *before, last = done.stderr.splitlines()
    assert f": the node is not set up: {reason}" in last
    # The end of the log stands before it, for what keeps this output.
    assert before == (boot.node / "trainium-node.log").read_text().splitlines()
    assert "is set up as" not in done.stdout


def test_a_node_that_is_not_of_a_cluster_is_refused(boot: Boot) -> None:
    (boot.node / "cfnconfig").write_text("stack_name=a\n")
    assert "names no cfn_node_type." in boot.run().stderr
    (boot.node / "cfnconfig").unlink()
    done = boot.run()
    assert (done.returncode, "this is no node of ParallelCluster." in done.stderr) == (1, True)
    assert not (boot.node / "asked").exists()


def test_an_object_that_cannot_be_fetched_or_is_another_is_refused(boot: Boot) -> None:
    boot.stub("aws", "echo first; echo 'An error occurred (403)' >&2; exit 1")
    said = "s3://bucket/node/variables cannot be fetched (An error occurred (403)); check the node's S3Access"
    assert said in boot.run().stderr
    boot.stub("aws", 'printf other > "$7"')
    done = boot.run()
    assert (done.returncode, "s3://bucket/node/variables has another SHA-256" in done.stderr) == (1, True)
    asked = 'echo "$@" >> "$NODE/fetched"; '
    boot.stub("aws", f"{asked}case $6 in */collection*) printf x;; *) printf '{VARIABLES}';; esac > \"$7\"")
    assert "s3://bucket/node/collection has another SHA-256" in boot.run().stderr
    fetched = (boot.node / "fetched").read_text().splitlines()
    assert [line.rpartition(" ")[0] for line in fetched] == [
        f"s3 cp --quiet --region us-west-2 s3://bucket/node/{name}" for name in ("variables", "collection")
    ]


def test_what_was_half_made_is_made_again_and_what_is_ready_is_not(boot: Boot) -> None:
    boot.stub("made/ansible-playbook", "exit 0")
    boot.stub("aws", f"case $6 in */collection*) exit 1;; *) printf '{VARIABLES}';; esac > \"$7\"")
    assert boot.run().returncode == 1
    boot.stub("aws", f"case $6 in */collection*) printf '{COLLECTION}';; *) printf '{VARIABLES}';; esac > \"$7\"")
    assert [boot.run().returncode for _time in range(2)] == [0, 0]
    assert len((boot.node / "installed").read_text().splitlines()) == 1
    (ready,) = (boot.node / "trainium-node").glob("*/ready")
    assert ready.read_text().strip() == sha256(COLLECTION)
    (ready.parent / "old").touch()
    ready.unlink()
    assert boot.run().returncode == 0
    assert not (ready.parent / "old").exists()


def test_a_node_without_the_head_nodes_interpreter_says_so(boot: Boot) -> None:
    assert boot.cluster.boot("head", neuron=False).returncode == 0
    boot.stub("made/python", "exit 127")
    (home,) = (boot.node / "trainium-node").iterdir()
    (home / "venv/bin/python").write_text("#!/bin/sh\necho lost >&2\nexit 127\n")
    archive = boot.cluster.folder / "shared/.trainium-node" / f"{home.name}.tar"
    subprocess.run(["tar", "--create", "--file", str(archive), "--directory", str(home), "."], check=True)
    done = boot.cluster.boot("first", neuron=False)
    assert done.returncode == 1
    assert "which the head node has, is not there (lost); take one image for all nodes" in done.stderr
    archive.write_bytes(b"cut")
    done = boot.cluster.boot("second", neuron=False)
    assert f"{archive} cannot be unpacked in {boot.cluster.folder / 'second' / 'trainium-node'}" in done.stderr


def image_script(node: Path, content: str = COLLECTION) -> str:
    variables: dict[str, Any] = {
        "__parallelcluster_packed": {"sha256": sha256(COLLECTION)},
        "__parallelcluster_archive": {"content": base64.b64encode(content.encode()).decode()},
        "__parallelcluster_variables_text": VARIABLES,
        "parallelcluster_node_python": "",
        "__parallelcluster_node_requirements": ["ansible-core"],
        "__parallelcluster_node_pip": [],
        "__parallelcluster_node_lock": "",
    }
    text = IMAGE.read_text().replace("{% include 'python.sh.j2' %}", ENVIRONMENTS)
    shown: str = Templar(loader=DataLoader(), variables=variables).template(trust_as_template(text))
    return shown.replace("/var/log/", f"{node}/")


def test_an_image_is_set_up_by_ansible(boot: Boot) -> None:
    boot.stub("curl", METADATA)
    done = boot.run(image_script(boot.node), 'cat "${6#@}" > "$NODE/variables"')
    assert done.returncode == 0, done.stderr
    assert boot.asked[:5] == ["--inventory", "localhost,", "--connection", "local", "--extra-vars"]
    assert boot.asked[6:9] == ["--extra-vars", variables_of("Image", "trn1.32xlarge"), "trainium.cluster.node"]
    assert (boot.node / "variables").read_text() == VARIABLES
    # Whoever works on a node reads what is in its image.
    assert (boot.node / "umask").read_text() == "0022\n"
    # What was made for it is not in the image.
    assert list(boot.temporary.iterdir()) == []
    assert not Path(boot.asked[9]).parent.exists()
    log = boot.node / "trainium-image.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o640
    assert done.stdout == f"trainium: the image is set up; see {log}.\n"


def test_an_image_that_is_not_set_up_says_why(boot: Boot) -> None:
    done = boot.run(image_script(boot.node), "seq 50; echo no disk >&2; exit 2")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        *map(str, range(12, 51)),
        "no disk",
        "trainium: image: the image is not set up; the lines above say why.",
    ]


def test_a_damaged_collection_is_refused(boot: Boot) -> None:
    done = boot.run(image_script(boot.node, "another"))
    assert (done.returncode, "the collection in the script is damaged" in done.stderr) == (1, True)
    assert not (boot.node / "installed").exists()
