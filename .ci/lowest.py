"""Print the lowest versions that pyproject.toml admits, as constraints for pip: each bound itself must work."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"].values()
bound = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\d.]+)")
lowest: dict[str, str] = {}
for requirement in [*project["dependencies"], *(each for extra in extras for each in extra)]:
    if found := bound.match(requirement):
        name, version = found.groups()
        if lowest.setdefault(name, version) != version:
            raise SystemExit(f"{name} has two lower bounds in pyproject.toml: {lowest[name]} and {version}")
print("\n".join(f"{name}=={version}" for name, version in sorted(lowest.items())))
