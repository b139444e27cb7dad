"""Values of Ansible's come to the planners as what Python itself has."""

from __future__ import annotations

from ansible.utils.unsafe_proxy import wrap_var
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain


def test_nothing_of_ansibles_is_left_on_a_value() -> None:
    found = plain(wrap_var({"name": "bert", "args": [{"lr": "0.1"}, ("a", "b")], "steps": 3}))
    assert found == {"name": "bert", "args": [{"lr": "0.1"}, ["a", "b"]], "steps": 3}
    # Not merely of these types: Ansible's are subclasses.
    assert [type(one) for one in (found, found["args"], found["args"][0])] == [dict, list, dict]
    assert {type(one) for one in (found["name"], *found, found["args"][0]["lr"], *found["args"][1])} == {str}
