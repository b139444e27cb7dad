"""EC2 with what a cluster has, and the parts of the collection that delete the rest."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import KINDS
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.run import Maker, Teardown
from botocore.exceptions import ClientError

Item = dict[str, Any]
MADE = [kind.name for kind in KINDS if not kind.look]


def tags(cluster: str = "bert", owner: str = "ada", **more: str) -> list[Item]:
    every = {"trainium:cluster": cluster, "trainium:owner": owner, **more}
    return [{"Key": key, "Value": value} for key, value in every.items()]


def refused(code: str, operation: str = "delete") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"{code} it is"}}, operation)


class Ec2:
    """Has resources by the call that lists them; a deletion takes away what its arguments name."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Item]] = {}
        self.asked: list[tuple[str, Item]] = []
        # What a call answers next, in place of what it would do: errors and answers.
        self.next: dict[str, list[Any]] = {}

    def can_paginate(self, _operation: str) -> bool:
        return False

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> Item:
            self.asked.append((operation, request))
            if operation.startswith("describe_"):
                return self._listed(operation, request)
            answers = self.next.get(operation, [])
            if answers:
                answer = answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                if answer is not None:
                    return dict(answer)
            names = {name for value in request.values() for name in (value if isinstance(value, list) else [value])}
            for call, items in self.kept.items():
                self.kept[call] = [item for item in items if not names & set(map(str, item.values()))]
            return {"TerminatingInstances": [{"InstanceId": name} for name in sorted(names)]}

        if operation.startswith("_"):
            raise AttributeError(operation)
        return call

    def _listed(self, operation: str, request: Item) -> Item:
        ((_filters, (condition,)),) = request.items()
        key = condition["Name"].removeprefix("tag:")
        found = [
            item
            for item in self.kept.get(operation, [])
            if {"Key": key, "Value": condition["Values"][0]} in (item.get("Tags") or item.get("TagSet") or [])
        ]
        if operation == "describe_instances":
            return {"Reservations": [{"Instances": [item]} for item in found]}
        return {next(kind.items[0] for kind in KINDS if kind.look == operation): found}

    def deletions(self) -> list[tuple[str, Item]]:
        return [one for one in self.asked if not one[0].startswith("describe_")]


class Others:
    """The parts of the collection that make the kinds without calls; ``done`` says what was deleted."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        self.done: list[str] = []
        self.fails: dict[str, TrainiumError] = {}

    def makers(self) -> dict[str, Maker]:
        def maker(name: str) -> Maker:
            def delete() -> None:
                if name in self.fails:
                    raise self.fails[name]
                self.done.append(name)

            return Maker(lambda: {name: self.found.get(name, [])}, delete)

        return {name: maker(name) for name in MADE}


def teardown(ec2: Ec2, others: Others | None = None, **more: Any) -> Teardown:
    return Teardown(ec2, (others or Others()).makers(), "bert", **{"owner": "ada", **more})


def vpc(name: str = "vpc-1", **more: Any) -> Item:
    return {"VpcId": name, "Tags": tags(), **more}
