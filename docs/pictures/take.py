"""Takes the pictures of the README from a demo of its own: `python3 docs/pictures/take.py`.

Needs the release binary (`cargo build --release`), chromedriver with Chromium, fonts that have
Chinese, and Pillow. What is shown happens: nothing is drawn by hand.
"""

import base64
import io
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.request

from PIL import Image

HERE = pathlib.Path(__file__).parent
BINARY = pathlib.Path(os.environ.get("CHANCERY_BINARY", HERE / "../../target/release/chancery"))
DRIVER_PORT = 9517
WIDE, STORY = (1280, 800), (800, 560)
SOON = 30

ASKED = "return document.querySelectorAll('.room [data-call]').length === 2"
BLOCKED = "//details[contains(@class,'did')][.//span[text()='send_mail']]"
EDITED = '{"env": "production", "image": "shop/web:1.8.3", "strategy": "canary"}'


class Tab:
    """A tab of a browser, over the WebDriver protocol."""

    def __init__(self, base):
        self.base = base
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={DRIVER_PORT}"], stdout=subprocess.DEVNULL
        )
        self.session = f"http://127.0.0.1:{DRIVER_PORT}"
        options = {"args": ["--headless=new", "--no-sandbox", "--hide-scrollbars"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        made = self.until(lambda: self.ask("/session", wanted))
        self.session += f"/session/{made['sessionId']}"

    def ask(self, path, body):
        request = urllib.request.Request(
            self.session + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        return json.load(urllib.request.urlopen(request))["value"]

    def until(self, look):
        began = time.monotonic()
        while True:
            try:
                if found := look():
                    return found
            except OSError:
                # The driver says so where there is no such element yet.
                if time.monotonic() - began > SOON:
                    raise
            if time.monotonic() - began > SOON:
                raise TimeoutError(self.eval("return document.body.innerText"))
            time.sleep(0.05)

    def command(self, cmd, **params):
        return self.ask("/goog/cdp/execute", {"cmd": cmd, "params": params})

    def look(self, size, theme="light", language="en"):
        width, height = size
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )
        for name, value in [("theme", theme), ("language", language)]:
            cookie = {"name": f"chancery_{name}", "value": value, "path": "/"}
            self.ask("/cookie", {"cookie": cookie})

    def go(self, path):
        self.ask("/url", {"url": path if path.startswith("http") else self.base + path})

    def eval(self, script):
        return self.ask("/execute/sync", {"script": script, "args": []})

    def shows(self, script):
        self.until(lambda: self.eval(script))

    def element(self, path):
        found = self.until(lambda: self.ask("/element", {"using": "xpath", "value": path}))
        return next(iter(found.values()))

    def click(self, path):
        self.ask(f"/element/{self.element(path)}/click", {})

    def click_until(self, path, script):
        def look():
            self.click(path)
            time.sleep(0.3)
            return self.eval(script)

        self.until(look)

    def fill(self, path, text):
        element = self.element(path)
        self.ask(f"/element/{element}/clear", {})
        self.ask(f"/element/{element}/value", {"text": text})

    def picture(self):
        shot = self.command("Page.captureScreenshot", format="png")["data"]
        return Image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB")


def save(picture, name):
    """Few colours are enough for a page, and a third of the size."""
    picture.quantize(256, dither=Image.Dither.NONE).save(HERE / name, optimize=True)
    print(name)


def still(tab, name, path, language="en", ready="return true", themes=("light", "dark")):
    for theme in themes:
        tab.look(WIDE, theme, language)
        tab.go(path)
        # The same address with a mark in it is not asked for again by itself.
        tab.ask("/refresh", {})
        tab.shows(ready)
        time.sleep(0.5)
        save(tab.picture(), f"{name}-{'zh' if language == 'zh' else theme}.png")


def story(tab, language, name, wish, report):
    """The twelve seconds of the README: a nested run, a blocked mail, a card, a report."""
    frames = []

    def frame(seconds, at=None):
        if at:
            tab.eval(f"document.querySelector({json.dumps(at)}).scrollIntoView({{block: 'center'}})")
        time.sleep(0.3)
        frames.append((tab.picture(), int(seconds * 1000)))

    tab.look(STORY, language=language)
    tab.go("/chat")
    frame(1.2)
    tab.click(f"//button[normalize-space()='{wish}']")
    tab.shows("return location.pathname.startsWith('/chat/talk-')")
    tab.shows(ASKED)
    tab.eval("document.querySelector('#log').scrollIntoView({block: 'start'})")
    frame(1.6)
    tab.click(f"{BLOCKED}/summary")
    frame(2.2, "details.did[open]")
    build = "//section[contains(@aria-label,'docker_build')]"
    deploy = "//section[contains(@aria-label,'docker_deploy')]"
    frame(1.4, ".room [data-call]")
    gone = "return document.querySelectorAll('.room [data-call]').length === 1"
    tab.click_until(f"{build}//button[@data-key='a']", gone)
    thread = tab.eval("return location.pathname")
    inbox = "return location.pathname.startsWith('/inbox/')"
    tab.click_until(f"{deploy}//a[contains(@href,'/inbox/')]", inbox)
    frame(1.4, "[data-call]")
    edit = f"{deploy}//details[@data-key='e']"
    tab.click_until(f"{edit}/summary", "return document.querySelector('details[data-key=e]').open")
    tab.fill(f"{edit}//textarea", EDITED)
    tab.click(f"{edit}//button")
    tab.shows("return Boolean(document.querySelector('.diff .plus')?.innerText.includes('canary'))")
    decide = "//form[contains(@action,'/decide')]"
    tab.fill(f"{decide}//input[@name='comment']", "canary first")
    tab.click(f"{decide}//input[@type='checkbox']")
    frame(2.2, ".diff")
    tab.click(f"{decide}//button")
    tab.shows("return /^\\/inbox\\/perm_\\w+$/.test(location.pathname)")
    tab.go(thread)
    tab.shows("return document.querySelector('#log').innerText.includes('" + report + "')")
    tab.eval("document.querySelector('#log').lastElementChild.scrollIntoView({block: 'end'})")
    frame(2.4)
    pictures = [it for it, _ in frames]
    pictures[0].save(
        HERE / name, save_all=True, append_images=pictures[1:], loop=0, lossless=True,
        duration=[it for _, it in frames], minimize_size=True, method=6,
    )
    print(name)


def main():
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder, "demo")
        demo = subprocess.Popen(
            [BINARY, "--data", data, "demo", "--no-open"],
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )
        tab = None
        try:
            link = next(
                found[1] for line in demo.stdout if (found := re.search(r"Console\s+(\S+)", line))
            )
            tab = Tab(link.split("/setup")[0].split("/demo")[0])
            tab.go(link)
            tab.fill("//input[@name='name']", "lin")
            tab.click("//main//form//button[@type='submit' or not(@type)]")
            tab.shows("return location.pathname !== '/setup'")
            stills(tab)
            story(tab, "en", "story.webp", "Ship the pricing fix", "Shipped.")
            story(tab, "zh", "story-zh.webp", "发布定价修复", "已发布。")
        finally:
            demo.terminate()
            if tab:
                tab.driver.terminate()


def stills(tab):
    card = "return document.querySelectorAll('[data-call]').length > 0"
    still(tab, "inbox", "/inbox", ready=card)
    still(tab, "inbox", "/inbox", "zh", card, ["light"])
    tab.go("/runs")
    runs = "return [...document.querySelectorAll('main a[href^=\"/runs/run_\"]')].at(-1)?.pathname"
    still(tab, "run", tab.until(lambda: tab.eval(runs)))
    still(tab, "organisation", "/org#tools")
    tab.go("/audit")
    denied = """return [...document.querySelectorAll('main tr, main li')]
        .find((it) => it.innerText.includes('docker_deploy') && it.innerText.includes('roles.yaml'))?.querySelector('a[href^="/audit/"]')?.pathname"""
    still(tab, "why", tab.until(lambda: tab.eval(denied)))


if __name__ == "__main__":
    main()
