"""Metadata, distributions and workflow files agree with each other and contain what they should."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from acnn import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = (
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "constraints.txt"),
    *("mkdocs.yml", ".github/workflows/test.yml", "tests/docs/doc_pages.py", "tests/conftest.py"),
    *("docs/index.md", "docs/images/first_match.png", "docs/images/gallery/01_match_two_meshes.png", "docs/gallery.py"),
    *("examples/tour.ipynb", "benchmarks/pairs/tosca.txt"),
    *("experiments/table/results/bim.json", "src/acnn/methods/models/humans/model.safetensors"),
)
BUILD = """
import sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""


def test_versions_agree():
    assert PROJECT["version"] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_python_versions_are_those_tested():
    """The tests have run with Python 3.11 alone; the first classifier of another version comes with such a run."""
    named = [name for name in PROJECT["classifiers"] if name.startswith("Programming Language :: Python :: 3.")]
    assert named == ["Programming Language :: Python :: 3.11"]
    assert PROJECT["requires-python"] == ">=3.11"


def test_workflows_are_marked_as_not_run():
    yaml = pytest.importorskip("yaml")
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert [path.name for path in files] == ["newest.yml", "test.yml"]
    for path in files:
        assert path.read_text().startswith("# Not run yet on any hosted machine")
        jobs = yaml.safe_load(path.read_text())["jobs"].values()
        assert all(job["timeout-minutes"] <= 60 and job["steps"] for job in jobs)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Names of the files in the source distribution and in the wheel, built from a copy of what git knows."""
    if not find_spec("setuptools") or not (ROOT / ".git").exists():
        pytest.skip("needs setuptools, and a checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder = tmp_path_factory.mktemp("source")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)

    def built(kind: str) -> Path:
        command = [sys.executable, "-c", BUILD, f"build_{kind}", str(folder / "dist")]
        (folder / "dist").mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=folder, env={**os.environ}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder / "dist" / done.stdout.split()[-1]

    with tarfile.open(built("sdist")) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(built("wheel")) as archive:
        wheel = set(archive.namelist())
    return source, wheel


def test_the_source_distribution_is_complete(distributions):
    source, _ = distributions
    assert not set(NEEDED) - source


def test_the_wheel_has_the_package_alone(distributions):
    _, wheel = distributions
    assert {name.split("/")[0] for name in wheel} == {"acnn", f"acnn-{__version__}.dist-info"}
    data = {name.removeprefix("acnn/") for name in wheel if not name.endswith(".py") and "dist-info" not in name}
    package = ROOT / "src" / "acnn"
    known = ("py.typed", "datasets/data/", "methods/models/", "training/presets/", "viewer/page/")
    assert all(name.startswith(known) for name in data)  # no shapes but the built-in ones
    for name in ("datasets/data/humans.npz", "methods/models/humans/model.safetensors", "viewer/page/match.js"):
        assert name in data
        assert (package / name).is_file()
