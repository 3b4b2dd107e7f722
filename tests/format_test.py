#!/usr/bin/env python3
"""format_test: C++ files are as clang-format 14 writes them with the project's .clang-format, and lines have 120 columns.

    format_test.py ROOT            exit 1 and a line for each file that differs and each line that is too long
    format_test.py ROOT --fix      rewrites what clang-format can (launch/check --format); it breaks no comment
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

SOURCE = re.compile(r".*\.(h|cpp|cu|cuh)$")
# Lines of these have at most COLUMNS. Not in the list: tables in .md files, whole runs in tests' Python files.
SHORT = re.compile(r"(.*\.(h|cpp|cu|cuh|cmake)|(.*/)?CMakeLists\.txt|launch/.*\.(py|sh|sbatch|js|css|txt)|launch/[a-z]+)$")
COLUMNS = 120
VERSION = "14"   # another version formats otherwise


def long_lines(root, files):
    """A sentence for each line that has more than COLUMNS characters."""
    found = []
    for path in files:
        with open(os.path.join(root, path), encoding="utf-8") as text:
            found += [f"{path}:{number}: {len(line)} columns; break it at {COLUMNS}"
                      for number, line in enumerate(text.read().split("\n"), 1) if len(line) > COLUMNS]
    return found


def formatter():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path and f"version {VERSION}." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    return None


def main(arguments):
    root, fix = arguments[0], "--fix" in arguments[1:]
    program = formatter()
    if not program:
        print(f"skipped: clang-format {VERSION} is not installed (Debian: clang-format-{VERSION})")
        return 0
    listing = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True)
    if listing.returncode:
        print("skipped: the sources are in no git repository, which lists the files to check")
        return 0
    listed = [f for f in listing.stdout.splitlines() if os.path.exists(os.path.join(root, f))]
    files, long = [f for f in listed if SOURCE.match(f)], long_lines(root, [f for f in listed if SHORT.match(f)])
    mode = ["-i"] if fix else ["--dry-run", "-Werror"]
    share = [files[i::16] for i in range(16) if files[i::16]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(subprocess.run, [program, *mode, *part], cwd=root, capture_output=True, text=True)
                for part in share]
        results = [job.result() for job in jobs]
    wrong = sorted({m.group(1) for r in results for m in re.finditer(r"^([^:\n]+):\d+:\d+: error:", r.stderr, re.M)})
    for path in wrong:
        print(f"{path}: not as clang-format writes it; run launch/check --format")
    print("\n".join(long), end="\n" if long else "")
    other = [r.stderr for r in results if r.returncode and not wrong]
    print("".join(other) or f"{len(files)} files, {len(wrong)} to format" + (" (rewritten where needed)" if fix else "")
          + f", {len(long)} lines too long")
    return 1 if wrong or other or long else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
