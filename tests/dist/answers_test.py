#!/usr/bin/env python3
"""Questions to people: runs that end while questions are unanswered, answers by files, undo, labels, and bad input.

usage: answers_test.py PAL [test names]     (standard library only)
"""
import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run_case import CLASSES, PAL, TRAIN, RunCase, metrics_so_far  # noqa: E402

PEOPLE = ["graph.labeled_fraction=0.05", "oracle.sampler=captcha", "oracle.every=2", "oracle.questions_per_round=9", "oracle.pool=60",
          "oracle.labeler=exchange"]


def label(sample):
    return sample % CLASSES


class Answers(RunCase):
    def questions(self, path):
        with open(f"{self.folder}/{path}") as f:
            return [json.loads(line) for line in f]

    def answers(self, questions, annotator="ann", wrong=()):
        for q in questions:
            for m in q["members"]:
                same = (label(m) == label(q["template"])) != (m in wrong)
                yield {"query": q["query"], "member": m, "answer": "yes" if same else "no", "annotator": annotator, "seconds": 1.5}

    def write_lines(self, name, entries):
        with open(f"{self.folder}/{name}", "w") as f:
            f.writelines((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in entries)
        return name

    def rows(self, run, sql):
        db = sqlite3.connect(f"{self.folder}/{run}/ledger.sqlite")
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def refused(self, *args, code=3):
        return self.call(*args, code=code)

    def test_a_run_ends_and_resumes_with_answers(self):
        """The whole story: exit 75, answers by file, the next job; equal to a run whose people were there all the time."""
        for ranks in (1, 2):
            run = f"leave{ranks}"
            rounds = 0
            for _ in range(12):
                out = self.train(run, *PEOPLE, "oracle.wait=exit", "train.steps=14", ranks=ranks, code=None)
                if self.code == 0:
                    break
                self.assertEqual(self.code, 75, out)
                self.assertIn("questions wait for answers", out)
                rounds += 1
                questions = self.questions(f"{run}/questions.jsonl")
                self.assertEqual(sum(len(q["members"]) for q in questions), 9)
                self.assertEqual(len(questions[0]["member_names"]), len(questions[0]["members"]))
                out = self.call("answers", "import", run, self.write_lines("a.jsonl", self.answers(questions)))
                self.assertIn("9 answers recorded, 0 withdrawn, 0 known before; 0 questions are unanswered", out)
            self.assertEqual(self.code, 0, out)
            self.assertGreaterEqual(rounds, 3)
            asked = self.rows(run, "select count(*), count(distinct min(template, sample) || '-' || max(template, sample)) from members join queries on id = query")
            self.assertEqual(asked[0][0], asked[0][1], "nothing is asked twice")
        one, two = (self.weights(f"leave{ranks}", 14) for ranks in (1, 2))
        self.assertLessEqual(max(abs(a - b) for key in one for a, b in zip(one[key], two[key])), 1e-8)
        self.assertEqual(self.rows("leave1", "select query, j, answer, effective_step from decisions order by id"),
                         self.rows("leave2", "select query, j, answer, effective_step from decisions order by id"))
        # Without an answer the next start ends at once.
        self.train("leave3", *PEOPLE, "oracle.wait=exit", code=75)
        before = len(self.metrics("leave3"))
        self.train("leave3", *PEOPLE, "oracle.wait=exit", code=75)
        self.assertEqual(len(self.metrics("leave3")), before)

    def train(self, name, *args, ranks=2, code=0, config="c.yaml"):
        done = subprocess.run([PAL, "train", config, *args, "--run-dir", name, "--np", str(ranks)], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        self.code = done.returncode
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def test_answers_after_the_end_are_used_by_a_longer_run(self):
        self.train("ended", *PEOPLE, "train.steps=6")
        questions = self.questions("ended/questions.jsonl")
        self.call("answers", "import", "ended", self.write_lines("late.jsonl", self.answers(questions)))
        count = sum(len(q["members"]) for q in questions)
        self.assertIn(f"this run is finished: 6 steps; {count} answers wait: give train.steps=10 or more", self.train("ended", *PEOPLE, "train.steps=6"))
        self.train("ended", *PEOPLE, "train.steps=10")
        lines = [m for m in self.metrics("ended") if "loss" in m]
        self.assertEqual((lines[5]["queries"], lines[-1]["queries"]), (0, count))

    def test_ask_answer_undo_labels(self):
        self.train("plain", "train.steps=5", "graph.labeled_fraction=0.05")
        out = self.call("ask", "plain", "oracle.sampler=captcha", "--n", "20", "--out", "q.jsonl")
        self.assertIn("20 questions", out)
        self.assertRegex(out, r"(?m)^embed  (\d+)/\1  100 %")   # it may take long
        questions = self.questions("q.jsonl")
        members = [m for q in questions for m in q["members"]]
        self.assertEqual(len(members), 20)
        again = self.call("ask", "plain", "oracle.sampler=captcha", "--n", "20", "--out", "q2.jsonl")
        self.assertIn("20 questions", again)
        self.assertFalse(set(members) & {m for q in self.questions("q2.jsonl") for m in q["members"]}, "asked before, and open")
        self.call("answers", "import", "plain", self.write_lines("p.jsonl", self.answers(questions, "ann")))
        self.call("answers", "import", "plain", self.write_lines("p2.jsonl", self.answers(questions, "bob", wrong=members[:2])))
        out = self.call("answers", "show", "plain")
        for word in ("ann", "bob", "0.900", "20 open", "Fleiss", "Cohen"):
            self.assertIn(word, out)
        # Exported and imported again, in every format.
        for name, count in (("x.jsonl", 40), ("x.csv", 40), ("x.json", 40)):
            self.assertIn(f"{count} answers", self.call("answers", "export", "plain", "--out", name))
            known = self.call("answers", "import", "plain", name)
            self.assertIn("0 answers recorded", known)
            self.assertIn(f"{count} known before", known)
        edges = self.call("answers", "export", "plain", "--out", "e.csv", "--format", "edges")
        self.assertIn("18 edges", edges)   # two people give different answers to two questions
        self.call("answers", "export", "plain", "--out", "e.h5")
        self.assertIn("18", self.call("graph", "info", "e.h5"))
        # Undo: superseded, and the majority changes.
        self.assertIn("2 answers withdrawn", self.call("answers", "undo", "plain", "--last", "2", "--annotator", "ann"))
        taken = self.rows("plain", "select uuid from answers where superseded_by is not null")[0][0]
        self.assertIn("0 answers withdrawn, 1 withdrawn before", self.call("answers", "undo", "plain", "--uuid", taken))
        self.assertEqual(self.rows("plain", "select count(*) from answers where superseded_by is not null")[0][0], 2)
        self.assertEqual(self.rows("plain", "select count(*) from answers")[0][0], 42)
        # Labels.
        out = self.call("labels", "plain", "--out", "labels.csv")
        self.assertRegex(out, r"(?m)^predict  (\d+)/\1  100 %")
        with open(f"{self.folder}/labels.csv") as f:
            labels = list(csv.DictReader(f))
        self.assertEqual(len(labels), TRAIN)
        hows = {row["how"] for row in labels}
        self.assertEqual(hows, {"given", "asked", "predicted"})
        for row in labels:
            if row["how"] != "predicted":
                self.assertEqual(row["class"], str(label(int(row["id"]))), row)
                self.assertGreater(float(row["confidence"]), 0.4)
            self.assertEqual(bool(row["answers"]), row["how"] == "asked")
        right = sum(row["class"] == str(label(int(row["id"]))) for row in labels)
        self.assertGreater(right, 0.5 * TRAIN)
        self.call("labels", "plain", "--known-only", "--out", "known.csv")
        with open(f"{self.folder}/known.csv") as f:
            self.assertIn("unknown", {row["how"] for row in csv.DictReader(f)})
        named = self.write_lines("names.csv", [f"{int(row['id'])},my {row['class']}" for row in labels if row["how"] == "given"][:1])
        self.call("labels", "plain", "--names", named, "--known-only", "--out", "named.csv")
        with open(f"{self.folder}/named.csv") as f:
            self.assertTrue(any(row["class"].startswith("my ") for row in csv.DictReader(f)))

    def test_a_round_without_a_question_prints_the_reason(self):
        self.train("few", "train.steps=2", "graph.labeled_fraction=0.05", ranks=1)
        ask = ["ask", "few", "oracle.sampler=captcha", "oracle.class_guess=none", "oracle.members=90", "--n", "500", "--out", "q.jsonl"]
        rounds = 0
        while "next: pal label few" in self.call(*ask):
            rounds += 1
            self.assertLessEqual(rounds, CLASSES)
            asked = self.questions("q.jsonl")
            # Until they are answered no other question is asked; exit code 75: the same command may ask later.
            out = self.call(*ask, code=75)
            self.assertIn(f"0 questions: every remaining question has been asked: {sum(len(q['members']) for q in asked)} are unanswered", out)
            self.assertEqual(self.questions("q.jsonl"), [])
            out = self.call("ask", "few", "oracle.sampler=captcha", "oracle.budget=1", "--out", "x.jsonl")
            self.assertIn("0 questions: the budget of 1 questions is spent (oracle.budget)", out)
            self.call("answers", "import", "few", self.write_lines("f.jsonl", self.answers(asked)))
        self.assertGreaterEqual(rounds, 2)
        # Every pair is answered or inferred.
        self.assertIn("0 questions: every pair is answered or inferred", self.call(*ask))
        self.assertIn("0 questions: every pair is answered or inferred", self.call("ask", "few", "oracle.sampler=ssl", "--out", "x.jsonl"))
        # A budget that is nearly spent cuts the round.
        self.train("cut", "train.steps=2", "graph.labeled_fraction=0.05", ranks=1)
        self.assertIn("7 questions", self.call("ask", "cut", "oracle.sampler=random", "oracle.budget=7", "--n", "20", "--out", "x.jsonl"))
        self.assertIn("0 questions: the sampler ssl never asks", self.call("ask", "cut", "oracle.sampler=ssl", "--out", "x.jsonl"))
        # While a run trains with it, questions of `pal ask` may stay unanswered without a warning.
        silent = ["graph.labeled_fraction=0.05", "oracle.sampler=ssl", "oracle.labeler=exchange", "oracle.every=2", "oracle.questions_per_round=9"]
        self.train("silent", *silent, "train.steps=2", ranks=1)
        self.call("ask", "silent", "oracle.sampler=random", "--n", "20", "--out", "x.jsonl")
        self.assertNotIn("no question is asked", self.train("silent", *silent, "train.steps=8", ranks=1))

    def test_labels_without_full_deduction(self):
        """One step of deduction: classes are stars, a wrong answer moves one sample; the label of a template names its class."""
        for deduction in ("once", "off"):
            run = f"careful-{deduction}"
            self.train(run, "train.steps=2", "graph.labeled_fraction=0.05", f"graph.deduction={deduction}", ranks=1)
            self.call("ask", run, "oracle.sampler=captcha", "--n", "40", "--out", "q.jsonl")
            questions = self.questions("q.jsonl")
            right = {m: label(q["template"]) == label(m) for q in questions for m in q["members"]}
            wrong = [m for m in right if not right[m]][:1]
            self.call("answers", "import", run, self.write_lines("c.jsonl", self.answers(questions, wrong=wrong)))
            self.call("labels", run, "--known-only", "--out", "labels.csv")
            with open(f"{self.folder}/labels.csv") as f:
                labels = {int(row["id"]): row for row in csv.DictReader(f)}
            spoilt = [s for s, row in labels.items() if row["how"] != "unknown" and row["class"] != str(label(s))]
            self.assertEqual(spoilt, wrong, deduction)
            asked = [s for s, row in labels.items() if row["how"] == "asked"]
            self.assertEqual(sorted(asked), sorted([m for m in right if right[m]] + wrong))
            self.assertTrue(all(labels[s]["answers"] for s in asked))
            self.call("labels", run, "--known-only", "--name", "kind {}", "--names", self.write_lines("names.csv", ["sample,name", f"{wrong[0]},odd"]), "--out", "named.csv")
            with open(f"{self.folder}/named.csv") as f:
                named = {int(row["id"]): row["class"] for row in csv.DictReader(f)}
            self.assertEqual(named[wrong[0]], "odd")
            self.assertEqual({s for s in named if named[s] == "odd"}, {s for s in labels if labels[s]["class"] == labels[wrong[0]]["class"] and labels[s]["class"]})

    def test_answers_are_submitted_to_a_running_job(self):
        job = subprocess.Popen([PAL, "train", "c.yaml", *PEOPLE, "train.steps=100000", "checkpoint.every=100000", "--run-dir", "busy"], cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            path = f"{self.folder}/busy/questions.jsonl"
            for _ in range(600):
                if os.path.exists(path) and os.path.getsize(path) > 0:
                    break
                time.sleep(0.05)
            questions = self.questions("busy/questions.jsonl")
            out = self.call("answers", "import", "busy", self.write_lines("b.jsonl", self.answers(questions)))
            self.assertIn("9 answers submitted; process", out)
            self.assertIn("reads them at its next round", out)
            self.one_sentence(self.refused("answers", "show", "busy"), "another process writes", "process")
            for _ in range(600):
                if not any(name.endswith(".jsonl") for name in os.listdir(f"{self.folder}/busy/inbox")) and self.questions("busy/questions.jsonl") != questions:
                    break
                time.sleep(0.05)
            self.assertNotEqual(self.questions("busy/questions.jsonl"), questions, "the next ones are out")
            first = questions[0]
            said = next(iter(self.answers([first])))
            self.call("answers", "undo", "busy", "--uuid", f"q{first['query']}-m{said['member']}-{said['answer']}-ann")
            time.sleep(0.5)
            # A job that is suspended for more than a minute keeps the right to write, and continues.
            job.send_signal(signal.SIGSTOP)
            os.utime(f"{self.folder}/busy/ledger.sqlite.writer", (time.time() - 100,) * 2)
            self.one_sentence(self.refused("answers", "show", "busy"), "another process writes", "process")
            before = len(metrics_so_far(f"{self.folder}/busy"))
            job.send_signal(signal.SIGCONT)
            for _ in range(600):
                if len(metrics_so_far(f"{self.folder}/busy")) > before + 20:   # rounds of two steps, which write the ledger
                    break
                time.sleep(0.05)
            self.assertGreater(len(metrics_so_far(f"{self.folder}/busy")), before + 20)
            self.assertIsNone(job.poll())
        finally:
            job.send_signal(signal.SIGKILL)
            job.wait()
            job.stdout.close()
        self.assertGreaterEqual(self.rows("busy", "select count(*) from decisions")[0][0], 9)
        out = self.call("answers", "show", "busy")   # the lease of the killed process is taken over
        self.assertIn("withdrawn", out)

    def test_warnings_hold_no_control_characters(self):
        """Of a file in the inbox, a damaged checkpoint, the holder of a lease, and what a run recorded."""
        self.train("odd", *PEOPLE, "train.steps=4", ranks=1)
        os.makedirs(f"{self.folder}/odd/inbox", exist_ok=True)
        for command in (["ask", "odd", "oracle.sampler=random", "--n", "2", "--out", "odd.jsonl"],
                        ["train", "c.yaml", *PEOPLE, "train.steps=8", "--run-dir", "odd"]):
            with open(f"{self.folder}/odd/inbox/{command[0]}\x1b]0;x\x07.jsonl", "w") as f:
                f.write('{"undo": "\\u001b[2J"}\n')
            out = self.call(*command)
            self.assertRegex(out, r"warning: .*" + command[0] + r"\\x1b\]0;x\\x07\.jsonl; the first: ")
            self.assertIn(r"\x1b[2J", out)
            self.assertNotIn("\x1b", out)
        run = "odd\x1b[2J"
        os.rename(f"{self.folder}/odd", f"{self.folder}/{run}")
        with open(f"{self.folder}/{run}/checkpoints/step-8/state.json", "w") as f:
            f.write("{}")
        out = self.call("train", "c.yaml", *PEOPLE, "train.steps=12", "--run-dir", run)
        self.assertRegex(out, r"warning: .*odd\\x1b\[2J/checkpoints/step-8")
        self.assertNotIn("\x1b", out)
        with open(f"{self.folder}/{run}/metrics.jsonl", "a") as f:
            f.write('{"step": 13, "warning": "\\u001b[2J of a line"}\n')
        with open(f"{self.folder}/{run}/machine.json", "w") as f:
            json.dump([{"pal": "1", "torch": "\x1b[2J"}, {"pal": "2", "torch": "\x07"}], f)
        lease = f"{self.folder}/{run}/ledger.sqlite.writer"
        said = self.write_lines("odd-answers.jsonl", [])
        for command, code, word in ((["watch", run], 0, r"\x1b[2J of a line"), (["runs", "."], 0, r"LibTorch \x1b[2J"),
                                    (["report", run, "--out", "odd.html"], 0, r"LibTorch \x1b[2J"),
                                    (["answers", "import", run, said], 0, r"on host \x1b[2J"), (["answers", "undo", run, "--uuid", "u"], 0, r"on host \x1b[2J"),
                                    (["answers", "show", run], 3, r"on host \x1b[2J")):
            if command[0] == "answers":
                with open(lease, "w") as f:
                    f.write("\x1b[2J 1 1 1\n")
            out = self.call(*command, code=code)
            self.assertIn(word, out, command)
            self.assertNotIn("\x1b", out, command)

    def test_each_bad_input_gets_one_sentence(self):
        self.train("bad", *PEOPLE, "oracle.wait=exit", code=75)
        questions = self.questions("bad/questions.jsonl")
        good = list(self.answers(questions))
        first = good[0]
        wrong = [
            ({**first, "query": 999}, "was not asked"), ({**first, "member": 100000}, "was not asked"), ({**first, "template": 89}, "the template of this query"),
            ({**first, "at": time.time() + 1e6}, "from the future"), ('{"query": 1,', "not a JSON object"), ({**first, "answer": "perhaps"}, "perhaps"),
            ({**first, "cost": -1}, "cost"), ({"query": 1, "answer": "yes"}, "member"), ({"undo": "absent"}, "absent"),
            ({"undo": "\x1b]0;title\x07"}, r"\x1b]0;title\x07"),   # no control characters
        ]
        for entry, word in wrong:
            out = self.refused("answers", "import", "bad", self.write_lines("w.jsonl", [good[1], entry]))
            self.assertIn(word, out)
            self.one_sentence(out, "refused answers", "1")
            with open(f"{self.folder}/w.jsonl.refused") as f:
                self.assertEqual(len(f.readlines()), 1)
        self.assertEqual(self.rows("bad", "select count(*) from answers")[0][0], 1, "the good one, once")
        other = {**good[1], "answer": "unsure"}
        self.assertIn("second answer of ann", self.refused("answers", "import", "bad", self.write_lines("w.jsonl", [other])))
        self.one_sentence(self.refused("answers", "show", "nowhere", code=2), "this run folder does not exist", "nowhere")
        self.train("no-oracle", "train.steps=2", ranks=1)
        self.one_sentence(self.refused("answers", "show", "no-oracle"), "no ledger")
        self.one_sentence(self.call("ask", "no-oracle", "--out", "x", code=2), "oracle.sampler")
        self.one_sentence(self.call("ask", "bad", "train.seed=3", "--out", "x", code=2), "train.seed=3")
        self.one_sentence(self.call("answers", "undo", "bad", code=2), "--uuid")
        # A ledger of another run, of a newer program, damaged, read-only.
        shutil.copytree(f"{self.folder}/bad", f"{self.folder}/bad2")
        db = sqlite3.connect(f"{self.folder}/bad2/ledger.sqlite")
        db.execute("update run set id = 'another'")
        db.commit()
        db.close()
        self.one_sentence(self.train("bad2", *PEOPLE, "oracle.wait=exit", ranks=1, code=3), "another run", "another")
        db = sqlite3.connect(f"{self.folder}/bad2/ledger.sqlite")
        db.execute("pragma user_version = 9")
        db.commit()
        db.close()
        self.one_sentence(self.refused("answers", "show", "bad2"), "schema: 9", "newer PAL")
        # Another process has it open in sqlite3, in a transaction.
        db = sqlite3.connect(f"{self.folder}/bad/ledger.sqlite")
        db.execute("begin exclusive")
        self.one_sentence(self.refused("answers", "show", "bad"), "locked", "ledger.sqlite")
        db.rollback()
        db.close()
        self.call("answers", "show", "bad")
        with open(f"{self.folder}/bad2/ledger.sqlite", "r+b") as f:
            f.write(b"nonsense" * 4)
        self.one_sentence(self.refused("answers", "show", "bad2"), "not a database")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
