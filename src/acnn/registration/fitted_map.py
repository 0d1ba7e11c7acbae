"""A map made more accurate by a fit: A is deformed onto B along the map, and its vertices then match where they lie.

The matches of a network scatter around the right ones, which a fit that is as rigid as it can be averages out; refined
maps are smooth, and their errors, which are smooth as well, remain. So a fit along the output of a network is the more
accurate one, except where that is wrong throughout. Matches of B's vertices on A can be added: where one direction is
wrong over a region, the other mostly is not, and what contradicts its surroundings loses its weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.lift import copy_images
from acnn.errors import InputError
from acnn.registration.fit import LEVELS, fit
from acnn.registration.target import Target
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.surface.surface import Surface, vertex_normals
from acnn.types import FloatArray, IntArray

MAP_LEVELS = tuple(replace(level, rounds=rounds) for level, rounds in zip(LEVELS[:5], (2, 3, 3, 3, 3), strict=True))
"""Without the last levels, which no longer move along the surface, and half of the rounds. Along refined maps of 12
pairs of generated bodies each, in common and in hard poses, mean errors x 100 are 1.03 and 2.57 before the fit, 0.82
and 2.33 after it, 0.84 and 2.35 with every second level alone; along the network output they are 0.79 and 1.87."""

DETAIL = 0.02
"""`detail` of a fit along a map: with 0, 0.02 and 0.05 mean errors x 100 of eight pairs in hard poses are 1.54, 1.52
and 1.59 along the network output, where it is 2.12 along refined maps."""

PREFERRED = 0.03
"""Distance, in square roots of the area, within which points of B that face the same way are preferred."""


@dataclass(frozen=True, eq=False)
class FittedMap:
    """A map between two shapes along a fit.

    Attributes
    ----------
    a_to_b : (n,) int32 array
        The nearest vertices of B.
    images, normals : (n, 3) array
        Points on B in its coordinates, and directions there.
    with_data : (n,) bool array
        Where the fit reached the surface of B.
    residual : float
        Mean distance of these vertices to B, in its coordinates.
    """

    a_to_b: IntArray
    images: FloatArray
    normals: FloatArray
    with_data: NDArray[np.bool_]
    residual: float

    def replaced(
        self, where: NDArray[np.bool_], a_to_b: IntArray, images: FloatArray, normals: FloatArray | None
    ) -> FittedMap:
        """The same with the matches of another map at some vertices."""
        rows = where[:, None]
        return replace(
            self,
            a_to_b=np.where(where, a_to_b, self.a_to_b).astype(np.int32),
            images=np.where(rows, images, self.images),
            normals=self.normals if normals is None else np.where(rows, normals, self.normals),
        )


def fit_map(
    a: Shape,
    b: Shape,
    surfaces: tuple[Surface, Surface],
    a_to_b: IntArray,
    confidence: FloatArray,
    backward: tuple[IntArray, FloatArray] | None = None,
) -> FittedMap | None:
    """Fit A to B along a map, and match every vertex where it comes to lie.

    Parameters
    ----------
    a, b : Shape
        Meshes or clouds.
    surfaces : tuple[Surface, Surface]
        Theirs: a cloud is deformed with the triangles of its surface.
    a_to_b : (n,) int array
        The map, vertices of B.
    confidence : (n,) array
        In 0..1.
    backward : tuple[(m,) int array, (m,) array] or None
        Vertices of A that those of B are matched to, and their confidence.

    Returns
    -------
    FittedMap or None
        None where A cannot be deformed: it has vertices without a face, or only slivers around one.

    Examples
    --------
    >>> import acnn
    >>> a, b = acnn.builtin_human(0, 0), acnn.builtin_human(1, 3)
    >>> rough = np.arange(2500) // 2 * 2
    >>> found = fit_map(a, b, (acnn.surface_of(a), acnn.surface_of(b)), rough, np.ones(2500))
    >>> bool((rough == np.arange(2500)).mean() < (found.a_to_b == np.arange(2500)).mean())
    True
    """
    here, there = surfaces
    start, _ = copy_images(a_to_b, b, surfaces)
    template = Mesh(a.vertices, here.faces)
    matched = np.arange(len(template.vertices))
    if backward is not None:
        matched = np.concatenate([matched, backward[0]])
        start, confidence = np.concatenate([start, b.vertices]), np.concatenate([confidence, backward[1]])
    points = BarycentricPoints.at_vertices(template.faces, matched)
    try:
        fitted = fit(template, b, points, start, confidence, detail=DETAIL, levels=MAP_LEVELS, repair=False)
    except (InputError, np.linalg.LinAlgError, RuntimeError):
        return None  # parts without a match, or a singular system
    directions = vertex_normals(fitted.vertices, template.faces)
    size = float(np.sqrt(there.vertex_areas.sum())) * there.unit
    found = Target(b)(fitted.vertices, directions, PREFERRED * size)
    known = fitted.has_data
    if not known.any():
        return None
    from scipy.spatial import cKDTree

    return FittedMap(
        a_to_b=cKDTree(b.vertices).query(found.positions)[1].astype(np.int32),
        images=found.positions,
        normals=found.normals,
        with_data=known,
        residual=float(fitted.residuals[known].mean()),
    )
