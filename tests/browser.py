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
AUDIT = r"""(() => {
  const found = [], seen = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const all = query => [...document.querySelectorAll(query)].filter(seen);
  const where = e => e.outerHTML.slice(0, 90);
  const named = e => (e.getAttribute("aria-label") || e.title || e.alt || e.textContent
    || [...(e.labels || [])].map(l => l.textContent).join("")
    || (e.getAttribute("aria-labelledby") || "").split(" ").map(i => document.getElementById(i)?.textContent).join("")
    || "").trim();
  if (!document.documentElement.lang) found.push("html has no lang");
  if (!document.title) found.push("no title");
  const levels = all("h1, h2, h3, h4, h5, h6").map(e => Number(e.tagName[1]));
  if (levels.filter(l => l === 1).length !== 1 || levels[0] !== 1) found.push(`headings: ${levels}`);
  levels.forEach((l, i) => { if (i && l > levels[i - 1] + 1) found.push(`heading left out: ${levels}`); });
  for (const e of all("img")) if (!e.hasAttribute("alt")) found.push(`no alt: ${where(e)}`);
  for (const e of all("input, select, textarea"))
    if (![...e.labels].some(l => l.textContent.trim()) && !e.getAttribute("aria-label"))
      found.push(`no label: ${where(e)}`);
  for (const e of all("a[href], button, iframe, canvas, [role=img], summary"))
    if (!named(e)) found.push(`no name: ${where(e)}`);
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push(`id twice: ${id}`);

  const channels = c => { const [r, g, b, a = 1] = c.match(/[\d.]+/g).map(Number); return [r, g, b, a]; };
  const light = c => c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (top, below) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * below[i]).concat(1);
  const ground = e => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const style = getComputedStyle(at), color = channels(style.backgroundColor);
      if (style.backgroundImage !== "none") return null;
      layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  for (const e of all("body *")) {
    const text = [...e.childNodes].filter(n => n.nodeType === 3 && n.data.trim()).map(n => n.data.trim()).join(" ");
    if (!text || e.closest(":disabled") || e.closest("canvas, script, style")) continue;
    const back = ground(e), style = getComputedStyle(e);
    if (!back) continue;
    const ink = over(channels(e.namespaceURI.includes("svg") ? style.fill : style.color), back);
    const [dark, bright] = [light(ink), light(back)].sort((x, y) => x - y);
    const ratio = (bright + 0.05) / (dark + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${text.slice(0, 40)}`);
  }
  return found;
})()"""
"""What a script can see of WCAG 2, AA: language, headings, names of controls and images, contrast of texts."""


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

    def barriers(self) -> list[str]:
        """What keeps people with a screen reader or weak eyes from using the page, as far as a script can see."""
        found = self.run(AUDIT)
        assert isinstance(found, list)
        return found

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
