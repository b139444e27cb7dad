# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks a node once for all that a role or several decide by, and decides with the roles' own expressions."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.unsafe_proxy import wrap_var
from ansible.vars.clean import remove_internal_keys
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain
from ansible_collections.trainium.cluster.plugins.plugin_utils._roles import templar_of

# Role -> by which option of the module it asks, and the variable under which its expressions know the answer.
ASKS = {
    "cluster_hosts": ("hosts", "__cluster_hosts_result"),
    "shared_storage": ("", ""),
    "efa": ("software", "__efa_node"),
    "neuron": ("software", "__neuron_node"),
    "neuron_venv": ("software", "__neuron_venv_node"),
    "slurm": ("services", "__slurm_found"),
    "monitoring": ("services", "__monitoring_found"),
}
# What the nodes of a cluster are compared by.
KEPT = {
    "slurm": {
        "__slurm_found": "__slurm_found",
        "__slurm_devices": "__slurm_own_devices",
        "__slurm_hardware": "__slurm_seen_hardware",
    }
}


class ActionModule(ActionBase):
    """The module of the same name, with the arguments that the roles have for it."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        alone = self._task.args.get("role")
        roles = [alone] if alone else list(self._task.args.get("roles") or [])
        # The first asks nothing, the second has nothing that says what is due.
        known = [role for role in ASKS if role != ("shared_storage" if alone else "monitoring")]
        unknown = [role for role in roles if role not in known]
        if unknown:
            raise AnsibleActionFail(f"node_look does not know what {unknown[0]} asks; name {', '.join(known)}.")
        options: dict[str, dict[str, Any]] = {"hosts": {}, "software": {}, "services": {}}
        for role in roles:
            option, variable = ASKS[role]
            if option:
                options[option][variable] = plain(self._value(f"__{role}_look", role, variables))
        # Ansible adds its own arguments to those that it is given.
        answer = self._execute_module(module_args=dict(options) if roles else None, task_vars=variables)
        found = answer.get("found")
        if not roles or found is None:
            return {**result, **answer}
        # What a node says is no template, and the names are ours.
        said = {variable: wrap_var(found[variable]) for option in options.values() for variable in option}
        answer = {name: value for name, value in answer.items() if name != "found"}
        if alone:
            # Ansible takes out of a module's answer what would add hosts and facts, but not below it.
            own = {name: value for name, value in said[ASKS[alone][1]].items() if name != "ansible_facts"}
            remove_internal_keys(own)
            return {**result, **answer, **own}
        seen = {**variables, **said}
        due = [role for role in roles if boolean(self._value(f"__{role}_due", role, seen), strict=False)]
        kept = {}
        for role in roles:
            for name, asked in KEPT.get(role, {}).items():
                kept[name] = plain(self._value(asked, role, seen))
        return {**result, **answer, "due": due, "kept": kept}

    def _value(self, name: str, role: str, variables: dict[str, Any]) -> Any:
        """A variable of a role, as the role's tasks would see it."""
        if name not in variables:
            raise AnsibleActionFail(
                f"The play does not know {name}; import the role {role} with tasks_from variables first."
            )
        return templar_of(self._templar, role, variables).template(variables[name])
