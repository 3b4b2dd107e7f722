#!/usr/bin/env python3
"""hashes: writes hashes.lock, the sha256 sum of every file that setup or the tests may install from PyPI.

    .deps/venv/bin/python launch/setup.d/hashes.py     after a change of versions.lock

The files are those of the versions in versions.lock for Python 3.10 to 3.14 on x86-64 Linux, as pip's index lists them;
a source archive only where there is no wheel. A line is: name==version, the sum, the file."""
import pathlib
import re
import sys

from pip._internal.commands.download import DownloadCommand
from pip._internal.models.target_python import TargetPython

HERE = pathlib.Path(__file__).resolve().parent
PLATFORMS = ["linux_x86_64", "manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64",
             *(f"manylinux_2_{minor}_x86_64" for minor in range(5, 37))]


def locked():
    """The PyPI packages of the lock: (name, version), each once, in its order."""
    pypi = re.split(r"^\[python\]$", (HERE / "versions.lock").read_text(), flags=re.M)[1]
    return dict.fromkeys(re.findall(r"^([\w-]+)=(\S+)", pypi, re.M))


class Hashes(DownloadCommand):
    def run(self, options, args):
        session, files = self.get_default_session(options), {package: set() for package in locked()}
        for minor in range(10, 15):
            finder = self._build_package_finder(options, session, TargetPython(PLATFORMS, (3, minor)))
            for name, version in files:
                found = finder.find_all_candidates(name)
                files[name, version].update(file.link for file in found if str(file.version) == version)
        lines = ["# Written by hashes.py from versions.lock."]
        for (name, version), links in files.items():
            if not links:
                sys.exit(f"the index has no file of {name} {version}")
            chosen = [link for link in links if link.is_wheel] or links
            lines += sorted(f"{name}=={version} {link.hash} {link.filename}" for link in chosen)
        (HERE / "hashes.lock").write_text("\n".join(lines) + "\n")
        return 0


if __name__ == "__main__":
    sys.exit(Hashes("download", "").main([]))
