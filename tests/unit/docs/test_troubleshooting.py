"""The page on troubleshooting says what the collection knows."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.faults import FAULTS

from docs.tools.troubleshooting import PAGE, page


def test_the_table_is_that_of_the_planner() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "run python docs/tools/troubleshooting.py"
    assert [fault.name for fault in FAULTS if f"| {fault.name} |" not in text] == []


def test_causes_and_remedies_are_one_sentence_each() -> None:
    for fault in FAULTS:
        for text in (fault.cause, fault.remedy):
            assert text[-1] == "." and ". " not in text, text
