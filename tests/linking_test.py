#!/usr/bin/env python3
"""How the built programs and libraries are linked, read with readelf.

usage: linking_test.py BUILD CONFIG LIBTORCH PROGRAM...   PROGRAM: what is installed; LIBTORCH: the folder of its libraries
"""
import os
import re
import subprocess
import sys
import unittest

BUILD, CONFIG, LIBTORCH, *INSTALLED = sys.argv[1:]


def readelf(option, file):
    return subprocess.run(["readelf", "-W", option, file], capture_output=True, text=True, check=True).stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def built():
    """The linked files of the build folder; what a test makes in it (install) is not ours."""
    for folder, folders, files in os.walk(BUILD):
        folders[:] = [name for name in folders if name not in ("CMakeFiles", "install", "fuzz", "newcomer")]
        for path in (os.path.join(folder, name) for name in files):
            if not os.path.islink(path) and (os.access(path, os.X_OK) or path.endswith(".so")) and is_elf(path):
                yield path


def run_path(file):
    found = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", readelf("--dynamic", file))
    return found[1].split(":") if found else []


class Linking(unittest.TestCase):
    def test_no_library_is_looked_for_in_the_current_folder(self):
        """An empty or relative element of the path is the current folder to the loader, before those of the system."""
        files = list(built())
        self.assertLessEqual(set(INSTALLED), set(files))
        for file in files:
            for folder in run_path(file):
                self.assertTrue(folder.startswith(("/", "$ORIGIN")), f"{file}: {folder!r} in {run_path(file)}")

    def test_what_is_installed_knows_where_libtorch_is(self):
        for file in INSTALLED:
            self.assertIn(LIBTORCH, run_path(file), file)

    def test_what_is_installed_is_hardened(self):
        """It reads files and requests of strangers: checked stacks and buffers, and no lazy binding."""
        for file in INSTALLED:
            self.assertRegex(readelf("--dynamic", file), r"BIND_NOW|\bNOW\b", file)
            self.assertIn("GNU_RELRO", readelf("--program-headers", file), file)
            symbols = readelf("--dyn-syms", file)
            self.assertIn("__stack_chk_fail", symbols, file)
            if CONFIG == "Release":
                self.assertRegex(symbols, r"\b__\w+_chk\b", file)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
