"""Degenerate shapes through the whole program: a result or a clear message, never a traceback."""

import json

import numpy as np
import pytest
from analytic import bumpy, grid, sphere
from typer.testing import CliRunner

from acnn.cli._program import app
from acnn.shapes import Mesh, save

BODY = bumpy(2)
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])


def moebius(around: int = 12, across: int = 3) -> Mesh:
    """A band with half a turn: no consistent orientation."""
    u, v = np.meshgrid(2 * np.pi * np.arange(around) / around, np.linspace(-0.3, 0.3, across), indexing="ij")
    radius = 1 + v * np.cos(u / 2)
    vertices = np.stack([radius * np.cos(u), radius * np.sin(u), v * np.sin(u / 2)], axis=-1).reshape(-1, 3)
    number = np.arange(around * across).reshape(around, across)
    number = np.vstack([number, number[:1, ::-1]])
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]
    return Mesh(vertices, np.stack([a, c, b, b, c, d], axis=-1).reshape(-1, 3))


def components(count: int = 300) -> Mesh:
    """Separate balls of one size."""
    ball = sphere(0)
    centres = np.array([[i % 20, i // 20, 0.0] for i in range(count)])
    faces = ball.faces + len(ball.vertices) * np.arange(count)[:, None, None]
    return Mesh((0.3 * ball.vertices + centres[:, None]).reshape(-1, 3), faces.reshape(-1, 3))


FEW, MANY = "at least 25 vertices are needed", "300 separate components"
SHAPES = {
    "tetrahedron": (Mesh(CORNERS, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])), FEW),
    "triangle": (Mesh(CORNERS[:3], np.array([[0, 1, 2]])), FEW),
    "plane": (grid(6), None),
    "needle": (Mesh(BODY.vertices * [1, 1e-3, 1e-3], BODY.faces), None),
    "moebius": (moebius(), None),
    "components": (components(), MANY),
    "thin triangles": (Mesh(grid(6).vertices * [1, 1e-3, 1], grid(6).faces), None),
    "tiny": (Mesh(1e-6 * BODY.vertices, BODY.faces), None),
    "far away": (Mesh(BODY.vertices + 1e6, BODY.faces), None),
    "large": (Mesh(1e6 * BODY.vertices - 3e6, BODY.faces), None),
    "identical": (BODY, None),
    "mirror image": (Mesh(BODY.vertices * [-1, 1, 1], BODY.faces[:, ::-1].copy()), None),
}
"""Each shape, and the words with which matching refuses it; None where there is a result."""
RELATIVES = ("tiny", "far away", "large", "identical", "mirror image")
"""Those that differ from the body by a similarity or a reflection."""


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit code and both outputs; nothing but an exit may be raised."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), arguments
    assert "Traceback" not in result.output
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("name", SHAPES)
def test_a_degenerate_shape_gives_a_result_or_a_clear_message(name, tmp_path) -> None:
    shape, refusal = SHAPES[name]
    file, body = tmp_path / "shape.off", tmp_path / "body.off"
    save(shape, file)
    save(BODY, body)
    code, text, _ = run("info", file)
    assert code == 0
    assert json.loads(text)["faces"] == len(shape.faces)
    code, text, _ = run("patches", file, "--angles", 4, "--scales", "6,24", "--no-cache")
    assert code == 0
    assert json.loads(text)["mass_kept"] > 0.9
    for method in ("auto", "descriptors"):
        out = tmp_path / method
        code, text, errors = run("match", file, body, "--method", method, "--out", out)
        if refusal is not None:
            assert code == 2
            assert "shape.off" in errors
            assert refusal in errors
            continue
        facts = json.loads(text)
        matches = np.loadtxt(out / "a_to_b.txt", dtype=int)
        assert code == 0
        assert len(matches) == len(shape.vertices)
        assert (facts["verdict"] == "good") == (name in RELATIVES)
        if name in RELATIVES[:-1]:
            np.testing.assert_array_equal(matches, np.arange(len(matches)))
    code, text, _ = run("register", body, file, "--out", tmp_path / "registered")
    facts = json.loads(text)
    if code:
        assert (code, len(facts["failed"])) == (1, 1)
        assert facts["failed"][0]["why"].endswith(".")
    assert (code == 0) == (name in RELATIVES)
