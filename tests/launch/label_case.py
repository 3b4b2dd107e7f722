"""label_case: what tests of the labeling page share: a run with questions, the server, a browser, and the ledger."""
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist"))


def browser_or_skip():
    try:
        from selenium import webdriver  # noqa: F401
    except ImportError:
        print("skipped: selenium is not here (apt-get install python3-selenium)")
        sys.exit(0)
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: chromium is not here (apt-get install chromium chromium-driver)")
        sys.exit(0)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rows(ledger, sql, *values):
    db = sqlite3.connect(ledger)
    try:
        return db.execute(sql, values).fetchall()
    finally:
        db.close()


class Server:
    """`pal label` as a child."""

    def __init__(self, pal, folder, *args, port=0):
        self.port = port or free_port()
        self.errors = tempfile.NamedTemporaryFile("w+", prefix="pal-label-", suffix=".log", delete=False)
        self.process = subprocess.Popen([pal, "label", *args, "--port", str(self.port)], cwd=folder, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.folder, self.said, self.links_file = folder, "", None
        for line in self.process.stdout:
            self.said += line
            named = re.search(r"the link of each person is in (.*)$", line)
            if named:
                self.links_file = os.path.join(folder, named[1])
            if "Ctrl-C" in line:
                return
        self.process.wait()
        self.process.stdout.close()
        raise AssertionError(f"pal label ended: {self.said}{self.log()}")

    @property
    def links(self):
        """The link of each person that works now."""
        with open(self.links_file) as f:
            return dict(line.rstrip("\n").rsplit(": ", 1) for line in f)

    def log(self):
        with open(self.errors.name) as f:
            return f.read()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.errors.close()
        os.unlink(self.errors.name)
        assert code == 0, f"exit code {code}: {self.said}"


class Browser:
    """A browser of one person."""

    def __init__(self, folder, name="one"):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={folder}/profile-{name}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.size(1280, 800)

    def size(self, width, height, touch=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch})
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": touch})

    def scheme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def slow(self, milliseconds):
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, "latency": milliseconds, "downloadThroughput": -1, "uploadThroughput": -1})

    def js(self, script, *args):
        return self.driver.execute_script(script, *args)

    def wait(self, script, seconds=15, what=""):
        end = time.time() + seconds
        while time.time() < end:
            found = self.js(f"return {script}")
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not within {seconds} s: {what or script}; the page: {self.js('return document.body.innerText')[:400]}")

    def open(self, link):
        self.driver.get(link)
        return self.card()

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def card(self):
        """The query on the screen, once its pictures are there."""
        self.wait("document.querySelector('section[data-query]') && [...document.querySelectorAll('section img')].every(i => i.complete)")
        return int(self.js("return document.querySelector('section[data-query]').dataset.query"))

    def next_card(self, before):
        self.wait(f"!document.querySelector('section[data-query=\"{before}\"]')", what=f"the card after {before}")
        return self.card()

    def members(self):
        """Samples of the card on the screen: the template, and those asked about."""
        tiles = self.js("return [...document.querySelectorAll('.tile [data-sample]')].map(e => +e.dataset.sample)")
        template = self.js("return +document.querySelector('.template [data-sample]').dataset.sample")
        return template, tiles or [self.js("return +document.querySelector('.template.other [data-sample]').dataset.sample")]

    def settled(self):
        """Everything answered is on the server's disk."""
        self.wait("Object.keys(localStorage).filter(k => k.startsWith('pal-out')).length === 0", 30, "an empty outbox")

    def quit(self):
        self.driver.quit()


def outside(driver, origin):
    """What the browser asked for elsewhere."""
    asked = set()
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"].split("#")[0])
    return {url for url in asked if not url.startswith((origin, "data:", "chrome:", "about:"))}
