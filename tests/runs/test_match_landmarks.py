"""Matching with landmarks: they choose between symmetric maps, and the map passes through them."""

import json

import numpy as np
import pytest
from analytic import bumpy

from acnn.cli import main
from acnn.datasets import builtin_humans
from acnn.datasets.families import make_family
from acnn.errors import InputError
from acnn.runs.match import match
from acnn.shapes import Mesh, save


@pytest.fixture(scope="module")
def ellipsoid():
    """A mesh that a half turn around z maps to itself."""
    sphere = bumpy(3)
    points = sphere.vertices / np.linalg.norm(sphere.vertices, axis=1, keepdims=True)
    return Mesh(points * [1.0, 1.4, 2.0], sphere.faces)


def test_landmarks_choose_between_symmetric_maps(ellipsoid):
    turned = Mesh(ellipsoid.vertices * [-1, -1, 1], ellipsoid.faces)  # the same shape in space, other vertices
    ends = [int((ellipsoid.vertices @ axis).argmax()) for axis in (*np.eye(3), -np.eye(3)[1])]
    found = match(ellipsoid, turned, method="descriptors", landmarks=[[v, v] for v in ends], cache=False)
    gaps = np.linalg.norm(ellipsoid.vertices[found.a_to_b] - ellipsoid.vertices, axis=1)
    assert gaps.mean() < 0.05
    assert (found.a_to_b[ends] == ends).all()
    assert found.report["landmarks"]["count"] == 4
    assert found.report["landmarks"]["contradictions"] == []


def test_landmarks_on_the_command_line(ellipsoid, tmp_path, capsys):
    for name in ("a.ply", "b.ply"):
        save(ellipsoid, tmp_path / name)
    tips = [int(v) for v in (ellipsoid.vertices[:, 2].argmax(), ellipsoid.vertices[:, 2].argmin())]
    (tmp_path / "pairs.txt").write_text(f"north {tips[0]} {tips[0]}\nsouth {tips[1]} {tips[0]}\n")
    shapes = [str(tmp_path / "a.ply"), str(tmp_path / "b.ply"), "--out", str(tmp_path / "r")]
    options = ["--method", "descriptors", "--landmarks", str(tmp_path / "pairs.txt"), "--no-cache", "--json"]
    assert main(["match", *shapes, *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert any("Landmarks north and south contradict each other" in text for text in facts["notices"])
    written = np.loadtxt(tmp_path / "r" / "a_to_b.txt", dtype=int)
    assert written[tips].tolist() == [tips[0], tips[0]]


def test_landmarks_that_are_no_vertices(ellipsoid):
    with pytest.raises(InputError, match="landmarks of B"):
        match(ellipsoid, ellipsoid, method="descriptors", landmarks=[[0, 10**6]])


def exchange_is_reported(a, b, pairs, exchanged, **options):
    """Right landmarks are reported by no sentence, and exchanged ones by one that is among the remarks, too."""
    assert match(a, b, landmarks=pairs, **options).report["landmarks"]["contradictions"] == []
    ends = np.array(pairs)
    ends[exchanged, 1] = ends[exchanged[::-1], 1]
    found = match(a, b, landmarks=ends, **options).report
    assert found["landmarks"]["contradictions"]
    assert set(found["landmarks"]["contradictions"]) <= set(found["remarks"])
    return found["landmarks"]["contradictions"]


@pytest.mark.parametrize("method", ["auto", "descriptors"])
def test_exchanged_feet_are_reported(method):
    humans = builtin_humans()
    a, b = humans.mesh(131), humans.mesh(148)  # in one triangulation; descriptors exchange the feet by themselves
    side, height = a.vertices[:, 0], a.vertices[:, 1]
    feet = [int(np.where(side * sign > 0, height, np.inf).argmin()) for sign in (-1, 1)]
    sentences = exchange_is_reported(a, b, [*zip(feet, feet, strict=True)], [0, 1], method=method, cache=False)
    assert any("exchanged, they give a clearly better map" in text for text in sentences)


def test_exchanged_paws_are_reported():
    family = make_family("quadruped", 6, seed=3)
    a, b = (Mesh(family.vertices[i], family.faces) for i in (4, 5))
    x, y, z = family.template.T
    low = y < 0.1
    x = x - np.median(x[low])
    corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    paws = [int(np.where(low & (x * i > 0) & (z * j > 0), y, np.inf).argmin()) for i, j in corners]
    pairs = [*zip(paws, paws, strict=True)]
    sentences = exchange_is_reported(a, b, pairs, [2, 3], method="descriptors", cache=False)
    assert any(text.startswith("Landmarks 2 and 3 contradict the surface: exchanged") for text in sentences)
