# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Refuses wrong values of a role's variables on the controller, by the role's argument specs and a table of rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

from ansible.errors import AnsibleActionFail, AnsibleError, AnsibleUndefinedVariable
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.action import ActionBase
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain
from ansible_collections.trainium.cluster.plugins.plugin_utils._refusals import refusal
from ansible_collections.trainium.cluster.plugins.plugin_utils._roles import ROLES, templar_of

Item = dict[str, Any]
# Of the tables, those keys that are conditions.
SWITCHES = ("when", "empty", "each", "newer", "mirror", "unknown", "dnf", "files", "prefixed", "credentials")

# In a rule that could not be templated: what Ansible said of it.
BROKEN = "broken"

ACTION = "trainium.cluster.internal.validate"
# Since ansible-core 2.19 a text is a template only where it is said to be one.
TRUSTED = (
    {"trusted_as_template": True} if "trusted_as_template" in signature(DataLoader.load_from_file).parameters else {}
)


def _plainly(message: str) -> str:
    """What the validator says, on one line and without what conversion to another type has met in Ansible's classes."""
    text = re.sub(r"and we were unable to convert to (\w+): .*", r"and has to be of type \1", message, flags=re.DOTALL)
    text = re.sub(r"<class '(?:[\w.]+\.)?(\w+)'>", r"\1", text)
    text = re.sub(r"^argument '(\w+)' is of type", r"\1 is of type", text)
    text = re.sub(r"^Elements value for option '(\w+)' is of type", r"an element of \1 is of type", text)
    return "".join(character if character.isprintable() else "?" for character in text)


def _templated(templar: Any, rules: list[Item]) -> list[Item]:
    """Rules without templates; one whose template falls over a value is what Ansible says of it, by BROKEN."""
    found: list[Item] = []
    for rule in rules:
        try:
            found.append(templar.template(rule))
        except AnsibleError as error:
            found.append({"variable": str(rule.get("variable")), BROKEN: " ".join(str(error).split())})
    return found


class ActionModule(ActionBase):
    """Nothing is asked of any host."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: Item | None = None) -> Item:
        variables: Item = task_vars or {}
        result: Item = super().run(tmp, variables)
        _problems, arguments = self.validate_argument_spec(
            {
                "rules": {"type": "list", "elements": "dict", "default": []},
                "roles": {"type": "list", "elements": "str", "default": []},
                "late": {"type": "list", "elements": "str", "default": []},
                "reserved": {"type": "bool", "default": False},
                "beside": {"type": "list", "elements": "str", "default": []},
            }
        )
        refused: list[str] = []
        broken: dict[str, str] = {}
        if arguments["roles"]:
            for role in arguments["roles"]:
                templar = templar_of(self._templar, role, variables)
                arguments_of_role = self._arguments_of(role)
                rules = _templated(templar, arguments_of_role.pop("rules", []))
                mine = {**self._defaults, **templar.template(arguments_of_role), "rules": rules}
                more = self._refused(ROLES / role, role, mine, templar, variables, broken)
                refused += [one for one in more if one not in refused]
        elif self._task._role is None:
            raise AnsibleActionFail("validate checks the variables of the role that it is a task of; call it there.")
        else:
            name = self._task._role.get_name(include_role_fqcn=False)
            folder = Path(self._task._role._role_path)
            refused = self._refused(folder, name, arguments, self._templar, variables, broken)
        # Else it follows from what is refused.
        if broken and not refused:
            found = "; ".join(f"{name} ({error.rstrip('.')})" for name, error in broken.items())
            raise AnsibleActionFail(f"The value of these cannot be checked: {found}.")
        result.update(changed=False, refused=refused)
        if refused:
            result.update(failed=True, msg=" ".join(refused))
        return result

    _defaults: ClassVar[Item] = {"rules": [], "late": [], "reserved": False, "beside": []}

    def _arguments_of(self, role: str) -> Item:
        """Those of the one task by which a role checks its variables, as templates."""
        tasks = self._loader.load_from_file(str(ROLES / role / "tasks/validate.yml"), **TRUSTED)
        return dict(tasks[0][ACTION])

    @classmethod
    def finalize_task_arg(cls, name: str, value: Any, templar: Any, context: Any) -> Any:
        """Since ansible-core 2.19: what a rule falls over may be what another refuses, so that not all end with it."""
        if name == "rules" and isinstance(value, list):
            return _templated(templar, value)
        return super().finalize_task_arg(name, value, templar, context)

    def _refused(
        self, folder: Path, role: str, arguments: Item, templar: Any, variables: Item, broken: dict[str, str]
    ) -> list[str]:
        # By libyaml where it is there, which is ten times as fast.
        specs = yaml_load((folder / "meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
        options = specs["main"].get("options") or {}
        values, refused = self._typed(options, arguments["late"], role, templar, variables, broken)
        known = {name for spec in specs.values() for name in spec.get("options") or {}}
        refused += self._unknown(folder, variables, known, arguments["beside"], boolean(arguments["reserved"]))
        host = "the image" if variables.get("trainium_image_system") else str(variables.get("inventory_hostname"))
        for rule in plain(arguments["rules"]):
            if BROKEN in rule:
                broken[rule["variable"]] = rule[BROKEN]
                continue
            rule.update({key: boolean(rule[key], strict=False) for key in SWITCHES if key in rule})
            name = str(rule.get("variable"))
            if not rule.get("when", True) or any(f"{name} " in f"{one} " for one in refused):
                continue
            if "value" not in rule and name not in values:
                continue
            try:
                sentence = refusal(rule, rule["value"] if "value" in rule else values[name], host)
            except ValueError as error:
                raise AnsibleActionFail(f"{error}.") from error
            except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
                # A value of another type, which the check of types refuses: this is told only where it did not.
                broken[name] = str(error)
                continue
            if sentence and sentence not in refused:
                refused.append(sentence)
        return refused

    def _typed(
        self, options: Item, late: list[str], role: str, templar: Any, variables: Item, broken: dict[str, str]
    ) -> tuple[Item, list[str]]:
        """The role's variables in the types of its argument specs, and a sentence for each that has another type."""
        values: Item = {}
        for name in options:
            if name not in variables:
                continue
            try:
                values[name] = plain(templar.template(variables[name]))
            except AnsibleUndefinedVariable:
                # Such as the first of the group head, before there are nodes.
                if name not in late:
                    raise
            except AnsibleError as error:
                # It follows from another, which has a wrong value.
                broken[name] = " ".join(str(error).split())
        known = {name: option for name, option in options.items() if name in values or not option.get("required")}
        checked = ArgumentSpecValidator(known).validate(values)
        # Of a dictionary with keys of its own the validator returns every key, also those that nobody has set.
        plain_types = {name for name, option in options.items() if "options" not in option}
        typed = {name: checked.validated_parameters[name] for name in plain_types & values.keys()}
        return (
            {**values, **typed},
            [f"A variable of the role {role} is wrong: {_plainly(message)}." for message in checked.error_messages],
        )

    @staticmethod
    def _unknown(
        folder: Path, variables: Iterable[str], known: set[str], beside: list[str], reserved: bool
    ) -> list[str]:
        """A sentence for each variable that begins as the role's own do and is none of them, as a misspelled one is.

        Unless the beginning is ``reserved``, only for those that are nearly one of its own: plays register results, and
        other collections have variables, that begin with slurm_ or network_ as well.
        """
        prefix = f"{folder.name}_"
        # Those of efa_nodes are none of efa's.
        longer = tuple(f"{path.name}_" for path in folder.parent.glob(f"{prefix}*"))
        names = {name for name in variables if name.startswith(prefix) and not name.startswith(longer)}
        # Without what they have in common, by which all would look alike.
        ends = [one[len(prefix) :] for one in known]
        found = []
        for name in sorted(names - known - {*beside}):
            near = get_close_matches(name[len(prefix) :], ends, n=1, cutoff=0.85)
            if near or reserved:
                other = f"name one of your own without {prefix} at its beginning"
                advice = f"perhaps {prefix}{near[0]} is meant" if near else other
                found.append(f"{name} is no variable of this collection; {advice}.")
        return found
