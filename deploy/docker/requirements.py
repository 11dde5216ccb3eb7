"""Prints what one image needs from outside: `python deploy/docker/requirements.py storage`.

`make lock` turns it into requirements-<name>.lock, at the versions of requirements.lock.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN_PREFIX = "annals-"
BUILD = ("grpcio-tools", "setuptools", "wheel")


def needed(name: str) -> list[str]:
    """Requirements of a service and of what services share; `build`: to build their wheels."""
    if name == "build":
        return list(BUILD)
    packages = ("common", name)
    projects = [ROOT / "services" / package / "pyproject.toml" for package in packages]
    found = {
        requirement
        for path in projects
        for requirement in tomllib.loads(path.read_text())["project"]["dependencies"]
        if not requirement.startswith(OWN_PREFIX)
    }
    return sorted(found)


if __name__ == "__main__":
    sys.stdout.write("\n".join(needed(sys.argv[1])) + "\n")
