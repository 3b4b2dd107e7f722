#!/usr/bin/env python3
"""The tasks of `pal ask --format label-studio` in the real Label Studio. Its server takes the labeling interface and the
tasks, annotations are made through its API, and `pal answers import` reads its export back. Its SDK checks the same
files, and those of `pal answers export`. Not part of the test suite: it needs PyPI; without the packages it is skipped.

usage: python3 -m venv /tmp/ls && /tmp/ls/bin/pip install label-studio
       /tmp/ls/bin/python tests/launch/label_studio_check.py build/pal
"""
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
import unittest

try:
    import requests
    from label_studio_sdk.label_interface import LabelInterface
except ImportError as error:
    print(f"skipped: {error}; pip install label-studio")
    sys.exit(0)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist"))
from run_case import CLASSES, RunCase  # noqa: E402

SERVER = os.path.join(os.path.dirname(sys.executable), "label-studio")
ACCOUNT = {"email": "owner@example.org", "password": "pal-label-studio"}


def is_same(data):
    return data["template"] % CLASSES == data["member"] % CLASSES


class LabelStudio:
    """A server with its own folder, and a browser's session in it."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = open(f"{folder}/server.log", "w")
        command = [SERVER, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(self.port), "--data-dir", f"{folder}/server",
                   "--username", ACCOUNT["email"], "--password", ACCOUNT["password"]]
        environment = {**os.environ, "HOME": folder, "LABEL_STUDIO_COLLECT_ANALYTICS": "false", "LABEL_STUDIO_LATEST_VERSION_CHECK": "false"}
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        self.session = requests.Session()
        self.sign_in(time.time() + 300)

    def sign_in(self, end):
        while True:
            try:
                page = self.session.get(f"{self.address}/user/login", timeout=10)
                if page.status_code == 200:
                    break
            except requests.RequestException:
                pass
            assert time.time() < end and self.process.poll() is None, "the server does not start: " + self.log.name
            time.sleep(0.5)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text).group(1)
        self.session.post(f"{self.address}/user/login", data={**ACCOUNT, "csrfmiddlewaretoken": token}, headers={"Referer": self.address}, timeout=30)

    def ask(self, method, path, body=None):
        headers = {"X-CSRFToken": self.session.cookies.get("csrftoken", ""), "Referer": self.address}
        done = self.session.request(method, self.address + path, json=body, headers=headers, timeout=120)
        assert done.status_code in (200, 201), f"{method} {path}: {done.status_code} {done.text[:500]}"
        return done.json()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.log.close()


class Check(RunCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train(cls(), "run", "train.steps=2", ranks=1)

    def tasks(self, name):
        """Twenty questions as tasks, and the labeling interface."""
        self.call("ask", "run", "oracle.sampler=captcha", "label.question=Is this the same <patient>?", "label.instructions=Look & answer.",
                  "--n", "20", "--out", f"{name}.json", "--format", "label-studio")
        with open(f"{self.folder}/{name}.xml") as interface, open(f"{self.folder}/{name}.json") as tasks:
            return interface.read(), json.load(tasks)

    def test_the_sdk_takes_both_files(self):
        config, tasks = self.tasks("sdk")
        interface = LabelInterface(config)
        interface.validate()
        self.assertEqual(interface.get_control("same").to_name, ["pair"])
        done = []
        for n, task in enumerate(tasks):
            self.assertTrue(interface.validate_task({"id": n, **task}), task["data"].keys())
            region = interface.get_control("same").label(label="yes" if is_same(task["data"]) else "no")
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

    @unittest.skipUnless(os.path.exists(SERVER), "label-studio is not installed beside this Python")
    def test_the_server_there_and_back(self):
        config, tasks = self.tasks("served")
        server = LabelStudio(self.folder)
        try:
            project = server.ask("POST", "/api/projects", {"title": "pal", "label_config": config})["id"]
            self.assertEqual(server.ask("POST", f"/api/projects/{project}/import", tasks)["task_count"], len(tasks))
            listed = server.ask("GET", f"/api/tasks?project={project}&page_size=100&fields=all")["tasks"]
            self.assertEqual(len(listed), len(tasks))
            for task in listed:
                self.assertTrue(task["data"]["member_picture"].startswith("data:image/png;base64,"))
                choice = {"from_name": "same", "to_name": "pair", "type": "choices", "value": {"choices": ["yes" if is_same(task["data"]) else "no"]}}
                server.ask("POST", f"/api/tasks/{task['id']}/annotations", {"result": [choice], "lead_time": 1.5})
            if os.environ.get("PAL_KEEP_SERVER"):
                print(f"{server.address}/projects/{project}/data?task={listed[0]['id']}  {ACCOUNT}", flush=True)
                time.sleep(float(os.environ["PAL_KEEP_SERVER"]))
            export = server.ask("GET", f"/api/projects/{project}/export?exportType=JSON")
        finally:
            server.stop()
        with open(f"{self.folder}/export.json", "w") as f:
            json.dump(export, f)
        self.assertIn("20 answers recorded", self.call("answers", "import", "run", "export.json"))
        self.call("answers", "export", "run", "--out", "back.jsonl")
        with open(f"{self.folder}/back.jsonl") as f:
            said = {(a["query"], a["member"]): a["answer"] for a in map(json.loads, f)}
        for task in tasks:
            data = task["data"]
            self.assertEqual(said[data["query"], data["member"]], "yes" if is_same(data) else "no")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
