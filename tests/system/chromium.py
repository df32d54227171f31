"""A headless Chromium, driven by its DevTools protocol over a pipe: real input events, the accessibility tree, printing.

    with Browser(folder) as browser:
        page = browser.open("file:///report.html")
        page.click("#help-button")
        page.value("document.title")
"""
import base64
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
WHY_NOT = None if PROGRAM else "Chromium is missing (scripts/ensure-packages tests)"


class Browser:
    def __init__(self, folder, *flags):
        self.replies, self.events, self.sessions = {}, [], {}
        self.last = 0
        self.rest = b""
        to_child, self.to = os.pipe()
        self.source, from_child = os.pipe()

        def hand_over():
            # Chromium reads from 3 and writes to 4; what lies there now may be one of the others.
            read, write = os.dup(to_child), os.dup(from_child)
            read, write = (os.dup(end) if end < 5 else end for end in (read, write))
            os.dup2(read, 3)
            os.dup2(write, 4)

        # A browser of its own, that asks nobody and keeps nothing.
        self.process = subprocess.Popen(
            [
                PROGRAM,
                "--headless=new",
                "--no-sandbox",
                "--remote-debugging-pipe",
                f"--user-data-dir={folder}",
                "--no-first-run",
                "--disable-gpu",
                "--disable-extensions",
                "--disable-component-update",
                "--disable-background-networking",
                "--disable-sync",
                "--hide-scrollbars=false",
                "--disable-dev-shm-usage",
                *flags,
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=hand_over,
            close_fds=False,
            env={**os.environ, "HOME": str(folder)},
        )
        os.close(to_child)
        os.close(from_child)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(5)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.source)

    def call(self, method, session=None, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        number = self.last
        self.until(lambda: number in self.replies, 60, method)
        reply = self.replies.pop(number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")
        return reply["result"]

    def until(self, done, timeout, what):
        """Takes messages until something is so."""
        end = time.monotonic() + timeout
        while not done():
            if not select.select([self.source], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium did not do it in {timeout} s: {what}")
            got = os.read(self.source, 1 << 20)
            if not got:
                raise RuntimeError(f"Chromium ended ({self.process.poll()}) while asked for {what}")
            *whole, self.rest = (self.rest + got).split(b"\0")
            for message in map(json.loads, whole):
                if "id" in message:
                    self.replies[message["id"]] = message
                else:
                    self.events.append(message)

    def open(self, address, width=1280, height=900):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.resize(width, height)
        page.go(address)
        return page

    def frame_times(self, act):
        """The script's own time for each animation frame while `act` is done, in ms: a busy machine makes no difference."""
        self.call(
            "Tracing.start",
            transferMode="ReportEvents",
            traceConfig={"includedCategories": ["devtools.timeline"], "excludedCategories": ["*"]},
        )
        before = len(self.events)
        act()
        self.call("Tracing.end")
        told = lambda: self.events[before:]
        self.until(lambda: any(event["method"] == "Tracing.tracingComplete" for event in told()), 30, "a trace")
        traced = [each for event in told() if event["method"] == "Tracing.dataCollected" for each in event["params"]["value"]]
        return [each["tdur"] / 1000 for each in traced if each["name"] == "FireAnimationFrame" and "tdur" in each]


class Page:
    KEYS = {
        "Enter": 13,
        "Tab": 9,
        "Escape": 27,
        "Home": 36,
        "End": 35,
        "ArrowLeft": 37,
        "ArrowUp": 38,
        "ArrowRight": 39,
        "ArrowDown": 40,
    }

    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def go(self, address):
        """Until it is loaded."""
        loaded = {"method": "Page.loadEventFired", "sessionId": self.session}
        before = len(self.browser.events)
        self.call("Page.navigate", url=address)
        self.browser.until(
            lambda: any(loaded.items() <= event.items() for event in self.browser.events[before:]),
            60,
            f"load {address}",
        )

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def value(self, expression):
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait(self, expression, timeout=20):
        """Until the page says so; its value."""
        end = time.monotonic() + timeout
        while True:
            value = self.value(expression)
            if value:
                return value
            if time.monotonic() > end:
                raise TimeoutError(f"not within {timeout} s: {expression}")
            time.sleep(0.01)

    def frame(self):
        """Until what was asked for is drawn, in however many frames."""
        self.value(
            "new Promise(done => { const look = () => document.querySelector('[data-drawing]') ? requestAnimationFrame(look) : done();"
            "requestAnimationFrame(look); })"
        )

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def middle(self, selector):
        """Of an element, brought into view: its middle, in pixels of the viewport."""
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()"
        )
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector):
        self.click_at(*self.middle(selector))

    def click_at(self, x, y, modifiers=0):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1, modifiers=modifiers)

    def drag(self, begin, end, modifiers=0):
        self.mouse("mousePressed", *begin, button="left", clickCount=1, modifiers=modifiers)
        for i in (1, 2, 3, 4):
            self.mouse(
                "mouseMoved",
                *(a + (b - a) * i / 4 for a, b in zip(begin, end)),
                button="left",
                buttons=1,
                modifiers=modifiers,
            )
        self.mouse("mouseReleased", *end, button="left", clickCount=1, modifiers=modifiers)

    def wheel(self, x, y, across=0, down=0, modifiers=0):
        self.mouse("mouseWheel", x, y, deltaX=across, deltaY=down, modifiers=modifiers)

    def key(self, key, modifiers=0):
        code = self.KEYS.get(key)
        text = {} if code else {"text": key}
        if key == "Enter":
            text = {"text": "\r"}
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            key=key,
            modifiers=modifiers,
            windowsVirtualKeyCode=code or ord(key.upper()),
            **text,
        )
        self.call(
            "Input.dispatchKeyEvent",
            type="keyUp",
            key=key,
            modifiers=modifiers,
            windowsVirtualKeyCode=code or ord(key.upper()),
        )

    def type(self, text):
        for character in text:
            self.key(character)

    def complaints(self):
        """What the page wrote on its console, threw, or tried to fetch from elsewhere."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, told = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"].get("exception", told["exceptionDetails"]))[:500])
            elif method == "Runtime.consoleAPICalled":
                found.append(f"console.{told['type']}: {told['args']}"[:500])
            elif method == "Log.entryAdded":
                found.append(f"{told['entry']['source']}: {told['entry']['text']}"[:500])
            elif method == "Network.requestWillBeSent" and not told["request"]["url"].startswith(
                ("file:", "data:", "about:")
            ):
                found.append(f"fetched {told['request']['url']}"[:500])
        return found

    def accessible(self):
        """(role, name) of every node that assistive technology is told of."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def screenshot(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
