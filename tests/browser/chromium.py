"""Headless Chromium, controlled through a pair of pipes without other libraries."""

import asyncio
import base64
import fcntl
import itertools
import json
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-partial-raster",  # equal pages make equal screenshots
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
)
_PATIENCE_SECONDS: Final = 20.0
_KEYS: Final[Mapping[str, tuple[str, int, str]]] = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Space": ("Space", 32, " "),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
}


def find_chromium() -> str | None:
    """Return the browser that `CHROMIUM` names, or one with a usual name."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """A browser process with its own profile."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._sessions: dict[str, Page] = {}
        self._downloads = asyncio.Queue[Path]()

    async def start(self) -> None:
        """Start the process and connect to its pipes."""
        ours_in, ours_out = self._spawn()
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader(limit=2**26)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), os.fdopen(ours_in, "rb", 0))
        self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(ours_out, "wb", 0))
        self._reading = loop.create_task(self._read())

    def _spawn(self) -> tuple[int, int]:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        moved = [fcntl.fcntl(one, fcntl.F_DUPFD, 20) for one in (theirs_in, theirs_out)]
        arguments = [self._program, *_FLAGS, f"--user-data-dir={self._directory}", "about:blank"]
        quiet = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, *pair) for pair in [(moved[0], 3), (moved[1], 4), (quiet, 1), (quiet, 2)]]
        self._pid = os.posix_spawn(self._program, arguments, os.environ, file_actions=actions, setpgroup=0)
        for one in (theirs_in, theirs_out, quiet, *moved):
            os.close(one)
        return ours_in, ours_out

    async def new_page(self) -> "Page":
        """Open an empty page in an isolated browser context."""
        context = await self.say("Target.createBrowserContext")
        where = {"url": "about:blank", "browserContextId": context["browserContextId"]}
        target = await self.say("Target.createTarget", **where)
        session = await self.say("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, session["sessionId"], context["browserContextId"])
        self._sessions[session["sessionId"]] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.say(f"{domain}.enable")
        return page

    async def say(self, method: str, session: str | None = None, /, **params: Any) -> Any:
        """Send a command and wait for its result."""
        number = next(self._ids)
        answered = self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._writer.write(json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await answered

    async def downloaded(self) -> str:
        """Wait for the next download of a page that may save files, and return its content."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            file = await self._downloads.get()
        return await asyncio.to_thread(file.read_text, "utf-8")

    async def close(self) -> None:
        """End the process and all of its children."""
        self._reading.cancel()
        self._writer.close()
        os.killpg(self._pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitpid, self._pid, 0)

    async def _read(self) -> None:
        while True:
            message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
            if "id" in message:
                self._settle(message)
            elif message.get("sessionId") in self._sessions:
                self._sessions[message["sessionId"]].hear(message["method"], message["params"])
            elif message["method"] == "Browser.downloadProgress" and message["params"]["state"] == "completed":
                self._downloads.put_nowait(Path(message["params"]["filePath"]))

    def _settle(self, message: Mapping[str, Any]) -> None:
        answered = self._answers.pop(message["id"])
        if answered.done():
            return
        if "error" in message:
            answered.set_exception(RuntimeError(message["error"]["message"]))
        else:
            answered.set_result(message["result"])


class Page:
    """A page that tests use like a person: by reading and with the keyboard."""

    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self._browser = browser
        self._session = session
        self.context = context
        """The browser context of the page."""
        self._loaded = asyncio.Event()
        self.complaints: list[str] = []
        """Script errors and violations of the security policy."""

    async def say(self, method: str, **params: Any) -> Any:
        """Send a command for this page."""
        return await self._browser.say(method, self._session, **params)

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        """Record an event."""
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["source"] in ("security", "javascript"):
            self.complaints.append(params["entry"]["text"])

    async def goto(self, url: str) -> None:
        """Open a URL and wait until it is loaded."""
        self._loaded.clear()
        await self.say("Page.navigate", url=url)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await self._loaded.wait()

    async def evaluate(self, expression: str) -> Any:
        """Evaluate an expression in the page and await promises."""
        answer = await self.say("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true, checking once per frame, and return its value."""
        look = f"""new Promise((resolve) => {{
            const look = () => {{ const value = ({expression}); value ? resolve(value) : setTimeout(look, 15); }};
            look();
        }})"""
        try:
            return await self.evaluate(look)
        except TimeoutError:
            shown = await self.evaluate("document.body.innerText")
            raise AssertionError(f"never true: {expression}\n{shown}\n{self.complaints}") from None

    async def text(self, selector: str) -> str:
        """Return the text of an element."""
        found = await self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        assert isinstance(found, str)
        return found

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        code, number, text = _KEYS[key]
        common = {
            "key": " " if key == "Space" else key,
            "code": code,
            "windowsVirtualKeyCode": number,
            "modifiers": 8 if shift else 0,
        }
        await self.say("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        await self.say("Input.dispatchKeyEvent", type="keyUp", **common)

    async def write(self, text: str) -> None:
        """Type a text into the focused element."""
        await self.say("Input.insertText", text=text)

    async def focused(self) -> str:
        """Return the accessible name of the focused element."""
        return str(await self.evaluate(_FOCUSED))

    async def tab_to(self, words: str, *, most: int = 80) -> None:
        """Press Tab until an element with this name has the focus."""
        passed = []
        for _ in range(most):
            await self.press("Tab")
            passed.append(await self.focused())
            if words in passed[-1]:
                return
        raise AssertionError(f"{words!r} cannot be reached with Tab; there are {passed}")

    async def allow_downloads(self, directory: Path) -> None:
        """Save the files that the page offers in a directory."""
        where = {"downloadPath": str(directory), "browserContextId": self.context}
        await self._browser.say("Browser.setDownloadBehavior", behavior="allow", eventsEnabled=True, **where)

    async def allow_clipboard(self) -> None:
        """Allow the page to read and write the clipboard, as if its window were in front."""
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        await self._browser.say("Browser.grantPermissions", permissions=permissions, browserContextId=self.context)
        await self.say("Emulation.setFocusEmulationEnabled", enabled=True)

    async def look_like(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Set the size of the window and the preferred color scheme."""
        await self.say(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.say("Emulation.setEmulatedMedia", features=[scheme])

    async def screenshot(self, *, whole: bool = False) -> bytes:
        """Take a screenshot as PNG."""
        taken = await self.say("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(taken["data"])


_FOCUSED: Final = """(() => {
    const one = document.activeElement;
    const label = one.labels?.length ? [...one.labels].map((label) => label.innerText).join(" ") : "";
    const by = one.getAttribute("aria-labelledby");
    const named = by ? document.getElementById(by)?.innerText ?? "" : "";
    return [one.getAttribute("aria-label") ?? "", label, named, one.tagName === "BUTTON" || one.tagName === "A"
        || one.tagName === "SUMMARY" ? one.innerText : ""].filter(Boolean).join(" | ") || one.tagName;
})()"""
