#!/usr/bin/env python3
"""launch/setup: pip takes only files whose sums are in hashes.lock; a second run changes nothing.

usage: setup_test.py SOURCE

A copy of the scripts installs a wheel of a few bytes, named torch, from a folder. Nothing comes from the network.
"""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = os.path.abspath(sys.argv[1])
SUPPORTED = [f"cp3{minor}" for minor in range(10, 15)]


def locked():
    """(section, name==version, marker) of the packages from PyPI."""
    section = ""
    with open(f"{SOURCE}/launch/setup.d/versions.lock", encoding="utf-8") as lock:
        for line in lock:
            section = line.strip() if line.startswith("[") else section
            if section.startswith("[python") and "=" in line and line[0] not in "#[":
                package, _, marker = line.strip().partition(" ; ")
                yield section, package.replace("=", "==", 1), marker


def write_wheel(path):
    """A wheel that holds what setup takes for a LibTorch."""
    files = {"torch/share/cmake/Torch/TorchConfig.cmake": b"", "torch/version.py": b"cuda = None\n",
             "torch-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n",
             "torch-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "torch-1.0.dist-info/RECORD,,\n"
    for name, data in files.items():
        sum64 = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{name},sha256={sum64},{len(data)}\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in [*files.items(), ("torch-1.0.dist-info/RECORD", record.encode())]:
            wheel.writestr(name, data)


class Hashes(unittest.TestCase):
    def test_every_package_has_the_sums_of_its_files(self):
        files = {}
        with open(f"{SOURCE}/launch/setup.d/hashes.lock", encoding="utf-8") as lock:
            for line in list(lock)[1:]:
                package, sha256, file = line.split()
                self.assertRegex(sha256, r"^[0-9a-f]{64}$")
                files.setdefault(package, []).append(file)
        self.assertEqual(set(files), {package for _, package, _ in locked()})
        for section, package, marker in locked():
            if section != "[python]":
                continue
            pythons = {"": SUPPORTED, 'python_version < "3.11"': SUPPORTED[:1],
                       'python_version >= "3.11"': SUPPORTED[1:]}
            for python in pythons[marker]:   # a file for each Python that setup accepts
                self.assertRegex(" ".join(files[package]), rf"-(py3|py2\.py3|{python})-", f"{package} for {python}")


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.wheel = f"{self.folder}/wheels/torch-1.0-py3-none-any.whl"
        os.mkdir(f"{self.folder}/wheels")
        write_wheel(self.wheel)
        shutil.copytree(f"{SOURCE}/launch", f"{self.folder}/launch")
        with open(f"{self.folder}/launch/setup.d/versions.lock", "w", encoding="utf-8") as lock:
            lock.write("[debian.build]\nbash=5.2 true\n[python]\ntorch=1.0\n")

    def setup(self, sha256, code=0):
        with open(f"{self.folder}/launch/setup.d/hashes.lock", "w", encoding="utf-8") as lock:
            lock.write(f"torch==1.0 {sha256} torch-1.0-py3-none-any.whl\n")
        env = {"PATH": os.environ["PATH"], "HOME": self.folder, "PIP_NO_INDEX": "1",
               "PIP_FIND_LINKS": f"{self.folder}/wheels"}
        done = subprocess.run([f"{self.folder}/launch/setup", "--cuda", "off"], env=env, capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_another_file_than_the_locked_one_is_refused(self):
        done = self.setup("0" * 64, code=1)
        self.assertIn("another sum than hashes.lock", done.stderr)
        self.assertIn("torch==1.0", done.stderr)
        self.assertNotIn("trying again", done.stdout)
        self.assertFalse(os.path.exists(f"{self.folder}/.deps/env"))
        with open(self.wheel, "rb") as file:
            sha256 = hashlib.sha256(file.read()).hexdigest()
        self.setup(sha256)
        stamp, env = f"{self.folder}/.deps/venv/pal-lock.sha256", f"{self.folder}/.deps/env"
        before = [os.stat(path).st_mtime_ns for path in (stamp, env)]
        done = self.setup(sha256)
        self.assertNotIn("installing", done.stdout)
        self.assertEqual(before, [os.stat(path).st_mtime_ns for path in (stamp, env)])


class Gpus(unittest.TestCase):
    """What is built for which GPUs, and what users of GPUs read before they start."""

    def architectures(self, nvidia_smi=None):
        with tempfile.TemporaryDirectory() as folder:
            if nvidia_smi is not None:
                with open(f"{folder}/nvidia-smi", "w", encoding="utf-8") as script:
                    script.write("#!/bin/sh\nprintf '%s'\n" % nvidia_smi)
                os.chmod(f"{folder}/nvidia-smi", 0o755)
            for tool in ("sed", "tr", "sort", "head", "paste"):
                os.symlink(shutil.which(tool), f"{folder}/{tool}")
            script = f"eval \"$({shutil.which('sed')} -n '/^architectures()/,/^}}/p' {SOURCE}/launch/setup.d/common.sh)\"; architectures"
            return subprocess.run([shutil.which("bash"), "-c", script], env={"PATH": folder}, capture_output=True, text=True, check=True).stdout.split(";")

    def test_the_release_preset_has_every_data_center_gpu_since_turing(self):
        with open(f"{SOURCE}/CMakePresets.json", encoding="utf-8") as presets:
            release = next(p for p in json.load(presets)["configurePresets"] if p["name"] == "release")
        self.assertEqual(release["cacheVariables"]["PAL_CUDA_ARCHITECTURES"], "75-real;80-real;90-real;100-real;120")

    def test_quickstart_and_test_build_for_three_at_most(self):
        self.assertEqual(self.architectures(), ["80-real", "90-real", "120"])
        self.assertEqual(self.architectures("9.0\\n9.0\\n"), ["90-real"])
        self.assertEqual(len(self.architectures("7.5\\n8.0\\n9.0\\n10.0\\n12.0\\n")), 3)

    def test_what_users_of_gpus_read(self):
        with open(f"{SOURCE}/README.md", encoding="utf-8") as readme:
            self.assertIn("r580 or later", readme.read())
        # A rank that sees only its own GPU cannot open its neighbors' memory.
        advice = subprocess.run(["grep", "-rlE", "gpus-per-task|gpu-bind=(single|closest|map)", f"{SOURCE}/launch", f"{SOURCE}/configs", f"{SOURCE}/README.md"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(advice.stdout, "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
