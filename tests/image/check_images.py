"""Every stage of the images, run in clean environments: what a container engine would run."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy/docker"
SERVICES = ("storage", "context")
LOCKED = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)
OWN = {
    "storage": {"annals-common", "annals-storage"},
    "context": {"annals-common", "annals-context"},
}
EMBED = """
import asyncio
from annals_storage.app_adapters import open_embedder
from annals_storage.settings import StorageSettings

async def main():
    embedder = await open_embedder(StorageSettings())
    print(embedder.dimensions)
    embedder.close()

asyncio.run(main())
"""
COUNT = """
from annals_common.tokenizers import count_tokens, load_encoding
print([count_tokens(load_encoding(name), "hello world") for name in ("o200k_base", "cl100k_base")])
"""
DISTRIBUTIONS = """
import json
from importlib.metadata import distributions
print(json.dumps({d.metadata["Name"]: d.version for d in distributions()}))
"""


@dataclass(frozen=True, slots=True)
class Image:
    """What the final stage holds."""

    service: str
    prefix: Path
    data: Path
    home: Path

    def run(self, program: str, *args: str) -> str:
        """Run a program as a container would: nothing but the image's own variables."""
        env = {
            "PATH": f"{self.prefix}/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TIKTOKEN_CACHE_DIR": str(self.data / "tokenizers"),
            "ANNALS_STORAGE_DATA_DIR": str(self.data),
            "ANNALS_STORAGE_DATABASE_URL": "postgresql://annals_app@database/annals",
        }
        return output([str(self.prefix / "bin" / program), *args], env, self.home)

    def files(self) -> dict[str, int]:
        """Every file with the time it was changed."""
        found = [*self.prefix.rglob("*"), *self.data.rglob("*")]
        return {str(path): path.lstat().st_mtime_ns for path in found}


def output(command: list[str], env: Mapping[str, str], cwd: Path) -> str:
    done = subprocess.run(
        command, env=dict(env), cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def locked(path: Path) -> set[tuple[str, str]]:
    """Name and version; a name has several where they depend on Python's."""
    return {(normal(name), version) for name, version in LOCKED.findall(path.read_text())}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module", params=SERVICES)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The stages, by the scripts and in the order of the Dockerfile."""
    service = str(request.param)
    place = tmp_path_factory.mktemp(service)
    image = Image(service, place / "annals", place / "data", place / "home")
    image.home.mkdir()
    stages = re.findall(
        r"^RUN deploy/docker/(\S+) (.*)$",
        (DOCKER / f"{service}.Dockerfile").read_text(),
        re.MULTILINE,
    )
    stead = {
        "/wheels": place / "wheels",
        "/opt/annals": image.prefix,
        "/var/lib/annals": image.data,
    }
    for script, args in stages:
        given = [str(stead.get(arg, arg)) for arg in args.split()]
        output([str(DOCKER / script), *given], os.environ, ROOT)
    assert [script for script, _ in stages] == ["build-wheels.sh", "install.sh", "assets.sh"]
    return image


@pytest.mark.timeout(900)
def test_the_command_runs_and_lists_its_settings(image: Image) -> None:
    command = f"annals-{image.service}"
    assert "serve" in image.run(command, "--help")
    assert f"ANNALS_{image.service.upper()}_SERVER__ADDRESS" in image.run(command, "settings")


def test_model_and_tokenizers_are_baked_in_and_nothing_is_written(image: Image) -> None:
    before = image.files()

    assert image.run("python", "-c", COUNT).strip() == "[2, 2]"
    if image.service == "storage":
        assert image.run("python", "-c", EMBED).strip() == "384"

    assert image.files() == before


def test_what_is_installed_is_what_is_locked_and_tested(image: Image) -> None:
    installed = {
        normal(name): version
        for name, version in json.loads(image.run("python", "-c", DISTRIBUTIONS)).items()
    }
    allowed = locked(DOCKER / f"requirements-{image.service}.lock")
    everything = locked(ROOT / "requirements.lock")

    others = {pair for pair in installed.items() if pair[0] not in OWN[image.service]}
    assert OWN[image.service] <= set(installed)
    assert others <= allowed
    assert others <= everything


def test_no_tool_is_left(image: Image) -> None:
    tools = {"pip", "setuptools", "wheel", "grpcio-tools", "pytest", "mypy", "ruff", "uv", "moto"}
    lock = locked(DOCKER / f"requirements-{image.service}.lock")
    assert tools.isdisjoint(name for name, _ in lock)
    assert tools.isdisjoint(path.name for path in (image.prefix / "bin").iterdir())


def test_the_sources_are_left_as_they_were(image: Image) -> None:
    done = output(["git", "status", "--porcelain", "services", "proto"], os.environ, ROOT)
    assert image.prefix.is_dir()
    assert "egg-info" not in done
    assert "build/" not in done
