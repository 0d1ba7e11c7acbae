"""A headless Chromium for tests, driven over a pipe by the DevTools protocol; nothing but the browser is needed."""

import base64
import io
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FLAGS = (
    *("--headless", "--no-sandbox", "--no-first-run", "--disable-quic", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--mute-audio"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--remote-debugging-pipe", "--disable-dev-shm-usage"),
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The browser's path; without one the test is skipped, or fails where ACNN_BROWSER=required."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        why = "no Chromium here (Debian: apt-get install chromium)"
        if os.environ.get("ACNN_BROWSER") == "required":
            pytest.fail(f"{why}, but ACNN_BROWSER=required")
        pytest.skip(why)
    return found


class Browser:
    """One page. `problems` collects console errors and exceptions, `requests` every address that was asked for.

    with Browser() as page:
        page.open("file:///...")
        page.wait("document.title")
    """

    def __init__(self, width: int = 1000, height: int = 900, dark: bool = False, patience: float = 240.0) -> None:
        self.size, self.dark, self.patience = (width, height), dark, patience
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._count, self._buffer, self._session = 0, b"", ""

    def __enter__(self) -> "Browser":
        self._folder = tempfile.mkdtemp(prefix="acnn-browser-")
        there, self._write = os.pipe()
        self._read, back = os.pipe()
        command = [
            chromium(),
            *FLAGS,
            f"--user-data-dir={self._folder}",
            f"--window-size={self.size[0]},{self.size[1]}",
        ]
        # The browser reads commands from descriptor 3 and answers on 4.
        script = f'exec "$@" 3<&{there} 4>&{back}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "browser", *command],
            pass_fds=(there, back),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=self.size[0],
            height=self.size[1],
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def open(self, address: str) -> None:
        self._call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def run(self, script: str) -> object:
        """What an expression gives; its exceptions become errors here."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def wait(self, script: str) -> object:
        """Wait until an expression is true."""
        until = time.monotonic() + self.patience
        while not (value := self.run(script)):
            assert time.monotonic() < until, f"waited for {script}"
            time.sleep(0.05)
        return value

    def box(self, selector: str) -> dict[str, float]:
        """Left, top, width and height of an element on the page."""
        found = self.run(
            f"(() => {{ const r = document.querySelector({selector!r}).getBoundingClientRect();"
            " return {x: r.left + scrollX, y: r.top + scrollY, width: r.width, height: r.height}; })()"
        )
        assert isinstance(found, dict)
        return found

    def click(self, x: float, y: float) -> None:
        """Press and release at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, x: float, y: float, dx: float, dy: float) -> None:
        """Press, move and release."""
        self._call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
        for step in (0.5, 1.0):
            self._call(
                "Input.dispatchMouseEvent",
                type="mouseMoved",
                x=x + step * dx,
                y=y + step * dy,
                button="left",
                buttons=1,
            )
        self._call("Input.dispatchMouseEvent", type="mouseReleased", x=x + dx, y=y + dy, button="left", clickCount=1)

    def key(self, key: str) -> None:
        """Type one key."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key)

    def picture(self, selector: str | None = None, file: Path | None = None) -> np.ndarray:
        """(height, width, 3) what is seen, of an element or of the window."""
        more = {"clip": {**self.box(selector), "scale": 1}, "captureBeyondViewport": True} if selector else {}
        data = base64.b64decode(self._call("Page.captureScreenshot", format="png", **more)["data"])
        if file is not None:
            file.write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)

    def _call(self, method: str, **parameters: object) -> dict:
        self._count += 1
        message: dict = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self.patience
        while True:
            answer = self._next(until, method)
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _next(self, until: float, what: str) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._read, 1 << 16) if ready else b""
            assert part, f"the browser did not answer to {what}"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: str, facts: dict) -> None:
        if event == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(facts["exceptionDetails"])[:800])
        elif event == "Runtime.consoleAPICalled" and facts["type"] in ("error", "assert"):
            self.problems.append(json.dumps(facts["args"])[:800])
        elif event == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.problems.append(facts["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
