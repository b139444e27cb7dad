# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Callback plugin trainium.cluster.phases."""

from __future__ import annotations

DOCUMENTATION = r"""
name: phases
type: stdout
version_added: 0.2.0
short_description: One line a phase instead of a heading a task
description:
  - Shows which phase of a run goes on, for how long, and how long it took the last time; at the end each phase with its
    seconds and hosts, and Ansible's own recap. A phase is a playbook that C(site.yml) imports, or the one that was run.
  - Failures, messages, differences (C(--diff)), warnings and the progress of waits are shown as they come. In check
    mode each task that would change something is named.
  - Everything that C(ansible.builtin.default) shows goes to a log that only its owner can read. What C(no_log) hides is
    hidden there too. With C(-v) it goes to the screen as well.
  - Where ansible.cfg names this plugin, C(ANSIBLE_STDOUT_CALLBACK=default) in the environment turns it off for a run.
author:
  - The trainium.cluster founders (@trainium)
extends_documentation_fragment:
  - ansible.builtin.default_callback
  - ansible.builtin.result_format_callback
options:
  log_folder:
    description:
      - The folder of the logs, one for each run, of which the 20 newest are kept, and of C(seconds.json), from which
        the expected times come.
    type: path
    default: ~/.ansible/trainium
    env:
      - name: TRAINIUM_LOG_DIR
    ini:
      - section: callback_phases
        key: log_folder
requirements:
  - C(stdout_callback = trainium.cluster.phases) in the section C(defaults) of ansible.cfg, or ANSIBLE_STDOUT_CALLBACK
seealso:
  - plugin: ansible.builtin.default
    plugin_type: callback
"""

import atexit
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from ansible import constants, context
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils.display import Display
from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import duration
from ansible_collections.trainium.cluster.plugins.plugin_utils import _phases
from ansible_collections.trainium.cluster.plugins.plugin_utils._phases import (
    Phase,
    is_due,
    is_rescued,
    printable,
    short,
)
from ansible_collections.trainium.cluster.plugins.plugin_utils._preload import preload
from ansible_collections.trainium.cluster.plugins.plugin_utils._run_log import Details, RunLog, Seconds

MESSAGES = ("debug", "ansible.builtin.debug", "ansible.legacy.debug")
# What `ansible` calls its own, which has no phases.
NO_PLAYBOOK = "__adhoc_playbook__"


class CallbackModule(Default):
    """Ansible's own output goes to the log; what a person wants to see of it goes to the screen."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "trainium.cluster.phases"

    def __init__(self) -> None:
        super().__init__()
        self._display: Any = Details(Display())
        # A command that runs no playbook has no phases.
        self._display.shown = True
        self._log: RunLog | None = None
        self._playbook, self._planned = "", [""]
        self._phases: list[Phase] = []
        self._before = Phase("", "")
        self._seconds: Seconds | None = None
        self._heading = ""
        self._ended = threading.Event()
        # Of the process that runs the playbook: workers are forked from it.
        self._process = os.getpid()
        atexit.register(self._ended_early)

    # Phases

    @property
    def _phase(self) -> Phase:
        return self._phases[-1] if self._phases else self._before

    @property
    def _folder(self) -> Path:
        return Path(str(self.get_option("log_folder")))

    def _say(self, text: str, color: str | None = None) -> None:
        if self._log:
            self._log.write(text)
        self._display.screen.display(text, color)

    def v2_playbook_on_start(self, playbook: Any) -> None:
        self._ended.set()
        self._playbook, self._phases, self._seconds = "", [], None
        if playbook._file_name == NO_PLAYBOOK:
            return
        preload()
        self._playbook = Path(playbook._file_name).stem
        names = [self._name_of(play) for play in playbook.get_plays()]
        self._planned = [name for name, before in zip(names, ["", *names]) if name != before]
        self._log = self._display.log = RunLog(self._folder, self._playbook)
        if self._log.problem:
            self._display.warning(f"There is no log of the details: {self._log.problem}; set TRAINIUM_LOG_DIR.")
        self._ended = threading.Event()
        self._display.shown = self._display.verbosity > 0
        super().v2_playbook_on_start(playbook)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        name = self._name_of(play)
        if self._playbook and self._phase.name != name:
            self._end_phase()
            self._begin_phase(name, play)
        super().v2_playbook_on_play_start(play)

    @staticmethod
    def _path_of(play: Any) -> str:
        return str(play.get_path() or "").rpartition(":")[0]

    def _name_of(self, play: Any) -> str:
        return Path(self._path_of(play)).stem or self._playbook

    def _begin_phase(self, name: str, play: Any) -> None:
        if not self._seconds:
            self._seconds = Seconds(self._folder, self._key(play))
            threading.Thread(target=self._watch, args=(self._ended,), daemon=True).start()
        self._phases.append(Phase(name, self._path_of(play)))
        expected = self._seconds.expected(name)
        number = f"{len(self._phases)}/{len(self._planned)} " if len(self._planned) > 1 else ""
        about = f": {self._phases[-1].about}" if self._phases[-1].about else ""
        check = ", check mode" if context.CLIARGS.get("check") else ""
        known = f" (expected: {duration(expected)})" if expected and expected >= 1 else ""
        self._say(f"{number}{name}{about}{check}{known}", constants.COLOR_HIGHLIGHT)

    def _key(self, play: Any) -> str:
        """What the seconds depend on: playbook, cluster, backend, mode, and how many hosts there are already."""
        known = play.get_variable_manager().get_vars(play=play)
        hosts = len((known.get("groups") or {}).get("all") or [])
        cluster = f"{known.get('trainium_cluster_name') or 'trainium'} {known.get('trainium_backend') or 'ec2'}"
        check = " check" if context.CLIARGS.get("check") else ""
        return f"{self._playbook} {cluster} {hosts}{check}"

    def _end_phase(self) -> None:
        phase = self._phase
        if self._phases and not phase.seconds:
            phase.seconds = phase.elapsed
            self._say(f"    {duration(phase.seconds)}: {phase.outcome()}", self._color(phase))

    @staticmethod
    def _color(phase: Phase) -> str | None:
        if phase.failed:
            return str(constants.COLOR_ERROR)
        return str(constants.COLOR_CHANGED if phase.changed else constants.COLOR_OK)

    def _watch(self, ended: threading.Event) -> None:
        """Say from time to time that the phase goes on, and at which task it is."""
        said = 0
        while not ended.wait(0.5):
            phase = self._phase
            passed = int(phase.elapsed)
            if passed != said and is_due(passed) and not phase.seconds:
                self._display.screen.display(self._still(phase, passed))
            said = passed

    def _still(self, phase: Phase, passed: int) -> str:
        expected = self._seconds.expected(phase.name) if self._seconds else None
        of = f" of {duration(expected)}" if expected and expected > passed else ""
        hosts = f" ({phase.done} of {phase.asked} hosts done)" if phase.asked > 1 else ""
        return f"    {duration(passed)}{of}: {phase.task}{hosts}"

    # Tasks and results

    def _task_start(self, task: Any, prefix: str | None = None) -> None:
        phase = self._phase
        phase.task, phase.asked, phase.done = short(task), 0, 0
        super()._task_start(task, prefix)
        # The log tells what goes on; with strategy free, where there is a task a host, what came out of it.
        if self._last_task_name is not None and not self._display.shown and self._last_task_banner != task._uuid:
            self._print_task_banner(task)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._phase.asked += 1
        super().v2_runner_on_start(host, task)

    def _seen(self, result: Any) -> Phase:
        phase = self._phase
        phase.done += 1
        phase.hosts.add(result._host.get_name())
        return phase

    @contextmanager
    def _whole(self, result: Any, shown: bool = True) -> Iterator[None]:
        """What Ansible tells of a result is shown, below the name of its task."""
        before = self._display.shown
        if shown and not before:
            if self._last_task_banner != result._task._uuid:
                self._print_task_banner(result._task)
            if self._heading != result._task._uuid:
                self._display.screen.display(f"TASK [{short(result._task)}]")
            self._heading = result._task._uuid
            self._display.shown = True
        try:
            yield
        finally:
            self._display.shown = before

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        phase = self._seen(result)
        if not ignore_errors and not is_rescued(result._task):
            phase.failed.add(result._host.get_name())
        with self._whole(result, not ignore_errors):
            super().v2_runner_on_failed(result, ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        phase = self._seen(result)
        if not result._task.ignore_unreachable:
            phase.failed.add(result._host.get_name())
        with self._whole(result):
            super().v2_runner_on_unreachable(result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        with self._whole(result, not result._task.ignore_errors):
            super().v2_runner_item_on_failed(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._seen(result)
        super().v2_runner_on_skipped(result)

    def v2_runner_on_ok(self, result: Any) -> None:
        phase = self._seen(result)
        if result._result.get("changed"):
            phase.changed.add(result._host.get_name())
        if context.CLIARGS.get("check") and result._result.get("changed") and not self._display.shown:
            text = f"    {self._where(result)}would change: {short(result._task)}"
            self._display.screen.display(text, constants.COLOR_CHANGED)
        # Those of a loop were told one by one.
        told = bool(result._task.loop) or self._tell(result)
        with self._whole(result, self._is_message(result) and not told):
            super().v2_runner_on_ok(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        told = self._tell(result)
        with self._whole(result, self._is_message(result) and not told):
            super().v2_runner_item_on_ok(result)

    def v2_on_file_diff(self, result: Any) -> None:
        with self._whole(result, bool(self._differences(result._result))):
            super().v2_on_file_diff(result)

    @staticmethod
    def _differences(found: dict[str, Any]) -> bool:
        items = found.get("results") if isinstance(found.get("results"), list) else [found]
        return any(isinstance(one, dict) and one.get("changed") and one.get("diff") for one in items or [])

    @staticmethod
    def _is_message(result: Any) -> bool:
        """Whether Ansible shows this result however quiet it is, as those of debug."""
        return result._result.get("_ansible_verbose_always") is True

    def _lines(self, result: Any) -> list[str]:
        """The message of a task that has nothing else to tell; [] for values, which Ansible shows better."""
        # What Ansible has put on texts, in one way or another, is gone after this.
        message = json.loads(json.dumps(result._result.get("msg"), default=str))
        if result._task.action not in MESSAGES or "var" in result._task.args or not message:
            return []
        if isinstance(message, str):
            return message.splitlines()
        if isinstance(message, list) and all(isinstance(line, str) for line in message):
            return [str(line) for line in message]
        try:
            return str(yaml.safe_dump(message, sort_keys=False, width=1000, allow_unicode=True)).splitlines()
        except yaml.YAMLError:
            return []

    def _tell(self, result: Any) -> bool:
        """Show a message without its wrapping; whether there was one."""
        lines = self._lines(result) if self._is_message(result) and not self._display.shown else []
        for line in lines:
            self._display.screen.display(f"    {self._where(result)}{printable(line)}")
        return bool(lines)

    @staticmethod
    def _where(result: Any) -> str:
        host = result._host.get_name()
        return "" if host == "localhost" else f"{host}: "

    # The end

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._end_phase()
        self._ended.set()
        if len(self._planned) > 1:
            self._say_phases()
        before, self._display.shown = self._display.shown, True
        try:
            super().v2_playbook_on_stats(stats)
        finally:
            self._display.shown = before
        if self._seconds and not stats.failures and not stats.dark:
            self._seconds.keep({phase.name: phase.seconds for phase in self._phases})
        self._say_log()

    def _say_phases(self) -> None:
        self._say("")
        for phase in self._phases:
            self._say(f"{phase.name:<14}{duration(phase.seconds):>12}  {phase.outcome()}", self._color(phase))
        for name in self._planned[len(self._phases) :]:
            self._say(f"{name:<14}{'-':>12}  did not begin")
        self._say(f"{'together':<14}{duration(sum(phase.seconds for phase in self._phases)):>12}")

    def _say_log(self) -> None:
        if self._log and not self._log.problem:
            self._display.screen.display(f"Details: {self._log.path}")

    def _ended_early(self) -> None:
        """After Ctrl-C, or an error that ends Ansible itself, which has no recap then."""
        if os.getpid() != self._process or self._ended.is_set() or not self._phases:
            return
        self._ended.set()
        phase = self._phases[-1]
        self._say(
            f"{self._playbook} ended early, in {phase.name} after {duration(phase.elapsed)}.", constants.COLOR_ERROR
        )
        if phase.about and phase.name in _phases.LASTING:
            self._say("Nodes and a training that were started go on, and cost, until teardown.yml.")
            self._say("The same command takes up what was begun.")
        self._say_log()
