#!/usr/bin/env python3
"""pal report in a real browser: every plot is drawn, every picture shown, nothing is fetched, at two widths and in print.

usage: report_browser_test.py PAL     (run by the python that has selenium; without it or chromium it prints "skipped:")
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist"))

from label_case import browser_or_skip

browser_or_skip()

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from run_case import CONFIG, make_set

PAL = os.path.abspath(sys.argv[1])

DRAWN = """
return [...document.querySelectorAll('figure svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const shapes = [...svg.querySelectorAll('polyline, circle, rect, polygon')].filter(s => {
    const b = s.getBBox(); return b.width + b.height > 0; });
  return {width: box.width, height: box.height, shapes: shapes.length,
          text: svg.textContent.trim().length, caption: svg.parentElement.querySelector('figcaption').innerText};
});"""
PICTURES = "return [...document.images].map(i => [i.complete, i.naturalWidth]);"
CUT = """
return [...document.querySelectorAll('figure svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const r = text.getBoundingClientRect();
    return r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1;
  }).map(text => text.textContent);
});"""
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;"
FETCHED = "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'));"


def main():
    folder = tempfile.mkdtemp(prefix="pal-report-test-")
    try:
        run(folder)
    finally:
        shutil.rmtree(folder)


def pal(folder, *args):
    done = subprocess.run([PAL, *args], cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, f"pal {' '.join(args)}\n{done.stdout}{done.stderr}"


def rename_classes(path):
    """Names as long as real ones, which stand aslant over the confusion."""
    results = json.loads(pathlib.Path(path).read_text())
    for result in results["results"]:
        result["per_class"] = {f"{name}, a long name": share for name, share in result["per_class"].items()}
    pathlib.Path(path).write_text(json.dumps(results))


def run(folder):
    os.makedirs(f"{folder}/idx")
    make_set(f"{folder}/idx")
    pathlib.Path(f"{folder}/c.yaml").write_text(CONFIG)
    pal(folder, "data", "import", "idx", "idx", "set.h5")
    asks = ["oracle.sampler=captcha", "oracle.every=2", "oracle.questions_per_round=10", "graph.labeled_fraction=0"]
    pal(folder, "train", "c.yaml", *asks, "eval.every=2", "--run-dir", "a", "--np", "2")
    pal(folder, "train", "c.yaml", "loss.kind=simclr", "eval.every=2", "--run-dir", "b")
    pal(folder, "eval", "a", "knn", "--json", "a/eval.json")
    rename_classes(f"{folder}/a/eval.json")
    pal(folder, "report", "a", "--out", "one.html", "--embed", "60")
    pal(folder, "report", "a", "b", "--out", "two.html", "--embed", "60")

    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    try:
        for page, least in (("one.html", 9), ("two.html", 9)):
            check(browser, folder, page, least)
    finally:
        browser.quit()
    print("ok")


def check(browser, folder, page, least):
    keep = os.environ.get("PAL_KEEP_PICTURES")
    for width in (1280, 390):
        browser.set_window_size(width, 1000)
        browser.get(f"file://{folder}/{page}")
        figures = browser.execute_script(DRAWN)
        assert len(figures) >= least, f"{page}: {len(figures)} plots, {[f['caption'] for f in figures]}"
        for figure in figures:
            assert figure["width"] > 200 and figure["height"] > 100, (page, width, figure)
            assert figure["shapes"] >= 2 and figure["text"] > 10, (page, width, figure)
            assert figure["width"] <= width, (page, width, figure)
        assert browser.execute_script(CUT) == [], (page, width, browser.execute_script(CUT))
        pictures = browser.execute_script(PICTURES)
        assert len(pictures) > 60 and all(done and size > 0 for done, size in pictures), (page, len(pictures))
        assert browser.execute_script(OVERFLOW) <= 0, f"{page} is wider than a window of {width}"
        assert browser.execute_script(FETCHED) == [], browser.execute_script(FETCHED)
        if keep:
            browser.save_screenshot(f"{keep}/{page}-{width}.png")
    # What the browser itself asked for: the page, and nothing else.
    asked = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"].split("#")[0])
    outside = {url for url in asked if not url.startswith(("data:", f"file://{folder}/", "chrome:", "about:"))}
    assert not outside, outside
    wrong = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not wrong, wrong
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 20000, len(pdf)
    if keep:
        pathlib.Path(f"{keep}/{page}.pdf").write_bytes(pdf)


main()
