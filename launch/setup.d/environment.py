"""environment: checks that the packages of the lock are installed here, in their versions and with undamaged files.

The argument: requirement lines. Exit 1 and a line if not."""
import importlib.metadata
import os
import sys

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

installed = {canonicalize_name(d.metadata["Name"] or ""): d for d in importlib.metadata.distributions()}
for requirement in map(Requirement, sys.argv[1].splitlines()):
    if requirement.marker and not requirement.marker.evaluate():
        continue
    found = installed.get(canonicalize_name(requirement.name))
    if not found or found.version not in requirement.specifier:
        sys.exit(f"{requirement} is asked for, {found.version if found else 'none'} is installed")
for name, distribution in installed.items():
    if distribution.files is None:
        sys.exit(f"{name} has no list of files")
    for file in distribution.files:
        path = distribution.locate_file(file)
        if file.size is not None and (not os.path.exists(path) or os.path.getsize(path) != file.size):
            sys.exit(f"{name} is damaged: {path}")
