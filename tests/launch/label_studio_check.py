#!/usr/bin/env python3
"""The tasks of `pal ask --format label-studio` in the real package label-studio-sdk: its LabelInterface takes the config,
the tasks and annotations of them, and `pal answers import` reads those back. Not part of the test suite: it needs PyPI.

usage: python3 -m venv /tmp/ls && /tmp/ls/bin/pip install label-studio-sdk
       /tmp/ls/bin/python tests/launch/label_studio_check.py build/pal
"""
import json
import os
import random
import sys

from label_studio_sdk.label_interface import LabelInterface

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist"))
from run_case import CLASSES, RunCase  # noqa: E402


class Check(RunCase):
    def runTest(self):
        self.call("train", "c.yaml", "train.steps=2", "--run-dir", "run")
        self.call("ask", "run", "oracle.sampler=captcha", "label.question=Is this the same <patient>?", "label.instructions=Look & answer.",
                  "--n", "20", "--out", "tasks.json", "--format", "label-studio")
        with open(f"{self.folder}/tasks.xml") as f:
            interface = LabelInterface(f.read())
        interface.validate()
        with open(f"{self.folder}/tasks.json") as f:
            tasks = json.load(f)
        self.assertEqual(interface.get_control("same").to_name, ["pair"])
        done = []
        for n, task in enumerate(tasks):
            self.assertTrue(interface.validate_task({"id": n, **task}), task["data"].keys())
            same = task["data"]["template"] % CLASSES == task["data"]["member"] % CLASSES
            region = interface.get_control("same").label(label="yes" if same else "no")
            annotation = {"id": n, "completed_by": 1, "lead_time": random.random(), "result": [region._dict()]}
            self.assertTrue(interface.validate_annotation(annotation), annotation)
            self.assertFalse(interface.validate_annotation({**annotation, "result": [{**annotation["result"][0], "value": {"choices": ["perhaps"]}}]}))
            done.append({"id": n, **task, "annotations": [annotation]})
        with open(f"{self.folder}/done.json", "w") as f:
            json.dump(done, f)
        self.assertIn("20 answers recorded", self.call("answers", "import", "run", "done.json"))
        self.call("answers", "export", "run", "--out", "answers.json")
        with open(f"{self.folder}/answers.json") as f:
            for task in json.load(f):
                self.assertTrue(interface.validate_task({"id": task["id"], "data": task["data"]}))
                for annotation in task["annotations"]:
                    self.assertTrue(interface.validate_annotation(annotation), annotation)
        print("label-studio-sdk takes the config, 20 tasks and their annotations; pal reads them back")


if __name__ == "__main__":
    import unittest
    unittest.main(argv=sys.argv[:1])
