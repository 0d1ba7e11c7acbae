from __future__ import annotations

import numpy as np

from acnn.patches.operator import PatchOperator, PatchReport
from acnn.patches.settings import PatchSettings
from acnn.shapes.mesh import Mesh


def ellipsoid(rounds: int = 2) -> Mesh:
    """An icosahedron, subdivided, projected to the sphere and stretched: 162 vertices after two rounds."""
    golden = (1 + 5**0.5) / 2
    vertices = [
        *([-1, golden, 0], [1, golden, 0], [-1, -golden, 0], [1, -golden, 0], [0, -1, golden], [0, 1, golden]),
        *([0, -1, -golden], [0, 1, -golden], [golden, 0, -1], [golden, 0, 1], [-golden, 0, -1], [-golden, 0, 1]),
    ]
    faces = [
        *([0, 11, 5], [0, 5, 1], [0, 1, 7], [0, 7, 10], [0, 10, 11], [1, 5, 9], [5, 11, 4], [11, 10, 2], [10, 7, 6]),
        *([7, 1, 8], [3, 9, 4], [3, 4, 2], [3, 2, 6], [3, 6, 8], [3, 8, 9], [4, 9, 5], [2, 4, 11], [6, 2, 10]),
        *([8, 6, 7], [9, 8, 1]),
    ]
    for _ in range(rounds):
        middle: dict[tuple[int, int], int] = {}

        def between(a: int, b: int, middle: dict[tuple[int, int], int] = middle) -> int:
            key = min(a, b), max(a, b)
            if key not in middle:
                middle[key] = len(vertices)
                vertices.append([(p + q) / 2 for p, q in zip(vertices[a], vertices[b], strict=True)])
            return middle[key]

        split = []
        for a, b, c in faces:
            ab, bc, ca = between(a, b), between(b, c), between(c, a)
            split += [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
        faces = split
    points = np.array(vertices, dtype=np.float64)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return Mesh(points * [1.0, 1.3, 1.9], np.array(faces, dtype=np.int32))


def random_operator(
    n: int = 13, angles: int = 4, scales: tuple[float, ...] = (3.0, 200.0, 12.0), seed: int = 0, pairs: int = 5
) -> PatchOperator:
    """Rows of random lengths, none included, and random eigenpairs: algebra that needs no surface."""
    random = np.random.default_rng(seed)
    settings = PatchSettings(angles=angles, scales=scales, eigenpairs=pairs)
    wide = tuple(i for i, t in enumerate(scales) if t > 120)
    lengths = random.integers(0, n, angles * (len(scales) - len(wide)) * n)
    chosen = [np.sort(random.permutation(n)[:length]) for length in lengths]
    vertices = np.concatenate(chosen) if chosen else np.zeros(0)
    k = pairs if wide else 0
    return PatchOperator(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        vertices.astype(np.uint16),
        random.normal(size=len(vertices)).astype(np.float16),
        random.uniform(0, 0.02, (angles, k)).astype(np.float32),
        random.normal(size=(angles, n, k)).astype(np.float32),
        random.uniform(0.1, 1, n).astype(np.float32),
        1.0,
        settings,
        PatchReport(n, angles, list(scales), "random", 0.0, 0.0),
        wide,
    )
