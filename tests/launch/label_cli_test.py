#!/usr/bin/env python3
"""pal label from the outside, without a browser: what it refuses, and answers given beside a job that trains.

usage: label_cli_test.py PAL [test names]     (standard library only)
"""
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import time
import unittest
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data_case import png  # noqa: E402
from label_case import Server, rows  # noqa: E402
from run_case import CLASSES, PAL, RunCase  # noqa: E402

PEOPLE = ["graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2", "oracle.questions_per_round=9", "oracle.pool=60", "oracle.labeler=exchange"]


class Client:
    """A browser's part, by hand."""

    def __init__(self, link):
        self.host = link.split("/")[2]
        status, headers, _ = self.ask("GET", link[link.index("/?"):])
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
        """The job asks, people answer, the job goes on with their answers; the page never writes its ledger."""
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
        self.call("answers", "show", "busy")   # takes in what the job had not
        said = {(q, j): a for q, j, a in rows(f"{self.folder}/busy/ledger.sqlite", "select query, j, answer from answers")}
        gold = {key for key in sent if key[0] >= 2**40}
        self.assertGreater(len(gold), 0)
        self.assertEqual(said, {key: sent[key] for key in sent if key not in gold}, "gold is the page's own")
        used = rows(f"{self.folder}/busy/ledger.sqlite", "select count(*) from decisions")[0][0]
        self.assertGreaterEqual(used, 18, "training took them in")

    def test_between_rounds_and_by_itself(self):
        """On a config alone: the page asks round after round, within the budget, and pal train goes on with the answers."""
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
        finally:
            server.stop()
        rounds = rows(f"{self.folder}/alone/ledger.sqlite", "select count(distinct round) from queries where sampler <> 'gold'")[0][0]
        self.assertGreaterEqual(rounds, 2)
        self.assertEqual(rows(f"{self.folder}/alone/ledger.sqlite", "select count(*) from members")[0][0], 60)
        self.call("train", "c.yaml", *ask, "--run-dir", "alone")
        self.assertGreater(rows(f"{self.folder}/alone/ledger.sqlite", "select count(*) from decisions")[0][0], 40)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
