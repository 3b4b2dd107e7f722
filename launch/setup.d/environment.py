"""environment: is what the lock asks for installed here, of its version and with every file whole?

Arguments: the packages asked for, then the pins (what else is there must be of that version), as requirement lines.
Exit 1 and a line if not."""
import importlib.metadata
import os
import sys

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

installed = {canonicalize_name(d.metadata["Name"] or ""): d for d in importlib.metadata.distributions()}
asked, pins = (map(Requirement, text.splitlines()) for text in sys.argv[1:])
for requirement, required in [(r, True) for r in asked] + [(r, False) for r in pins]:
    if requirement.marker and not requirement.marker.evaluate():
        continue
    found = installed.get(canonicalize_name(requirement.name))
    if found and found.version not in requirement.specifier or required and not found:
        sys.exit(f"{requirement} is asked for, {found.version if found else 'none'} is installed")
for name, distribution in installed.items():
    if distribution.files is None:
        sys.exit(f"{name} has no list of files")
    for file in distribution.files:
        path = distribution.locate_file(file)
        if file.size is not None and (not os.path.exists(path) or os.path.getsize(path) != file.size):
            sys.exit(f"{name} is damaged: {path}")
