#!/usr/bin/env python3
"""The labeling page in a real browser: every kind of question by keyboard, mouse and touch; each answer is recorded once.

usage: label_browser_test.py PAL [test names]     (run by the python that has selenium; without it or chromium it prints "skipped:")
PAL_KEEP_PICTURES=DIR keeps screenshots in DIR: three sizes, light and dark.
"""
import csv
import json
import os
import re
import shutil
import sqlite3
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from label_case import Browser, Server, browser_or_skip, outside, rows  # noqa: E402

browser_or_skip()
from run_case import CLASSES, PAL, SIDE, RunCase  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

TILES = "12345qwertasdfg"
EVIL = "<img src=x onerror=alert(1)>"
KINDS = ["captcha", "pair", "outliers", "coarse", "coarse"]


class LabelBrowser(RunCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(f"{cls.folder}/users", "w") as f:
            f.write(f"ann owner\nbob\n{EVIL}\n")
        Server(PAL, cls.folder, "c.yaml", "oracle.sampler=random", "--run-dir", "base").stop()   # makes the folder and its ledger
        cls.browsers = {name: Browser(cls.folder, name) for name in ("ann", "bob")}

    @classmethod
    def tearDownClass(cls):
        for b in cls.browsers.values():
            b.quit()
        super().tearDownClass()

    def start(self, run, *settings, count=40, votes=1, port=0):
        """A run folder whose ledger holds questions of every kind, and its page."""
        if not os.path.exists(f"{self.folder}/{run}"):
            shutil.copytree(f"{self.folder}/base", f"{self.folder}/{run}")
            db = sqlite3.connect(f"{self.folder}/{run}/ledger.sqlite")
            db.execute("delete from members")
            db.execute("delete from queries")
            for q in range(1, count + 1):
                kind = KINDS[q % len(KINDS)]
                members = 1 if kind == "pair" or q % len(KINDS) == 4 else 15
                template = q % 90
                db.execute("insert into queries values (?, ?, ?, ?, 'test', 1, 0, 0)", (q, kind, template, 1 if kind == "coarse" else -1))
                for m in range(members):
                    db.execute("insert into members values (?, ?, ?, ?, 1, 0, 0)", (q, (template + 1 + m) % 90, m, votes))
            db.commit()
            db.close()
        server = Server(PAL, self.folder, run, *settings, "--users", "users", port=port)
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        return server

    def said(self, run, who=None):
        """Standing answers of the ledger: {(query, member): verdict}; nothing may stand twice."""
        found = rows(f"{self.folder}/{run}/ledger.sqlite", "select query, j, annotator, answer from answers where superseded_by is null and answer <> 'withdrawn'")
        mine = [(q, j, a) for q, j, by, a in found if who in (None, by)]
        self.assertEqual(len({(q, j) for q, j, _ in mine}), len(mine) if who else len({(q, j) for q, j, _ in mine}))
        return {(q, j): a for q, j, a in mine}

    def truth(self, template, member):
        return template % CLASSES == member % CLASSES

    def kind(self, query):
        return KINDS[query % len(KINDS)]

    def fill(self, b, query, sent, by="keys"):
        """Answers the card on the screen as the labels say; notes what that means."""
        template, members = b.members()
        for m in members:
            sent[query, m] = "yes" if self.truth(template, m) else "no"
        if len(members) == 1:
            same = sent[query, members[0]] == "yes"
            if by == "keys":
                b.keys("y" if same else "n")
            else:
                b.driver.find_elements(By.CSS_SELECTOR, ".actions button")[0 if same else 1].click()
            return
        marks = [n for n, m in enumerate(members) if (sent[query, m] == "yes") != (self.kind(query) == "outliers")]
        if by == "keys":
            b.keys(*[TILES[n] for n in marks], " ")
        else:
            tiles = b.driver.find_elements(By.CSS_SELECTOR, ".tile")
            for n in marks:
                tiles[n].click()
            b.driver.find_element(By.CSS_SELECTOR, ".actions .main").click()

    def test_kinds_by_keyboard_and_mouse(self):
        server, b, sent = self.start("kinds"), self.browsers["ann"], {}
        for log in ("browser", "performance"):   # of the tests before
            b.driver.get_log(log)
        query = b.open(server.links["ann"])
        self.assertNotIn("token", b.driver.current_url)
        for n in range(12):
            self.fill(b, query, sent, "keys" if n < 6 else "mouse")
            query = b.next_card(query)
        # Unsure, skip and broken are three different answers.
        while self.kind(query) != "pair":
            self.fill(b, query, sent)
            query = b.next_card(query)
        for letter, verdict in (("u", "unsure"), ("b", "broken"), ("s", "skip")):
            while len(b.members()[1]) > 1:
                self.fill(b, query, sent)
                query = b.next_card(query)
            sent[query, b.members()[1][0]] = verdict
            b.keys(letter)
            query = b.next_card(query)
        while len(b.members()[1]) == 1:
            self.fill(b, query, sent)
            query = b.next_card(query)
        # A grid with every state: Shift unsure, Alt broken.
        template, members = b.members()
        marked = "no" if self.kind(query) == "outliers" else "yes"
        other = "yes" if marked == "no" else "no"
        ActionChains(b.driver).send_keys("1").key_down(Keys.SHIFT).send_keys("q").key_up(Keys.SHIFT).key_down(Keys.ALT).send_keys("g").key_up(Keys.ALT).perform()
        states = b.js("return [...document.querySelectorAll('.tile')].map(t => t.dataset.state)")
        self.assertEqual([states[n] for n in (0, 5, 14, 1)], ["marked", "unsure", "broken", "plain"])
        for n, m in enumerate(members):
            sent[query, m] = {0: marked, 5: "unsure", 14: "broken"}.get(n, other)
        b.keys(" ")
        b.next_card(query)
        b.settled()
        self.assertEqual(outside(b.driver, f"http://127.0.0.1:{server.port}/"), set())
        self.assertEqual([e for e in b.driver.get_log("browser") if e["level"] == "SEVERE"], [])
        server.stop()
        self.assertEqual(self.said("kinds"), sent)

    def test_the_next_card_is_there_at_once(self):
        """Also far away: every request takes a fifth of a second."""
        server, b = self.start("fast"), self.browsers["ann"]
        query = b.open(server.links["ann"])
        b.slow(200)
        self.addCleanup(lambda: b.slow(0))
        b.js("""
          window.took = []; let pressed = 0;
          addEventListener('keydown', () => { pressed = performance.now(); }, true);
          new MutationObserver(() => requestAnimationFrame(() => {
            const images = [...document.querySelectorAll('section[data-query] img')];
            if (pressed && images.length > 0 && images.every(i => i.complete)) { window.took.push(performance.now() - pressed); pressed = 0; }
          })).observe(document.getElementById('main'), {childList: true});""")
        for _ in range(12):
            time.sleep(0.8)
            b.keys(" " if len(b.members()[1]) > 1 else "y")
            query = b.next_card(query)
        took = sorted(b.js("return window.took"))
        print(f"the next card: median {took[len(took) // 2]:.0f} ms, most {took[-1]:.0f} ms")
        self.assertGreaterEqual(len(took), 10)
        self.assertLess(took[len(took) // 2], 50)
        b.settled()
        server.stop()

    def test_undo_reload_change_and_drag(self):
        server, b, sent = self.start("undo"), self.browsers["ann"], {}
        query = b.open(server.links["ann"])
        first = query
        self.fill(b, query, sent)
        query = b.next_card(query)
        b.keys(Keys.BACKSPACE)
        b.wait(f"document.querySelector('section[data-query=\"{first}\"]')", what="the card that was taken back")
        for key in [k for k in sent if k[0] == first]:
            sent[key] = "unsure"
        b.keys("u")
        self.assertEqual(b.next_card(first), query, "and on where it was")
        b.settled()
        b.driver.refresh()
        self.assertEqual(b.card(), query, "a reload shows the same card")
        # Painted: from the first tile over the row and down.
        while len(b.members()[1]) == 1 or self.kind(query) == "outliers":
            self.fill(b, query, sent)
            query = b.next_card(query)
        tiles = b.driver.find_elements(By.CSS_SELECTOR, ".tile")
        drag = ActionChains(b.driver, duration=60).click_and_hold(tiles[0])
        for n in (1, 2, 3, 4, 9, 14):
            drag = drag.move_to_element(tiles[n])
        drag.release().perform()
        painted = b.js("return [...document.querySelectorAll('.tile')].map(t => t.dataset.state === 'marked')")
        self.assertEqual([n for n in range(15) if painted[n]], [0, 1, 2, 3, 4, 9, 14])
        for n, m in enumerate(b.members()[1]):
            sent[query, m] = "yes" if painted[n] else "no"
        painted_query = query
        b.keys(" ")
        b.next_card(query)
        b.settled()
        # My answers: the newest is changed.
        b.keys("m")
        b.wait("document.querySelectorAll('.row').length >= 3")
        shown = b.js("return [...document.querySelector('.row').querySelectorAll('.small.marked')].map(e => +e.dataset.sample)")
        self.assertEqual(len(shown), 6, "those that were marked come first")
        self.assertLessEqual({(painted_query, m) for m in shown}, {key for key in sent if sent[key] == "yes"})
        b.driver.find_element(By.CSS_SELECTOR, ".row button").click()
        b.wait(f"document.querySelector('section[data-query=\"{painted_query}\"]')")
        self.assertEqual(b.js("return document.querySelectorAll('.tile[data-state=marked]').length"), 7)
        b.keys("1", " ")
        sent[painted_query, b_first(sent, painted_query)] = "no"
        b.settled()
        server.stop()
        self.assertEqual(self.said("undo"), sent)
        taken_back = rows(f"{self.folder}/undo/ledger.sqlite", "select count(*) from answers where superseded_by is not null")[0][0]
        self.assertGreaterEqual(taken_back, 15, "nothing is deleted")

    def test_a_reload_before_an_answer_is_sent(self):
        server, b, sent = self.start("unsent"), self.browsers["ann"], {}
        query = b.open(server.links["ann"])
        b.driver.execute_cdp_cmd("Network.enable", {})
        b.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/api/answer"]})
        self.fill(b, query, sent)
        second = b.next_card(query)
        b.driver.refresh()
        self.assertEqual(b.card(), second, "what was answered is not shown again")
        b.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        b.settled()
        server.stop()
        self.assertEqual(self.said("unsent"), sent)

    def test_dialogs_above_a_card(self):
        """Help and large pictures: keys are not the card's meanwhile."""
        server, b = self.start("above"), self.browsers["ann"]
        query = b.open(server.links["ann"])
        for key, dialog in (("?", "help"), ("z", "large")):
            b.keys(key)
            b.wait(f"document.getElementById('{dialog}').open")
            b.keys("y", "1", "u", "x", Keys.BACKSPACE)
            self.assertEqual(b.card(), query)
            self.assertEqual(b.js("return document.querySelectorAll('.tile[data-state=marked]').length"), 0)
            if dialog == "large":
                self.assertTrue(b.js("return document.querySelector('#large img').src.endsWith('/full')"))
            b.keys(Keys.ESCAPE)
            b.wait(f"!document.getElementById('{dialog}').open")
        b.keys("y" if len(b.members()[1]) == 1 else " ")
        b.next_card(query)
        b.settled()
        server.stop()
        self.assertEqual({q for q, _ in self.said("above")}, {query})

    def test_the_users_words(self):
        """label.question and label.instructions, as text, in every kind of question; instructions once, and in the help."""
        question, instructions = f"Is this the same patient? {EVIL}", f"Look at the teeth.\n{EVIL}\nNot at the age."
        settings = (f"label.question={question}", f"label.instructions={json.dumps(instructions.splitlines())}")
        server, b, sent, seen = self.start("words", *settings), self.browsers["ann"], {}, {}
        b.driver.get(server.links["ann"])
        b.wait("document.getElementById('help')?.open", what="the instructions at the first visit")
        self.assertEqual(b.js("return document.querySelector('#help .instructions').textContent"), instructions)
        self.assertEqual(b.js("return getComputedStyle(document.querySelector('#help .instructions')).whiteSpace"), "pre-line")
        self.picture(b, "instructions")
        b.driver.find_element(By.CSS_SELECTOR, "#help button").click()
        query = b.card()
        while len(seen) < 5:
            template, members = b.members()
            heading = b.js("return document.querySelector('section h1').textContent")
            how = b.js("return document.querySelector('.how')?.textContent ?? ''")
            self.assertEqual(heading, question)
            kind = self.kind(query) + ("_one" if len(members) == 1 else "")
            if kind not in seen:
                seen[kind] = how
                self.picture(b, f"words-{kind}")
            if len(members) == 1:
                self.assertEqual(b.js("return [...document.querySelectorAll('.actions button')].slice(0, 2).map(e => e.firstChild.textContent)"), ["Yes", "No"])
            caption = b.js("return document.querySelector('.template p').textContent")
            if self.known(template):
                self.assertTrue(caption.endswith(f": {template % CLASSES}"), caption)
            else:
                self.assertNotIn(":", caption)
            self.fill(b, query, sent)
            query = b.next_card(query)
        self.assertEqual(seen["pair_one"], "")
        self.assertIn("the answer is yes", seen["captcha"])
        self.assertIn("the answer is no", seen["outliers"])
        self.assertIn("one of: 1", seen["coarse"])
        self.assertIn("one of: 1", seen["coarse_one"])
        b.driver.refresh()
        b.card()
        self.assertFalse(b.js("return document.getElementById('help').open"), "once")
        b.keys("?")
        b.wait("document.querySelector('#help .instructions') && document.querySelector('#help dl')")
        self.assertEqual(b.js("return document.querySelectorAll('img[src=x]').length"), 0)
        b.keys(Keys.ESCAPE)
        b.settled()
        server.stop()
        self.assertEqual(self.said("words"), sent)
        # Other instructions are shown again; class names can be left out.
        server = self.start("words", "label.instructions=Now look at the age.", "label.class_names=false", port=server.port)
        b.driver.refresh()
        b.wait("document.getElementById('help').open && document.body.innerText.includes('Now look at the age.')")
        b.keys(Keys.ESCAPE)
        b.card()
        self.assertNotIn(":", b.js("return document.querySelector('.template p').textContent"))
        self.assertNotIn("patient", b.js("return document.querySelector('section h1').textContent"))
        server.stop()

    def known(self, sample):
        """Whether its label is known to the run: then `pal labels` calls it given."""
        if not hasattr(self, "given"):
            self.call("labels", "base", "--known-only", "--out", "given.csv")
            with open(f"{self.folder}/given.csv") as f:
                self.given = {int(row["id"]) for row in csv.DictReader(f) if row["how"] == "given"}
        return sample in self.given

    def picture(self, b, name):
        """On a screen and on a phone: nothing is wider than it."""
        folder = os.environ.get("PAL_KEEP_PICTURES")
        for width, height, touch in ((390, 844, True), (1280, 800, False)):
            b.size(width, height, touch)
            self.assertLessEqual(b.js("return document.documentElement.scrollWidth - innerWidth"), 0, (name, width))
            if folder:
                b.driver.save_screenshot(f"{folder}/{name}-{width}.png")

    def test_z_enlarges_the_tile_that_was_chosen_last(self):
        server, b = self.start("large"), self.browsers["ann"]
        query = b.open(server.links["ann"])
        while len(b.members()[1]) == 1:
            b.keys("y")
            query = b.next_card(query)
        template, members = b.members()

        def enlarged():
            b.keys("z")
            b.wait("document.getElementById('large').open")
            shown = b.js("return +document.querySelector('#large [data-sample]').dataset.sample")
            b.keys(Keys.ESCAPE)
            b.wait("!document.getElementById('large').open")
            return shown
        b.keys("q")   # marked by its key
        self.assertEqual(enlarged(), members[5])
        b.js("document.querySelectorAll('.tile')[7].focus()")
        self.assertEqual(enlarged(), members[7])
        ActionChains(b.driver).move_to_element(b.driver.find_elements(By.CSS_SELECTOR, ".tile")[2]).perform()
        self.assertEqual(enlarged(), members[2])
        server.stop()

    def test_an_empty_page_shows_the_reason_and_asks_once_a_second(self):
        """No question can be chosen: the reason is on the page, and the page does not ask all the time."""
        server, b = self.start("why", "oracle.sampler=random", "oracle.budget=1", count=1), self.browsers["ann"]
        query = b.open(server.links["ann"])
        b.keys("y" if len(b.members()[1]) == 1 else " ")
        b.wait("document.querySelector('.why')?.textContent.includes('the budget of 1 questions is spent (oracle.budget)')", 30)
        self.picture(b, "why")
        before = b.js("return performance.getEntriesByType('resource').filter(e => e.name.includes('/api/questions')).length")
        time.sleep(3)
        after = b.js("return performance.getEntriesByType('resource').filter(e => e.name.includes('/api/questions')).length")
        self.assertLessEqual(after - before, 5)
        b.settled()
        server.stop()
        self.assertEqual({q for q, _ in self.said("why")}, {query})

    def test_the_header_and_the_dashboard_agree(self):
        """Imported answers have no time: the pace is that of the answers given here. The graph's use of answers is said."""
        server = self.start("pace", count=10)
        server.stop()
        with open(f"{self.folder}/pace.jsonl", "w") as f:
            members = rows(f"{self.folder}/pace/ledger.sqlite", "select query, sample from members where query in (6, 7)")
            f.writelines(json.dumps({"query": q, "member": m, "answer": "no", "annotator": "file"}) + "\n" for q, m in members)
        self.call("answers", "import", "pace", "pace.jsonl")
        imported = len(members)
        server, b = self.start("pace", port=server.port), self.browsers["ann"]
        query = b.open(server.links["ann"])
        time.sleep(2)
        b.keys("y" if len(b.members()[1]) == 1 else " ")
        b.next_card(query)
        b.settled()
        time.sleep(3)   # the figures are updated later
        b.keys("p")
        b.wait("document.querySelector('.figures')")
        shown = b.js("return [document.getElementById('known').textContent, [...document.querySelectorAll('.figure')].map(f => [f.querySelector('span').textContent, +f.querySelector('b').textContent.replaceAll(',', '')])]")
        figures = dict(shown[1])
        known = figures["inferred pairs"] + figures["answered pairs"]
        self.assertEqual(shown[0], f"{known:,} pairs known from {figures['answers']:,} answers")
        d = b.driver.execute_async_script("fetch('/api/standing').then(r => r.json()).then(arguments[0])")
        self.assertEqual(d["timed"], d["answers"] - imported)
        forecast = b.js("return document.querySelector('.bars').innerText")
        self.assertIn(f"the {d['open']} questions left take", forecast)
        each = d["seconds"] / d["timed"]
        seconds = re.search(r"take (\d+) (s|min)", forecast)
        self.assertAlmostEqual(int(seconds[1]) * (60 if seconds[2] == "min" else 1), d["open"] * each, delta=31 if seconds[2] == "min" else 1)
        self.assertIn("graph.kind=mixed gives weight to answers yes only", b.js("return document.querySelector('.note').textContent"))
        self.picture(b, "board")
        server.stop()

    def test_two_people_do_not_see_each_other_s_answers(self):
        server = self.start("two", count=6, votes=2)
        sent, cards = {"ann": {}, "bob": {}}, {}
        for name, b in self.browsers.items():
            cards[name] = b.open(server.links[name])
        self.assertEqual(cards["ann"], cards["bob"], "two answers are wanted")
        for _ in range(5):
            for name, b in self.browsers.items():
                self.fill(b, cards[name], sent[name])
                cards[name] = b.next_card(cards[name])
        for name, b in self.browsers.items():
            self.fill(b, cards[name], sent[name])
            b.settled()
        ann, bob = self.browsers["ann"], self.browsers["bob"]
        self.assertEqual(ann.js("return document.querySelectorAll('nav button').length"), 4)
        self.assertEqual(bob.js("return document.querySelectorAll('nav button').length"), 3, "review is for the owner")
        ann.keys("p")
        ann.wait("document.querySelectorAll('.plots svg').length >= 2 && document.body.innerText.includes('Fleiss')", 20)
        ann.wait("document.querySelector('table') && document.querySelector('table').innerText.includes('bob')")
        self.assertEqual(ann.js("return document.querySelectorAll('.links a').length"), 4)
        for name in ("ann", "bob"):
            server_side = ann if name == "ann" else bob
            server_side.js("document.querySelector('nav button').click()")
        server.stop()
        for name in ("ann", "bob"):
            self.assertEqual(self.said("two", name), sent[name])
            self.assertEqual(len(sent[name]), sum(1 if KINDS[q % 5] == "pair" or q % 5 == 4 else 15 for q in range(1, 7)))

    def test_a_killed_server_loses_nothing(self):
        server, b, sent = self.start("killed"), self.browsers["bob"], {}
        query = b.open(server.links["bob"])
        for n in range(12):
            self.fill(b, query, sent)
            if n in (3, 7):   # in the middle of posting, then cards are answered without a server
                server.kill()
            elif n in (5, 9):
                if n == 5:
                    b.wait("document.getElementById('waiting').textContent.includes('kept in this browser')")
                server = self.start("killed", port=server.port)
                b.settled()
            query = b.next_card(query)
        b.settled()
        server.stop()
        self.assertEqual(self.said("killed"), sent)

    def test_a_phone(self):
        server, b, sent = self.start("phone"), self.browsers["bob"], {}
        b.size(390, 844, touch=True)
        self.addCleanup(lambda: b.size(1280, 800))
        query = b.open(server.links["bob"])
        while len(b.members()[1]) == 1:
            self.fill(b, query, sent, "mouse")
            query = b.next_card(query)
        self.assertLessEqual(b.js("return document.documentElement.scrollWidth - innerWidth"), 0)
        self.assertLessEqual(b.js("return document.documentElement.scrollHeight - innerHeight"), 0, "all of it fits")
        center = b.js("return [...document.querySelectorAll('.tile')].map(t => { const r = t.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })")

        def touch(*at):
            for n, (x, y) in enumerate(at):
                b.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchMove" if n else "touchStart", "touchPoints": [{"x": x, "y": y}]})
            b.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        touch(center[0])
        touch(center[3], center[4], center[5])   # a swipe
        states = b.js("return [...document.querySelectorAll('.tile')].map(t => t.dataset.state === 'marked')")
        self.assertEqual([n for n in range(15) if states[n]], [0, 3, 4, 5])
        marked = "no" if self.kind(query) == "outliers" else "yes"
        for n, m in enumerate(b.members()[1]):
            sent[query, m] = marked if states[n] else "no" if marked == "yes" else "yes"
        b.driver.find_element(By.CSS_SELECTOR, ".actions .main").click()
        b.next_card(query)
        b.settled()
        self.pictures(b)
        server.stop()
        self.assertEqual(self.said("phone"), sent)

    def pictures(self, b):
        folder = os.environ.get("PAL_KEEP_PICTURES")
        for scheme in ("light", "dark"):
            b.scheme(scheme)
            for width, height, touch in ((1280, 800, False), (820, 1100, False), (390, 844, True)):
                b.size(width, height, touch)
                self.assertLessEqual(b.js("return document.documentElement.scrollWidth - innerWidth"), 0, (scheme, width))
                contrast = b.js(CONTRAST)
                self.assertEqual([c for c in contrast if c[1] < 4.5], [], (scheme, width))
                if folder:
                    b.driver.save_screenshot(f"{folder}/card-{scheme}-{width}.png")
        b.scheme("light")

    def test_pictures_that_are_broken_or_late(self):
        """A stored image that cannot be read is marked broken by itself; a lost connection marks nothing."""
        with open(f"{self.folder}/idx/train-images-idx3-ubyte", "rb") as f:
            image = f.read()[16 + 8 * SIDE * SIDE:][:SIDE * SIDE]
        with open(f"{self.folder}/set.h5", "rb") as f:
            whole = f.read()
        at = whole.index(image)
        with open(f"{self.folder}/damaged.h5", "wb") as f:
            f.write(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1:])
        server, b = self.start("broken"), self.browsers["bob"]
        server.stop()
        path = f"{self.folder}/broken/config.yaml"
        with open(path) as f:
            config = f.read()
        with open(path, "w") as f:
            f.write(config.replace("set.h5", "damaged.h5"))
        server = self.start("broken", port=server.port)
        query, sent = b.open(server.links["bob"]), {}
        while 8 not in b.members()[1] or len(b.members()[1]) == 1:
            self.fill(b, query, sent)
            query = b.next_card(query)
        n = b.members()[1].index(8)
        b.wait(f"document.querySelectorAll('.tile')[{n}].dataset.state === 'broken'")
        self.assertEqual(b.js("return document.querySelectorAll('.tile[data-state=broken]').length"), 1)
        b.keys(" ")
        b.next_card(query)
        b.settled()
        server.kill()
        self.assertEqual(self.said("broken")[query, 8], "broken")
        # The next card's pictures are asked for while there is no server.
        late = b.js("const all = [...document.querySelectorAll('section img')]; all.forEach((i) => { i.src += '?late'; }); return all.length")
        self.assertGreater(late, 0)
        time.sleep(0.5)
        self.assertEqual(b.js("return document.querySelectorAll('section img').length"), late, "they are waited for")
        server = self.start("broken", port=server.port)
        b.wait("[...document.querySelectorAll('section img')].every((i) => i.complete && i.naturalWidth > 0)", what="the pictures, once the server is back")
        server.stop()

    def test_names_are_text(self):
        server, b = self.start("names"), self.browsers["bob"]
        b.open(server.links[EVIL])
        b.keys("y" if len(b.members()[1]) == 1 else " ")
        b.settled()
        b.keys("p")
        b.wait("document.querySelector('table') && document.querySelector('table').innerText.includes('onerror')", 20)
        self.assertEqual(b.js("return document.querySelectorAll('img[src=x]').length"), 0)
        server.stop()


def b_first(sent, query):
    """The member of the first tile: dictionaries keep the order in which tiles were noted."""
    return next(m for q, m in sent if q == query)


# The contrast of each element with text of its own to its background, as WCAG defines it.
CONTRAST = """
const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => { const f = [r, g, b].map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length >= 3 && c[3] !== 0) return c; } return [255, 255, 255]; };
return [...document.querySelectorAll('body *')].filter(e => e.offsetParent && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
  .map(e => { const a = light(parse(getComputedStyle(e).color)), b = light(behind(e)); return [e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 20), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)]; });
"""


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
