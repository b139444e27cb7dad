"""Who administers a cluster: entries that are made, given the policy, and taken away again."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks.access import (
    Entry,
    caller_of,
    can_have_entry,
    check_admins,
    entry_tags,
    plan_entries,
    policy_arn,
    session_role,
    shown,
)
from hypothesis import given
from hypothesis import strategies as st

PEOPLE = [f"arn:aws:iam::123456789012:user/{name}" for name in "abcd"]
ENTRIES = st.lists(
    st.builds(
        Entry,
        st.sampled_from(PEOPLE),
        st.sampled_from([{}, entry_tags("admin", "bert"), entry_tags("caller", "bert"), entry_tags("admin", "other")]),
        st.booleans(),
    ),
    unique_by=lambda entry: entry.principal,
)


@given(ENTRIES, st.none() | st.lists(st.sampled_from(PEOPLE)), st.sampled_from(["", *PEOPLE]))
def test_a_plan_admits_who_is_named_and_takes_only_what_it_gave(
    entries: list[Entry], admins: list[str] | None, caller: str
) -> None:
    plan = plan_entries(entries, admins, caller, "bert")
    after = shown(entries, plan)
    assert {*(admins or ()), *([caller] if caller else [])} <= set(after)
    ours = [entry.principal for entry in entries if entry.tags == entry_tags("admin", "bert")]
    assert set(plan.delete) <= set(ours) - {caller} and (admins is not None or not plan.delete)
    assert set(shown(entries)) - set(plan.delete) <= set(after)
    there = [entry for entry in entries if entry.principal not in plan.delete]
    there = [entry._replace(is_admin=True) if entry.principal in plan.admit else entry for entry in there]
    there += [Entry(principal, entry_tags(role, "bert"), True) for principal, role in plan.create]
    assert not plan_entries(there, admins, caller, "bert").changes


def test_a_session_is_its_role() -> None:
    session = "arn:aws-cn:sts::123456789012:assumed-role/ml/me@example.com"
    assert session_role(session) == ("ml", "arn:aws-cn:iam::123456789012:role/ml")
    assert session_role(PEOPLE[0]) == ("", PEOPLE[0])
    assert policy_arn("arn:aws-cn:iam::123456789012:role/ml").startswith("arn:aws-cn:eks::aws:cluster-access-policy/")
    assert not can_have_entry(session) and not can_have_entry("arn:aws:iam::123456789012:root")
    assert can_have_entry("arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_ml_0a1b")


def test_what_is_no_user_and_no_role_is_refused() -> None:
    with pytest.raises(TrainiumError, match="no ARN of a user or role"):
        check_admins([PEOPLE[0], "ml"])


def test_a_role_whose_path_nobody_knows_is_known_by_its_entry() -> None:
    arn = "arn:aws:iam::123456789012:role"
    path = "aws-reserved/sso.amazonaws.com/us-west-2/"
    there = [f"{arn}/other", f"{arn}/{path}Xadmin", f"{arn}/{path}admin", f"{arn.replace('9012', '9013')}/admin"]
    assert caller_of(f"{arn}/admin", there) == f"{arn}/{path}admin"
    assert caller_of(f"{arn}/admin", there[:2] + there[3:]) == ""
