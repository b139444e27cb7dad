"""The report of a training in a real browser: what is seen, what goes wrong, what leaves the machine."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import parse
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.page import page
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import record_of
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By

from tests.browser.conftest import Browser

HOSTILE = "<script>console.error(1)</script><img src=http://192.0.2.1/x onerror=console.error(2)>\"'\u202e" + "W" * 300


def log(first: int, last: int) -> str:
    lines = []
    for step in range(first, last + 1):
        loss = "nan" if step == 1200 else f"{2 + 8 * math.exp(-step / 800) + math.sin(step) / 5:.4f}"
        rate = 4e-4 * min(step / 500, 1 - step / 6000)
        lines.append(
            f"LOG Wed Dec 21 {step // 3600:02}:{step // 60 % 60:02}:{step % 60:02} 2022 - (0, {step}) "
            f"step_loss : {loss} learning_rate : {rate:.2e} throughput : {6000 + 500 * math.cos(step / 90):.2f}\n"
        )
    return "".join(lines)


LOG = (
    "JOB nodes=2 processes=64\n"
    + log(1, 2500)
    + "JOB nodes=1 processes=32\ntraining: resumed from step 2000\n"
    + log(2001, 5000)
)


def report(word: str) -> dict[str, Any]:
    node = {"name": word, "address": word, "instance_type": "trn1.32xlarge", "availability_zone": word}
    return {
        "name": word,
        "job_id": 7,
        "launcher": word,
        "started_at": 1671580000,
        "ended_at": 1671590000,
        "node_details": [node] * 3,
        "versions": {"torch": "2.9.0", word: word},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a common training, of a hostile one, of a short one and of one that has not begun."""
    path = tmp_path_factory.mktemp("reports")
    prices = {"trn1.32xlarge": 21.5}
    pages = {
        "common": page(record_of(parse([LOG]), report("bert-large"), prices)),
        "hostile": page(record_of(parse([LOG]), report(HOSTILE), prices)),
        "short": page(record_of(parse([log(1, 1)], running=True), {"name": "bert"}, {}, running=True)),
        "empty": page(record_of(parse([""], running=True), {"name": "bert"}, {}, running=True)),
    }
    for name, content in pages.items():
        (path / f"{name}.html").write_bytes(content)
    return path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 375, 768, 1920])
@pytest.mark.parametrize("name", ["common", "hostile", "short", "empty"])
def test_it_fits_every_screen_in_silence(browser: Browser, folder: Path, name: str, width: int, dark: bool) -> None:
    address = (folder / f"{name}.html").as_uri()
    browser.open(address, width, dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.requests() == [address]
    assert browser.console() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [375, 1200])
def test_the_curves_are_seen(browser: Browser, folder: Path, width: int, dark: bool) -> None:
    browser.open((folder / "common.html").as_uri(), width, dark)
    boxes = browser.ask(
        """Array.from(document.querySelectorAll("path.curve"), (path) => {
          const box = path.getBoundingClientRect(), chart = path.closest(".chart").getBoundingClientRect();
          return [box.width / chart.width, box.height / chart.height, box.left - chart.left, box.top - chart.top];
        })"""
    )
    assert len(boxes) == 5
    for wide, high, left, top in boxes:
        assert 0.95 < wide <= 1.03
        assert 0.01 < high <= 1.03
        assert left > -5 and top > -5
    colors = browser.ask(
        """[getComputedStyle(document.querySelector("path.mean")).stroke,
            getComputedStyle(document.querySelector("figure")).backgroundColor]"""
    )
    line, back = (sum(map(int, re.findall(r"\d+", color))) for color in colors)
    assert back < 150 < line if dark else line < 500 < back


@pytest.mark.parametrize("width", [375, 1200])
def test_the_labels_of_the_axes_are_readable(browser: Browser, folder: Path, width: int) -> None:
    browser.open((folder / "common.html").as_uri(), width)
    labels = browser.ask(
        """Array.from(document.querySelectorAll(".chart text"), (text) => {
          const box = text.getBoundingClientRect();
          return [text.textContent, text.closest("figure").dataset.points.length, text.getAttribute("class"),
                  box.left, box.right, box.height];
        })"""
    )
    assert {"step", "2,000", "6,000"} <= {label[0] for label in labels}
    assert all(label[3] >= 0 and label[4] <= width and label[5] >= 11 for label in labels)
    for chart in {label[1] for label in labels}:
        across = sorted(
            (label[3], label[4]) for label in labels if label[1] == chart and label[2] in ("across", "what")
        )
        assert all(right + 2 < left for (_left, right), (left, _right) in zip(across, across[1:]))


def test_the_value_under_the_pointer_is_shown(browser: Browser, folder: Path) -> None:
    browser.open((folder / "common.html").as_uri())
    plot = browser.driver.find_element(By.CSS_SELECTOR, "figure .plot")
    read = browser.driver.find_element(By.CSS_SELECTOR, "figure .read")
    assert read.text.startswith("step 5,000: ")
    ActionChains(browser.driver).move_to_element(plot).perform()
    step = int(read.text.partition(":")[0].removeprefix("step ").replace(",", ""))
    assert 2300 < step < 2700
    assert browser.console() == []


def test_hostile_words_are_shown_as_words(browser: Browser, folder: Path) -> None:
    browser.open((folder / "hostile.html").as_uri())
    title = browser.ask("document.querySelector('h1').textContent")
    assert title.startswith("<script>console.error(1)</script><img src=http://192.0.2.1/x onerror=")
    assert browser.ask("document.scripts.length") == 1
    assert browser.ask("document.images.length") == 0


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The pages on a web server, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def test_a_script_that_gets_in_is_not_run_and_reaches_nothing(
    browser: Browser, folder: Path, site: tuple[str, list[str]]
) -> None:
    """The second line of defence: as if one value had not been escaped."""
    address, asked = site
    smuggled = (
        '<script>document.title="run"</script><img src="/x.png"><style>h1{display:none}</style><h2 onclick="x()">'
    )
    content = (folder / "common.html").read_text(encoding="utf-8").replace("<main>", f"<main>{smuggled}")
    (folder / "broken.html").write_text(content, encoding="utf-8")
    browser.open(f"{address}/broken.html")
    assert browser.ask("document.title") == "bert-large"
    assert browser.ask("getComputedStyle(document.querySelector('h1')).display") == "block"
    assert set(asked) <= {"/broken.html", "/favicon.ico"}
