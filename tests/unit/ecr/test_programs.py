"""How podman, buildah and docker are told to log in, build and push, and what is said where one of them fails."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import duration
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import run_build as build

from tests.unit.ecr.test_build import IMAGE, job, program

HOST = IMAGE.partition("/")[0]
DIGEST = f"sha256:{64 * 'a'}"
OTHER = f"sha256:{64 * 'b'}"


class Machine:
    """A machine with one of the programs, which writes down what it is told."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.does("")

    def does(self, body: str, *known: str) -> None:
        """What it does beside that; ``$verb`` is what it is told to do. ``known``: what it calls the image."""
        find = 'verb=$1; [ "$1" != --config ] || verb=$3'
        tell = f'for one in "$@"; do printf "%s\\n" "$one"; done >> {self.folder}/said; echo >> {self.folder}/said'
        digest = 'if [ $verb = push ]; then for one in "$@"; do [ "$last" != --digestfile ] || '
        digest += f'echo {DIGEST} > "$one"; last=$one; done; fi'
        names = json.dumps([*known] or [f"{IMAGE[:-2]}@{DIGEST}", f"example.com/a@{OTHER}"])
        shown = f"[ $verb != image ] || echo '{names}'"
        lines = [find, tell, f"[ $verb != login ] || cat >> {self.folder}/in", digest, shown, body]
        program(self.folder, "\n".join(lines), self.name)

    def make(self, one: build.Job | None = None) -> str:
        return build.make(one or job(), self.name, lambda region: f"secret{region}", Progress())

    def told(self) -> list[list[str]]:
        """The calls; of folders that are made for one run only the name of what lies in them."""
        said = (self.folder / "said").read_text()[:-2].split("\n\n")
        return [[word.rpartition("/")[2] if word.startswith("/") else word for word in one.split("\n")] for one in said]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Machine:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "own"))
    return Machine(tmp_path, getattr(request, "param", "podman"))


@pytest.mark.parametrize(
    ("machine", "verb"), [("podman", "build"), ("buildah", "bud")], indirect=["machine"], ids=["podman", "buildah"]
)
def test_the_calls_of_podman_and_buildah(machine: Machine, verb: str) -> None:
    one = job()._replace(options=["--squash"], platform="linux/arm64")
    assert machine.make(one) == DIGEST
    auth = ["--authfile", "auth.json"]
    assert machine.told() == [
        ["login", *auth, "--username", "AWS", "--password-stdin", HOST],
        [
            *[verb, *auth, "--format", "docker", "--platform", "linux/arm64", "--squash", "--file", "Dockerfile"],
            *["--tag", IMAGE, "context"],
        ],
        ["push", *auth, "--digestfile", "digest", IMAGE],
    ]


@pytest.mark.parametrize("machine", ["docker"], indirect=True)
def test_the_calls_of_docker(machine: Machine) -> None:
    assert machine.make() == DIGEST
    login, built, pushed, shown = machine.told()
    assert login[:1] + login[2:] == ["--config", "login", "--username", "AWS", "--password-stdin", HOST]
    assert built[2:] == ["build", "--platform", "linux/amd64", "--file", "Dockerfile", "--tag", IMAGE, "context"]
    assert pushed[2:] == ["push", IMAGE]
    assert shown[2:] == ["image", "inspect", "--format", "{{json .RepoDigests}}", IMAGE]
    # An image that it knows from elsewhere alone has no digest there.
    machine.does("", f"example.com/a@{OTHER}")
    assert machine.make() == ""
    machine.does("[ $verb != image ] || exit 1")
    with pytest.raises(TrainiumError, match="docker could not tell the digest of the image"):
        machine.make()


@pytest.mark.parametrize("machine", ["docker"], indirect=True)
def test_of_dockers_settings_all_but_the_logins_are_kept(machine: Machine) -> None:
    own = machine.folder / "own"
    (own / "cli-plugins").mkdir(parents=True)
    (own / "cli-plugins" / "docker-buildx").touch()
    (own / "contexts").mkdir()
    logins: dict[str, Any] = {"auths": {"a": {}}, "credsStore": "desktop", "credHelpers": {"a": "b"}}
    (own / "config.json").write_text(json.dumps({**logins, "currentContext": "remote", "proxies": {}}))
    machine.does(f'cp "$2/config.json" {machine.folder}/kept; ls "$2" "$2/cli-plugins" > {machine.folder}/there')
    machine.make()
    assert json.loads((machine.folder / "kept").read_text()) == {"currentContext": "remote", "proxies": {}}
    there = (machine.folder / "there").read_text().split()
    assert {"cli-plugins", "contexts", "config.json", "docker-buildx"} <= set(there) and "buildx" not in there
    # Settings that cannot be read are none.
    for text in ("no json", ""):
        (own / "config.json").write_text(text)
        machine.make()
        assert json.loads((machine.folder / "kept").read_text()) == {}


@pytest.mark.parametrize("machine", ["docker"], indirect=True)
def test_docker_makes_one_image_and_speaks_english(machine: Machine) -> None:
    machine.does(f'echo "$BUILDX_NO_DEFAULT_ATTESTATIONS $LC_ALL" > {machine.folder}/environment')
    machine.make()
    assert (machine.folder / "environment").read_text() == "1 C\n"


def test_it_is_told_how_far_it_is(machine: Machine) -> None:
    told: list[tuple[object, ...]] = []

    class Told(Progress):
        def report(self, what: str, done: int, total: int, missing: Sequence[str] = (), note: str = "") -> None:
            told.append((done, total, *missing))

    build.make(job(), machine.name, lambda _region: "secret", Told())
    assert told == [(1, 3, "build"), (2, 3, "push"), (3, 3)]


def test_a_step_that_goes_on_is_told_again_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, ...]] = []
    twice = threading.Event()

    class Told(Progress):
        def report(self, what: str, done: int, total: int, missing: Sequence[str] = (), note: str = "") -> None:
            told.append((*missing, note))
            if len(told) == 2:
                twice.set()
                # What comes next takes too long to be told.
                monkeypatch.setattr(build, "REPEAT_SECONDS", 600)

    monkeypatch.setattr(build, "REPEAT_SECONDS", 0.01)
    with build._telling(Told(), "build", 1):
        assert twice.wait(60)
    assert told == [("build", ""), ("build", f"since {duration(0.01)}")]


def test_the_program_ends_with_us_where_setpriv_can_see_to_that(machine: Machine) -> None:
    program(machine.folder, f'echo "$*" >> {machine.folder}/with; shift 3; exec "$@"', "setpriv")
    machine.make()
    own = f"--pdeathsig TERM -- {machine.folder}/bin/podman"
    begun = (machine.folder / "with").read_text().splitlines()[1:]
    assert [line.split()[:5] for line in begun] == [f"{own} {verb}".split() for verb in ("login", "build", "push")]


def test_what_is_built_from_lies_in_the_context(machine: Machine) -> None:
    own = machine.folder / "own.lock"
    own.write_text("h5py")
    copy = f'if [ $verb = build ]; then for last in "$@"; do :; done; cp -r "$last" {machine.folder}/seen; '
    machine.does(f'{copy} cp "$last/../Dockerfile" {machine.folder}/; fi')
    machine.make(job(own))
    assert [(one.name, one.read_text()) for one in (machine.folder / "seen").iterdir()] == [("own", "h5py")]
    assert (machine.folder / "Dockerfile").read_text() == "FROM base\n"


@pytest.mark.parametrize(
    ("lines", "hosts"),
    [
        (["FROM 763104351884.dkr.ecr.eu-west-1.amazonaws.com/a:1"], ["eu-west-1"]),
        (["  from --platform=linux/amd64 --x 763104351884.dkr.ecr.eu-west-1.amazonaws.com/a AS b"], ["eu-west-1"]),
        (["FROM b", "# FROM 763104351884.dkr.ecr.eu-west-1.amazonaws.com/a"], []),
        (["FROM public.ecr.aws/neuron/a:1", "FROM 763104351884.dkr.ecr.eu-west-1.amazonaws.com.cn"], []),
        # Our own registry takes our own password.
        ([f"FROM {HOST}/a"], []),
    ],
)
def test_a_base_in_ecr_is_logged_in_to(machine: Machine, lines: list[str], hosts: list[str]) -> None:
    machine.make(job()._replace(dockerfile="\n".join(lines)))
    assert len([one for one in machine.told() if one[0] == "login"]) == 1 + len(hosts)
    assert sorted((machine.folder / "in").read_text().split("secret")[1:]) == sorted(["", *hosts])


@pytest.mark.parametrize(
    ("body", "said", "step"),
    [
        (
            "[ $verb != login ] || { echo denied. >&2; exit 1; }",
            f"podman could not log in to {HOST}: denied; see log",
            "login",
        ),
        ("[ $verb != build ] || exit 1", "podman could not build the image: it says nothing; see log", None),
        ("[ $verb != push ] || { echo out; echo err >&2; exit 1; }", "podman could not push the image: err; see", None),
        ("[ $verb != build ] || exec sleep 60", "could not build the image: it is not done after 1 s; see log", None),
        ("[ $verb != build ] || { echo 'Error: 503 Service Unavailable' >&2; exit 1; }", "503 Service", "pull"),
        ("[ $verb != push ] || { echo 'rate exceeded' >&2; exit 1; }", "rate exceeded", None),
    ],
)
def test_a_failure_tells_what_could_not_be_done_and_what_the_program_said(
    machine: Machine, body: str, said: str, step: str | None
) -> None:
    machine.does(body)
    # Only what hangs is to take too long.
    limit = 1 if "sleep" in body else 600
    with pytest.raises(TrainiumError, match=said) as caught:
        machine.make(job()._replace(timeout=limit))
    assert caught.value.details.get("step") == step


def test_the_last_lines_are_told(machine: Machine) -> None:
    machine.does("[ $verb != build ] || { seq 1 50; echo; echo 'no space ' >&2; exit 1; }")
    with pytest.raises(TrainiumError) as caught:
        machine.make()
    assert caught.value.details["log"] == [*map(str, range(12, 51)), "no space"]
    # What is far above the end was not the cause.
    machine.does("[ $verb != build ] || { echo toomanyrequests; seq 1 5; exit 1; }")
    with pytest.raises(TrainiumError) as caught:
        machine.make()
    assert "step" not in caught.value.details


def test_a_program_that_is_none_is_said(machine: Machine) -> None:
    file = machine.folder / "bin" / "podman"
    file.write_text("#!/nothing\n")
    program(machine.folder, "exit 1", "setpriv")
    with pytest.raises(TrainiumError, match=r"podman cannot be run \(No such file or directory\); install it anew"):
        machine.make()


@pytest.mark.parametrize(
    ("there", "asked", "found"),
    [
        (("podman", "buildah", "docker"), "auto", "podman"),
        (("buildah", "docker"), "auto", "buildah"),
        (("docker",), "auto", "docker"),
        (("podman", "docker"), "docker", "docker"),
        (("podman",), "docker", ""),
        ((), "auto", ""),
    ],
)
def test_which_program_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], asked: str, found: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    # Those of this machine are not meant, which are found without a path too.
    monkeypatch.setattr(build.commands, "find", lambda name: name if name in there else None)
    if found:
        assert build.chosen(asked) == found
        return
    wanted = "none of podman, buildah and docker" if asked == "auto" else f"no {asked}"
    with pytest.raises(TrainiumError, match=f"there is {wanted} on this machine"):
        build.chosen(asked)


def test_folders_of_others_and_of_runs_that_live_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = 2**22 + 1
    stay = [f"trainium-image-{os.getpid()}-x", "trainium-image-x-1", "trainium-image-", f"other-{dead}-x", f"x-{dead}"]
    for name in (*stay, f"trainium-image-{dead}-x"):
        (tmp_path / name).mkdir()
    with build._folder() as folder:
        assert Path(folder).parent == tmp_path and Path(folder).name.startswith(f"trainium-image-{os.getpid()}-")
        assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(stay)
    (tmp_path / "memory").mkdir()
    with build._folder(str(tmp_path / "memory")) as folder:
        assert Path(folder).parent == tmp_path / "memory"
    # As where there is none, or one of somebody else.
    with build._folder(str(tmp_path / "nothing")) as folder:
        assert Path(folder).parent == tmp_path
