"""Shapes that benchmarks run on: analytic ones of any size, the built-in human, and FAUST where it is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from acnn.shapes import Mesh, load


def reference_shape(path: str | None, vertices: int = 6890) -> tuple[str, Mesh]:
    """Name and mesh: the file given, else the first FAUST registration in ACNN_DATA, else `human(vertices)`."""
    found = faust(1) if path is None else [Path(path)]
    if found:
        shape = load(found[0])
        if not isinstance(shape, Mesh):
            raise SystemExit(f"{found[0]}: a point cloud; the benchmark needs a mesh.")
        return found[0].name, shape
    return "built-in human, triangulated anew" if vertices != 2500 else "built-in human", human(vertices)


def faust(count: int) -> list[Path]:
    """The first registrations of different people in ACNN_DATA; none where it is not set."""
    folder = os.environ.get("ACNN_DATA")
    return sorted(Path(folder).rglob("tr_reg_0?0.ply"))[:count] if folder else []


def human(vertices: int = 2500) -> Mesh:
    """The built-in human, triangulated anew where it has another number of vertices."""
    from acnn.datasets import builtin_human
    from acnn.surface.simplify import remesh

    mesh = builtin_human()
    return mesh if len(mesh.vertices) == vertices else remesh(mesh, vertices=vertices).mesh


def torus(vertices: int, seed: int = 0) -> Mesh:
    """A torus with radii 2 and 1: an irregular grid of about so many vertices, all of them on the surface."""
    random = np.random.default_rng(seed)
    v_count = max(6, round(np.sqrt(vertices / 2)))
    u_count = 2 * v_count
    i, j = np.meshgrid(np.arange(u_count), np.arange(v_count), indexing="ij")
    u = 2 * np.pi * (i + random.uniform(-0.25, 0.25, i.shape)) / u_count
    v = 2 * np.pi * (j + random.uniform(-0.25, 0.25, j.shape)) / v_count
    ring = 2.0 + np.cos(v)
    points = np.stack([ring * np.cos(u), ring * np.sin(u), np.sin(v)], axis=-1).reshape(-1, 3)
    a, b = i * v_count + j, (i + 1) % u_count * v_count + j
    c, d = (i + 1) % u_count * v_count + (j + 1) % v_count, i * v_count + (j + 1) % v_count
    either = random.random(i.shape) < 0.5  # which diagonal cuts a quad
    first = np.where(either[..., None], np.stack([a, b, c], -1), np.stack([a, b, d], -1))
    second = np.where(either[..., None], np.stack([a, c, d], -1), np.stack([b, c, d], -1))
    return Mesh(points, np.concatenate([first.reshape(-1, 3), second.reshape(-1, 3)]).astype(np.int32))


def around_the_tube(mesh: Mesh) -> np.ndarray:
    """(n, 3) direction of the larger principal curvature at every vertex of `torus`."""
    x, y, z = mesh.vertices.T
    ring = np.hypot(x, y)
    return np.stack([-z * x / ring, -z * y / ring, ring - 2.0], axis=1)


def ellipsoid(vertices: int) -> Mesh:
    """Half axes 1, 0.7 and 0.5; points on a spiral, joined as in their convex hull on the sphere."""
    from scipy.spatial import ConvexHull

    k = np.arange(vertices) + 0.5
    height, turn = 1.0 - 2.0 * k / vertices, np.pi * (1.0 + np.sqrt(5.0)) * k
    width = np.sqrt(1.0 - height**2)
    points = np.stack([width * np.cos(turn), width * np.sin(turn), height], axis=1)
    faces = ConvexHull(points).simplices
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a + b + c) < 0
    faces[inward] = faces[inward][:, ::-1]
    return Mesh(points * [1.0, 0.7, 0.5], faces.astype(np.int32))
