"""Chromium without a window, driven by W3C WebDriver over HTTP (https://www.w3.org/TR/webdriver2/)."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of an element's reference, by the standard."""


def need_browser() -> tuple[str, str]:
    """Paths of Chromium and its driver; skips the test where they are not installed."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs chromium and chromedriver (packages chromium, chromium-driver)")
    return browser, driver


class Browser:
    """A session with a page."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, method: str, path: str, **body: Any) -> Any:
        data = json.dumps(body).encode() if method == "POST" else None
        headers = {"Content-Type": "application/json"}
        request = Request(self.url + path, data, headers, method=method)
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, path: Path) -> None:
        self.call("POST", "/url", url=path.as_uri())

    def run(self, script: str) -> Any:
        """What a function with this body returns."""
        return self.call("POST", "/execute/sync", script=script, args=[])

    def find(self, selector: str) -> str:
        found = self.call("POST", "/element", using="css selector", value=selector)
        return found[ELEMENT]

    def type(self, selector: str, keys: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/value", text=keys)

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.find(selector)}/click")

    def hover(self, selector: str) -> None:
        origin = {ELEMENT: self.find(selector)}
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin}
        mouse = {"type": "pointer", "id": "mouse", "actions": [move]}
        self.call("POST", "/actions", actions=[mouse])

    def complaints(self) -> list[str]:
        """What the page has written to the console, scripts that fail or are refused included."""
        return [entry["message"] for entry in self.call("POST", "/se/log", type="browser")]


@contextmanager
def browsing(profile: Path, *, dark: bool = False) -> Iterator[Browser]:
    """A browser for as long as the block lasts."""
    chromium, driver = need_browser()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    silence = subprocess.DEVNULL
    process = subprocess.Popen([driver, f"--port={port}"], stdout=silence, stderr=silence)
    root = Browser(f"http://127.0.0.1:{port}")
    try:
        _until_ready(root)
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        options += ["--window-size=1200,700"]
        options += ["--blink-settings=preferredColorScheme=0"] if dark else []
        wanted = {
            "goog:chromeOptions": {"binary": chromium, "args": options},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        session = root.call("POST", "/session", capabilities={"alwaysMatch": wanted})
        browser = Browser(f"{root.url}/session/{session['sessionId']}")
        try:
            yield browser
        finally:
            browser.call("DELETE", "")
    finally:
        process.terminate()
        process.wait(30)


def _until_ready(root: Browser) -> None:
    for _ in range(300):
        try:
            if root.call("GET", "/status")["ready"]:
                return
        except (URLError, ConnectionError):
            pass
        time.sleep(0.1)
    raise AssertionError("chromedriver does not answer")
