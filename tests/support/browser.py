"""A real browser for tests of pages: Chromium without a window, driven through chromedriver by the W3C WebDriver protocol."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

KEYS = {"Escape": "\ue00c", "Tab": "\ue004", "Enter": "\ue007"}
LOGGED = "\n".join(
    (
        "window.thrown = [];",
        "addEventListener('error', (e) => thrown.push(String(e.message)));",
        "addEventListener('securitypolicyviolation', (e) => thrown.push(`${e.violatedDirective} ${e.blockedURI}`));",
    )
)


class Browser:
    """One window. address: of chromedriver's session."""

    def __init__(self, address: str):
        self.address = address

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file. An earlier page is left, so that the file is loaded even if only the fragment differs."""
        self._post("url", {"url": "about:blank"})
        self._post("url", {"url": path.as_uri() + fragment})

    def run(self, script: str) -> Any:
        """What a function with this body returns on the page."""
        return self._post("execute/sync", {"script": script, "args": []})

    def press(self, *keys: str) -> None:
        """Press and release keys one after another, where the focus is. A text presses each of its characters."""
        pressed = [key for name in keys for key in ([KEYS[name]] if name in KEYS else name)]
        strokes = [{"type": kind, "value": key} for key in pressed for kind in ("keyDown", "keyUp")]
        self._post("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    def devtools(self, command: str, **parameters: Any) -> Any:
        """Run a command of the Chrome DevTools Protocol."""
        return self._post("goog/cdp/execute", {"cmd": command, "params": parameters})

    @property
    def thrown(self) -> list[str]:
        """Errors of scripts, and what the page's Content-Security-Policy refused, since the page was opened."""
        return self.run("return thrown")

    def _post(self, command: str, body: Any) -> Any:
        return _call(f"{self.address}/{command}", body)


def _call(address: str, body: Any = None, method: str = "POST") -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(address, data, {"Content-Type": "application/json"}, method=method), timeout=120) as answer:
        return json.load(answer)["value"]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium with an empty profile, for the tests of a module. Needs Debian's chromium and chromium-driver."""
    profile = tmp_path_factory.mktemp("chromium")
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if not driver or not chromium:
        pytest.fail("Chromium is needed: on Debian, apt-get install chromium chromium-driver")
    # Chromium's own sandbox refuses to run as root, as CI does. Pages are files that tests wrote.
    flags = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--user-data-dir={profile}")
    options = {"binary": chromium, "args": [*flags, "--window-size=1280,900"]}
    service = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert service.stdout
        port = next(found[1] for line in service.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        server = f"http://127.0.0.1:{port}/session"
        started = _call(server, {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        one = Browser(f"{server}/{started['sessionId']}")
        try:
            one.devtools("Page.addScriptToEvaluateOnNewDocument", source=LOGGED)
            yield one
        finally:
            _call(one.address, method="DELETE")
    finally:
        service.terminate()
        service.wait(timeout=30)
        if service.stdout:
            service.stdout.close()
