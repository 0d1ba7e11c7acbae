"""Shapes that cannot be matched are refused before the work, in words about the shape; debris does not hinder."""

import json
from pathlib import Path

import numpy as np
import pytest
from analytic import bumpy, grid, permuted, sphere

from acnn.cli import main
from acnn.correspondence import basis_of
from acnn.correspondence.match_checks import check_matchable
from acnn.datasets import builtin_human
from acnn.descriptors import wks_of
from acnn.errors import InputError
from acnn.methods.run import open_run
from acnn.runs.match import match, match_shape
from acnn.runs.match_files import match_files
from acnn.shapes import Mesh, PointCloud, save
from acnn.surface import surface_of

TRIANGLE = Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
LINE = PointCloud(np.linspace(0, 1, 100)[:, None] * [1.0, 2.0, 3.0])


def joined(*meshes: Mesh) -> Mesh:
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + start for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.int32))


def specks(count: int, size: float) -> Mesh:
    """Tetrahedra strewn around."""
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    places = np.random.default_rng(0).uniform(-2, 2, (count, 3))
    return joined(*(Mesh(size * corners + place, faces) for place in places))


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be computed on a surface."""
    for module in ("runs.match", "correspondence.match_checks", "training.prepared", "training.cache_entries"):
        monkeypatch.setattr(f"acnn.{module}.surface_of", None, raising=False)
    monkeypatch.setattr("acnn.methods.run.prepare_shape", None)
    monkeypatch.setattr("acnn.training.prepared.build_patches", None)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (TRIANGLE, "has only 3 vertices and 1 faces: at least 25"),
        (sphere(0), "has only 12 vertices and 20 faces"),
        (PointCloud(sphere(0).vertices), "has only 12 points"),
        (LINE, "100 points lie on a line"),
        (PointCloud(np.random.default_rng(0).normal(size=(100, 3)) * [1, 1e-6, 1e-6]), "on a line"),
        (specks(300, 0.1), "300 separate components, of which 285 make up 95%"),
        (
            PointCloud(joined(*(bumpy(1) for _ in range(60))).vertices + np.repeat(np.arange(60), 42)[:, None] * 9),
            "60 sep",
        ),
    ],
    ids=["triangle", "icosahedron", "few points", "line", "thin line", "components", "clusters"],
)
def test_what_cannot_be_matched_is_told_before_the_work(shape: Mesh | PointCloud, words: str) -> None:
    whole = bumpy(2)
    for call, name in [
        (lambda: match(shape, whole), "A"),
        (lambda: match(whole, shape, method="descriptors"), "B"),
        (lambda: match_shape(shape, open_run("humans")), "The shape"),
    ]:
        with pytest.raises(InputError, match=rf"^{name}:? .*{words}"):
            call()


@pytest.mark.usefixtures("no_work")
def test_the_file_is_named_and_the_code_is_that_of_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    save(TRIANGLE, tmp_path / "triangle.ply")
    save(bumpy(2), tmp_path / "b.ply")
    names = [str(tmp_path / name) for name in ("triangle.ply", "b.ply")]
    assert main(["match", *names, "--out", str(tmp_path / "out")]) == 2
    assert "A (triangle.ply) has only 3 vertices" in capsys.readouterr().err
    (tmp_path / "data").mkdir()
    save(TRIANGLE, tmp_path / "data" / "triangle.ply")
    assert main(["prepare", str(tmp_path / "data"), "--json"]) == 1
    (failed,) = json.loads(capsys.readouterr().out)["failed"]
    assert "has only 3 vertices" in failed["why"]
    assert main(["train", str(tmp_path / "data"), "--out", str(tmp_path / "run")]) == 2
    assert "has only 3 vertices" in capsys.readouterr().err


def test_shapes_that_can_be_matched_pass() -> None:
    for shape in (
        builtin_human(0, 0),
        bumpy(1),
        PointCloud(builtin_human(0, 0).vertices),
        joined(bumpy(2), specks(49, 0.01)),
    ):
        assert check_matchable(shape, "A") == []
    rod = Mesh(bumpy(2).vertices * [1, 1e-3, 1e-3], bumpy(2).faces)
    assert check_matchable(rod, "A") == []
    for shape in (specks(300, 0.1), sphere(0)):  # a network may have been trained on such
        assert check_matchable(shape, "A", spectral=False) == []
    (remark,) = check_matchable(grid(9), "A")
    assert remark.startswith("A is flat")


def test_a_shape_among_debris_is_matched_by_descriptors(tmp_path: Path) -> None:
    mesh = bumpy(2)
    a = joined(mesh, specks(210, 0.002))
    b, place = permuted(a, 3)
    save(a, tmp_path / "a.ply")
    save(b, tmp_path / "b.ply")
    facts = match_files(tmp_path / "a.ply", tmp_path / "b.ply", None, tmp_path / "out")
    n = len(mesh.vertices)
    assert (np.loadtxt(tmp_path / "out" / "a_to_b.txt")[:n] == place[:n]).mean() > 0.9
    first, second = (notice for notice in facts["notices"] if "separate components" in notice)
    assert first.startswith("A (a.ply) consists of 211 separate components")
    assert "(840 of 1002 vertices)" in first
    assert second.startswith("B (b.ply) ")


def test_the_spectrum_of_a_shape_among_debris_is_its_own() -> None:
    mesh = bumpy(2)
    surface = surface_of(mesh, 1.0)
    among = surface_of(joined(mesh, specks(210, 0.002)), 1.0)
    own, other = basis_of(surface, 20), basis_of(among, 20)
    n = len(mesh.vertices)
    np.testing.assert_allclose(other.eigenvalues, own.eigenvalues, rtol=1e-3, atol=1e-9)
    assert np.abs(other.functions[n:]).max() == 0
    np.testing.assert_allclose(other.functions.T * other.mass @ other.functions, np.eye(20), atol=1e-6)
    np.testing.assert_allclose(wks_of(among, 30)[:n], wks_of(surface, 30), rtol=1e-6)
    with pytest.raises(InputError, match="All 100 eigenvalues are 0: the shape has as many separate components"):
        wks_of(surface_of(specks(300, 0.1), 1.0))
