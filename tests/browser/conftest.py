"""A real Chromium without a screen, from the distribution's packages chromium and chromium-driver."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

OPTIONS = [
    "--headless",
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


class Browser:
    """What a page looks like on a screen, and what it did on the way."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str, width: int = 1200, dark: bool = False) -> None:
        """Show a page on a screen of this width in CSS pixels."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.requests()
        self.console()
        self.driver.get(address)

    def ask(self, script: str) -> Any:
        """The value of a piece of JavaScript in the page."""
        return self.driver.execute_script(f"return {script}")

    def console(self) -> list[str]:
        """What the browser complained of since it was asked the last time."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since it was asked the last time."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [str(event["request"]["url"]) for event in sent]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if not path]
    if missing:
        pytest.fail(f"{' and '.join(missing)} not found; install the packages chromium and chromium-driver.")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs["chromium"])
    profile: Path = tmp_path_factory.mktemp("profile")
    for option in [*OPTIONS, f"--user-data-dir={profile}"]:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(programs["chromedriver"])))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
