#!/usr/bin/env python3
"""pal label from the outside, without a browser: what it refuses, and answers given beside a job that trains.

usage: label_cli_test.py PAL [test names]     (standard library only)
"""
import base64
import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
import unittest
import uuid
from xml.etree import ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data_case import png  # noqa: E402
from label_case import Server, rows  # noqa: E402
from run_case import CLASSES, PAL, RunCase  # noqa: E402

PEOPLE = ["graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2", "oracle.questions_per_round=9", "oracle.pool=60", "oracle.labeler=exchange"]


class Client:
    """A browser's part, by hand."""

    def __init__(self, link):
        self.host = link.split("/")[2]
        status, headers, _ = self.ask("POST", "/api/enter", {"token": link[link.index("=") + 1:]})
        assert status == 200, status
        self.cookie = headers["Set-Cookie"].split(";")[0]

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.host, timeout=20)
        headers = {"Cookie": getattr(self, "cookie", ""), "Origin": f"http://{self.host}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, response.headers, text

    def cards(self):
        return json.loads(self.ask("GET", "/api/questions?n=3")[2])["cards"]

    def answer(self, card):
        verdicts = [[m, "yes" if m % CLASSES == card["template"] % CLASSES else "no"] for m in card["members"]]
        status, _, text = self.ask("POST", "/api/answer", {"uuid": uuid.uuid4().hex, "query": card["query"], "ticket": card["ticket"], "answers": verdicts, "seconds": 1})
        assert status == 200, text
        return {(card["query"], m): v for m, v in verdicts}


class LabelCli(RunCase):
    def test_what_is_refused(self):
        self.assertIn("no such run folder or config", self.call("label", "nowhere", code=2))
        self.assertIn("oracle.sampler=none", self.call("label", "c.yaml", "--run-dir", "none", "--port", "0", code=2))
        with open(f"{self.folder}/twice", "w") as f:
            f.write("ann\nann\n")
        self.assertIn("appears twice", self.call("label", "c.yaml", "oracle.sampler=random", "--run-dir", "none", "--port", "0", "--users", "twice", code=2))
        self.assertIn("--gold", self.call("label", "c.yaml", "oracle.sampler=random", "graph.labeled_fraction=0", "--run-dir", "bare", "--port", "0", "--gold", "3", code=2))
        server = Server(PAL, self.folder, "c.yaml", "oracle.sampler=random", "--run-dir", "one")
        try:
            second = self.call("label", "one", "--port", "0", code=3)
            self.assertIn("another process writes", second)
            self.assertIn(f"process {server.process.pid}", second)
        finally:
            server.stop()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            said = self.call("label", "one", "--port", str(taken.getsockname()[1]), code=2)
            self.assertIn("in use", said)
            self.assertIn("--port", said)

    def test_links_are_in_a_file_of_the_owner_alone(self):
        """A log, which others may read, holds no link; a preview of one (HEAD, GET) does not use it up."""
        with open(f"{self.folder}/two", "w") as f:
            f.write("ann owner\nbob\n")
        os.makedirs(f"{self.folder}/links/inbox/odd\x1b]0;x\x07.jsonl")   # a folder with control characters in its name
        server = Server(PAL, self.folder, "c.yaml", "oracle.sampler=random", "--run-dir", "links", "--users", "two")
        try:
            self.assertEqual(os.stat(server.links_file).st_mode & 0o777, 0o600)
            first = server.links
            self.assertEqual(list(first), ["ann", "bob"])
            host, path = f"127.0.0.1:{server.port}", first["bob"][len(f"http://127.0.0.1:{server.port}"):]
            self.assertTrue(first["bob"].startswith(f"http://{host}/?token="), first)
            for method in ("HEAD", "GET"):
                connection = http.client.HTTPConnection(host, timeout=20)
                connection.request(method, path)
                response = connection.getresponse()
                self.assertEqual((response.status, response.headers["Set-Cookie"]), (200, None))
                connection.close()
            Client(first["bob"])
            self.assertEqual(server.links["ann"], first["ann"])
            self.assertNotEqual(server.links["bob"], first["bob"], "the next link")
            self.assertEqual(os.stat(server.links_file).st_mode & 0o777, 0o600)
            self.assertIn("bob signed in from 127.0.0.1", server.log())
            self.assertNotIn("token", server.said + server.log())
            end = time.time() + 20
            while "warning: submitted answers are passed over" not in server.log() and time.time() < end:
                time.sleep(0.05)
            self.assertIn(r"odd\x1b]0;x\x07.jsonl", server.log())
            self.assertNotIn("\x1b", server.log())
        finally:
            server.stop()

    def test_the_use_of_answers_is_printed(self):
        server = Server(PAL, self.folder, "c.yaml", "oracle.sampler=random", "--run-dir", "said")
        server.stop()
        self.assertIn("graph.kind=mixed gives weight to answers yes only", server.said)
        Server(PAL, self.folder, "said", "oracle.votes=2").stop()   # two people; oracle.annotators counts simulated ones
        two = self.call("label", "c.yaml", "oracle.sampler=random", "oracle.votes=2", "--run-dir", "two", "--port", "0", code=2)
        self.assertIn("where people answer, set oracle.labeler=exchange", two)
        out = self.call("train", "c.yaml", *PEOPLE[1:], "graph.labeled_fraction=0", "train.steps=4", "--run-dir", "templates")
        self.assertIn("mixed, 3 labels known (oracle.templates=given takes one label of each class)", out)
        self.assertNotIn("in the batch; raise", out)   # relations come with the answers
        self.assertIn("graph.kind=mixed gives weight to answers yes only", out)
        self.assertIn("9 in 1 round, 9 open", self.call("answers", "show", "templates"))

    def test_label_studio_export_and_import(self):
        """Questions as tasks with pictures and words; what Label Studio exports of them is read back."""
        self.call("train", "c.yaml", "train.steps=2", "--run-dir", "studio")
        words = ["label.question=Is this the same <patient>?", "label.instructions=Look at the teeth & ears."]
        out = self.call("ask", "studio", "oracle.sampler=captcha", *words, "--n", "7", "--out", "tasks.json", "--format", "label-studio")
        self.assertIn("tasks.xml", out)
        with open(f"{self.folder}/tasks.json") as f:
            tasks = json.load(f)
        self.assertEqual(len(tasks), 7)
        tags = {e.get("name"): e for e in ElementTree.parse(f"{self.folder}/tasks.xml").iter() if e.get("name")}
        values = [e.get("value")[1:] for e in ElementTree.parse(f"{self.folder}/tasks.xml").iter() if (e.get("value") or "").startswith("$")]
        self.assertEqual(tags["same"].get("toName"), "pair")
        self.assertEqual([c.get("value") for c in tags["same"]], ["yes", "no", "unsure", "skip", "broken"])
        for task in tasks:
            data = task["data"]
            self.assertEqual([v for v in values if v not in data], [])
            self.assertEqual((data["question"], data["instructions"]), ("Is this the same <patient>?", "Look at the teeth & ears."))
            for name in ("template", "member"):
                kind, _, coded = data[f"{name}_picture"].partition(";base64,")
                self.assertEqual(kind, "data:image/png")
                self.assertTrue(base64.b64decode(coded, validate=True).startswith(b"\x89PNG"))
                self.assertTrue(data[f"{name}_name"])
        # As Label Studio exports it: its own ids, people by number, choices by the names of the interface.
        done = [{"id": 500 + n, "data": t["data"], "annotations": [{"id": 900 + n, "completed_by": 1, "lead_time": 2.5, "was_cancelled": False,
                 "result": [{"id": "x", "from_name": "same", "to_name": "pair", "type": "choices", "value": {"choices": ["no" if n else "yes"]}}]}]} for n, t in enumerate(tasks)]
        with open(f"{self.folder}/done.json", "w") as f:
            json.dump(done, f)
        self.assertIn("7 answers recorded", self.call("answers", "import", "studio", "done.json"))
        stands = rows(f"{self.folder}/studio/ledger.sqlite", "select query, j, answer, annotator, seconds from answers")
        self.assertEqual({(q, j, a) for q, j, a, _, _ in stands}, {(t["data"]["query"], t["data"]["member"], "no" if n else "yes") for n, t in enumerate(tasks)})
        self.assertEqual({(who, s) for *_, who, s in stands}, {("1", 2.5)})
        self.call("answers", "export", "studio", "--out", "out.json")
        with open(f"{self.folder}/out.json") as f:
            exported = json.load(f)
        self.assertEqual({t["data"]["member_picture"] for t in exported}, {t["data"]["member_picture"] for t in tasks})
        self.assertIn("0 answers recorded, 0 withdrawn, 7 known before", self.call("answers", "import", "studio", "out.json"))

    def test_features_alone(self):
        """Without pictures and without a label: numbers are shown, and classes are found on the way."""
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (40, 3), }"
        header += " " * (63 - (10 + len(header)) % 64) + "\n"
        values = [1.0 if c == i % 3 else 0.01 * i for i in range(40) for c in range(3)]
        with open(f"{self.folder}/f.npy", "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<120f", *values))
        with open(f"{self.folder}/f.yaml", "w") as f:
            f.write("data: {train: f.npy}\nmodel: {backbone: none, projector: [4]}\ngraph: {kind: mixed, labeled_fraction: 0}\ntrain: {steps: 2, global_batch: 8}\noptim: {lr: 0.1}\n")
        server = Server(PAL, self.folder, "f.yaml", "oracle.sampler=captcha", "--run-dir", "features")
        try:
            client, end = Client(server.links["me"]), time.time() + 60
            while not client.cards():
                self.assertLess(time.time(), end, server.log())
                time.sleep(0.1)
            self.assertFalse(json.loads(client.ask("GET", "/api/questions")[2])["images"])
            self.assertEqual(client.ask("GET", "/image/3")[0], 404)
            client.answer(client.cards()[0])
        finally:
            server.stop()
        said = self.call("ask", "features", "oracle.sampler=captcha", "--out", "t.json", "--format", "label-studio", code=2)
        self.assertIn("--thumbnails", said)

    def test_jpeg_files_before_training(self):
        """The pixels choose the questions where nothing is trained."""
        for i in range(24):
            os.makedirs(f"{self.folder}/photos", exist_ok=True)
            with open(f"{self.folder}/photos/{i:02}.png", "wb") as f:
                f.write(png(12, 12 + i % 2, 80 * (i % 3), seed=i))
        self.call("data", "import", "images", "photos", "photos.h5")
        with open(f"{self.folder}/p.yaml", "w") as f:
            f.write("data: {train: photos.h5, size: 8}\nmodel: {backbone: convnet, widths: [4], projector: [4]}\ngraph: {kind: mixed, labeled_fraction: 0}\ntrain: {steps: 2, global_batch: 8}\noptim: {lr: 0.1}\n")
        server = Server(PAL, self.folder, "p.yaml", "oracle.sampler=uncertainty", "oracle.templates=discover", "--run-dir", "before")
        try:
            client, end = Client(server.links["me"]), time.time() + 60
            while not client.cards():
                self.assertLess(time.time(), end, server.log())
                time.sleep(0.1)
        finally:
            server.stop()

    def test_beside_a_job(self):
        """The job asks, people answer, the job trains with their answers; the page never writes its ledger."""
        with open(f"{self.folder}/train.log", "w") as log:
            job = subprocess.Popen([PAL, "train", "c.yaml", "graph.labeled_fraction=0.2", *PEOPLE[1:], "train.steps=100000", "checkpoint.every=100000", "--run-dir", "busy"], cwd=self.folder, stdout=log, stderr=log)
        try:
            questions = f"{self.folder}/busy/questions.jsonl"
            end = time.time() + 60
            while not (os.path.exists(questions) and os.path.getsize(questions) > 0):
                self.assertLess(time.time(), end, "no questions")
                time.sleep(0.1)
            server = Server(PAL, self.folder, "busy", "--gold", "1", "--gold-every", "2")
            self.assertIn("through busy/inbox", server.said)
            client, sent, end = Client(server.links["me"]), {}, time.time() + 60
            while len(sent) < 25:   # of three rounds: a round asks when the one before is answered
                self.assertLess(time.time(), end, f"{len(sent)} answers; {server.log()}")
                for card in client.cards():
                    sent.update(client.answer(card))
                time.sleep(0.05)
            self.assertGreaterEqual(json.loads(client.ask("GET", "/api/standing")[2])["trained_on"], 0)
            server.stop()
        finally:
            job.terminate()
            job.wait(timeout=60)
        self.call("answers", "show", "busy")   # records the answers that the job had not read
        said = {(q, j): a for q, j, a in rows(f"{self.folder}/busy/ledger.sqlite", "select query, j, answer from answers")}
        gold = {key for key in sent if key[0] >= 2**40}
        self.assertGreater(len(gold), 0)
        self.assertEqual(said, {key: sent[key] for key in sent if key not in gold}, "gold questions belong to the page")
        used = rows(f"{self.folder}/busy/ledger.sqlite", "select count(*) from decisions")[0][0]
        self.assertGreaterEqual(used, 18, "training used them")

    def test_between_rounds_and_by_itself(self):
        """On a config alone: the page asks round after round, within the budget, and pal train uses the answers."""
        ask = ["graph.labeled_fraction=0.2", *PEOPLE[1:-1], "oracle.questions_per_round=30", "oracle.budget=60"]
        server = Server(PAL, self.folder, "c.yaml", *ask, "--run-dir", "alone", "--gold", "1")
        try:
            client, sent, end = Client(server.links["me"]), {}, time.time() + 60
            while len(sent) < 60:   # gold among them
                self.assertLess(time.time(), end, f"{len(sent)} answers; {server.log()}")
                for card in client.cards():
                    sent.update(client.answer(card))
                time.sleep(0.05)
            while "no question is asked: the budget of 60 questions is spent (oracle.budget)" not in server.log():
                self.assertLess(time.time(), end, server.log())
                time.sleep(0.1)
            self.assertEqual(server.log().count("no question is asked"), 1, server.log())
            counts = re.findall(r"asked (\d+) more questions", server.log())
        finally:
            server.stop()   # it holds the ledger until then
        asked = rows(f"{self.folder}/alone/ledger.sqlite", "select count(*) from members join queries on id = query where sampler <> 'gold'")[0][0]
        self.assertEqual(sum(map(int, counts)), asked)
        rounds = rows(f"{self.folder}/alone/ledger.sqlite", "select count(distinct round) from queries where sampler <> 'gold'")[0][0]
        self.assertGreaterEqual(rounds, 2)
        self.assertEqual(rows(f"{self.folder}/alone/ledger.sqlite", "select count(*) from members")[0][0], 60)
        self.call("train", "c.yaml", *ask, "--run-dir", "alone")
        self.assertGreater(rows(f"{self.folder}/alone/ledger.sqlite", "select count(*) from decisions")[0][0], 40)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
