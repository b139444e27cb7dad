"""What is shown of the collection: by ansible-doc, on a site, on Galaxy; and what is not only shown but taken."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from tests.publish.check import NAME, Check
from tests.publish.users import FailedError, User, emulator

# Kinds of plugins that have documentation, with their folders.
KINDS = {
    "module": "modules",
    **{kind: kind for kind in ("callback", "connection", "filter", "inventory", "lookup", "test")},
}
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


def documentation(check: Check) -> str:
    """ansible-doc shows every plugin and role by its full name"""
    return documented(check, check.galaxy())


def playbooks(check: Check) -> str:
    """The syntax of every playbook by its full name"""
    return parsed(check, check.galaxy())


def validate(check: Check) -> str:
    """validate from an empty folder, against the emulated API"""
    return validated(check, check.galaxy())


def importer(check: Check) -> str:
    """galaxy-importer takes the archive and shows every plugin's documentation"""
    found = json.loads(check.tools().run("python", "-c", IMPORT, check.archive).splitlines()[-1])
    contents = found["docs_blob"]["contents"]
    bare = [
        one["content_name"]
        for one in contents
        if one["content_type"] in KINDS
        and not (one["doc_strings"] or {}).get("doc")
        # It lists files; one that holds several filters has a page of documentation for each beside it.
        and (one["content_type"] != "filter" or (check.clone / f"plugins/filter/{one['content_name']}.yml").exists())
    ]
    if bare or not contents:
        raise FailedError(f"Galaxy would show no documentation of {', '.join(bare) or 'anything'}")
    pages = {"README.md": found["docs_blob"]["collection_readme"]["html"]}
    pages |= {f"README.md of {one['content_name']}": one.get("readme_html") or "" for one in contents}
    # Galaxy shows each page alone.
    lost = [
        f"{address} in {name}"
        for name, page in pages.items()
        for address in re.findall(r'(?:href|src)="(?!https?://|#|mailto:)([^"]+)"', page)
    ]
    if lost:
        raise FailedError(f"{len(lost)} links lead nowhere on Galaxy, first {lost[0]}; give their whole addresses")
    return f"{len(contents)} contents, all plugins documented"


def site(check: Check) -> str:
    """A site of the installed documentation, where a warning is an error"""
    tools, user = check.tools(), check.galaxy()
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
    guides = len(list((check.clone / "docs/docsite/rst").glob("*.rst")))
    return f"{len(list((where / 'build/html').rglob('*.html')))} pages, {guides} of them guides"


# What several steps do


def documented(check: Check, user: User) -> str:
    """Every plugin of the clone is shown by the installed copy."""
    count = 0
    for kind, folder in KINDS.items():
        under = check.clone / "plugins" / folder
        files = [path for path in under.rglob("*.py") if path.name != "__init__.py"]
        # Of filters a page each describes them.
        if kind in ("filter", "test"):
            files = list(under.rglob("*.yml"))
        names = [".".join([NAME, *path.relative_to(under).with_suffix("").parts]) for path in files]
        if not names:
            continue
        shown = json.loads(user.run("ansible-doc", "--type", kind, "--json", *names))
        bare = [name for name in names if not shown.get(name, {}).get("doc")]
        if bare:
            raise FailedError(f"ansible-doc shows no documentation of {', '.join(sorted(bare))}")
        count += len(names)
    roles = {f"{NAME}.{path.parents[1].name}" for path in check.clone.glob("roles/*/meta/argument_specs.yml")}
    bare = sorted(roles - set(json.loads(user.run("ansible-doc", "--type", "role", "--list", "--json", NAME))))
    if bare:
        raise FailedError(f"ansible-doc shows no documentation of {', '.join(bare)}")
    return f"{count} plugins, {len(roles)} roles"


def parsed(check: Check, user: User) -> str:
    names = sorted(f"{NAME}.{path.stem}" for path in check.clone.glob("playbooks/*.yml"))
    user.run("ansible-playbook", "--syntax-check", *names)
    return f"{len(names)} playbooks"


def validated(check: Check, user: User) -> str:
    """A run as the README has it."""
    where = user.empty
    user.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", where / "id", where=where)
    with emulator(check.log) as url:
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
        raise FailedError(f"validate.yml did not end with a recap; see {check.log}")
    return "no variable is refused, and the account serves"
