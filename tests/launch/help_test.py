#!/usr/bin/env python3
"""Every command line of the help pages, of the --help examples and of the READMEs uses options and keys that the program
has, and so does every error.

usage: help_test.py PAL     (standard library only)
"""
import functools
import glob
import os
import re
import shlex
import subprocess
import sys
import unittest

PAL = sys.argv[1]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Options of other programs that our sentences name: cmake, launch/setup, mpirun, srun, apt-get.
FOREIGN = {"--allow-run-as-root", "--build", "--target", "--preset", "--cuda", "--bind-to", "--gpu-bind", "--mpi", "--no-install-recommends"}
USES = ("train", "label", "oracles", "slurm", "scale", "eval", "python", "from-solo-learn")


@functools.lru_cache(maxsize=None)   # a start of the program costs half a second
def pal(*args):
    return subprocess.run([PAL, *args], capture_output=True, text=True, timeout=60, check=True).stdout


def command_lines(text):
    """What begins with `pal `, alone on its line or after a launcher; a remark begins after three spaces."""
    for line in text.splitlines():
        found = re.search(r"(?:^|[`(:] *|&& |\|\| | {2,}|none |mpirun .*?)\bpal ([a-z][^`]*)", line)
        if found and not line.lstrip().startswith("#"):
            yield re.split(r"   +|`| \[|\)|; ", found.group(1))[0].strip()


class Help(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        overview = pal("help")
        listed = lambda head: re.findall(r"^  ([\w-]+) ", overview.split(head + ":\n")[1].split("\n\n")[0], re.M)
        cls.commands, cls.topics = listed("Commands"), listed("Topics")
        cls.keys = {line.split()[0] for line in pal("config", "--keys").splitlines() if not line.startswith(" ")}
        cls.options = {command: pal(command, "--help") for command in cls.commands if command != "help"}

    def check(self, line, where):
        try:
            words = shlex.split(line.replace("...", ""))
        except ValueError:
            return 0   # prose
        if not words or words[0] not in self.commands:
            return 0
        if words[0] == "help":
            for topic in words[1:2]:
                self.assertIn(topic.strip(",.|"), self.topics, where)
            return 1
        help_text = self.options[words[0]]
        if len(words) > 1 and re.search(rf"^  {re.escape(words[1])} ", help_text, re.M) and "Subcommands" in help_text:
            help_text = pal(words[0], words[1], "--help")
        for word in words[1:]:
            if word.startswith("--"):
                self.assertRegex(help_text, rf"(?m)^ +(?:-\w,)?{re.escape(word.split('=')[0].rstrip(',.'))}\b", f"{where}: pal {line}")
            elif re.fullmatch(r"[a-z_]+\.[a-z_]+=.*", word) and not word.endswith((".h5", ".yaml")):
                self.assertIn(word.split("=")[0], self.keys, f"{where}: pal {line}")
        return 1

    def test_command_lines_of_the_pages(self):
        for topic in self.topics:
            page = pal("help", topic)
            for key in re.findall(r"(?<![\w./-])([a-z]+\.[a-z_]+)=(?!\S*\()", page):
                section = key.split(".")[0]
                if section in {k.split(".")[0] for k in self.keys}:
                    self.assertIn(key, self.keys, topic)
            for command in re.findall(r"^  pal ([\w-]+)", page, re.M):
                self.assertIn(command, self.commands, f"pal help {topic}")
            checked = sum(self.check(line, f"pal help {topic}") for line in command_lines(page))
            if topic in USES:
                self.assertGreater(checked, 0, f"pal help {topic} shows no command")

    def test_command_lines_of_the_readmes(self):
        for path in ("README.md", "configs/README.md"):
            with open(f"{ROOT}/{path}", encoding="utf-8") as file:
                text = file.read().replace("\\\n", " ").replace("build/pal ", "pal ")
            lines = [line for line in command_lines(text) if not line.startswith("bench") and line != "help TOPIC"]
            self.assertGreater(sum(self.check(line, path) for line in lines), 0, path)

    def all_options(self):
        """The help of every command and of every subcommand, with its name."""
        for command, text in self.options.items():
            yield command, text
            for sub in re.findall(r"(?m)^  ([a-z-]+) ", text.partition("Subcommands:")[2]):
                yield f"{command} {sub}", pal(command, sub, "--help")

    def test_options_in_errors(self):
        """An error such as "give --run-dir NEW" names an option of some command."""
        known = set(re.findall(r"--[a-z][\w-]*", "\n".join(text for _, text in self.all_options())))
        sources = [path for room in ("core", "dist", "launch") for path in glob.glob(f"{ROOT}/{room}/**/*.cpp", recursive=True)
                   if "/slurm/" not in path and "/process/" not in path]   # these make command lines of other programs
        self.assertGreater(len(sources), 100)
        for path in sources:
            with open(path, encoding="utf-8") as file:
                for text in re.findall(r'"((?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*)"', file.read()):
                    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
                        self.assertTrue(option in known | FOREIGN, f"{os.path.relpath(path, ROOT)}: {option} in: {text}")

    def test_pages_fit_a_terminal(self):
        for topic in self.topics:
            wide = [line for line in pal("help", topic).splitlines() if len(line) > 120]
            self.assertEqual(wide, [], f"pal help {topic}: at most 120 columns")

    def test_every_command_is_in_a_page(self):
        pages = "\n".join(pal("help", topic) for topic in self.topics)
        for command in self.commands:
            self.assertTrue(re.search(rf"\bpal {command}\b", pages), f"no page mentions pal {command}")

    def test_examples_of_the_commands(self):
        for command, text in self.options.items():
            lines = list(command_lines(text.split("Example")[-1]))
            self.assertGreater(sum(self.check(line, f"pal {command} --help") for line in lines), 0, f"pal {command} --help has no example")

    def test_pages_for_users_exist(self):
        for topic in USES:
            self.assertIn(topic, self.topics)
            self.assertTrue(pal("help", topic).startswith(f"{topic}: "), topic)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
