"""Working copies: evenly sampled copies of bounded size, on which shapes of any size and triangulation are matched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh, PointCloud, Shape, Source
from acnn.shapes.topology import vertex_components
from acnn.surface.closest_points import ClosestPoints, morton_codes
from acnn.surface.simplify import decimate, split_long_edges
from acnn.surface.spectra import COMPONENTS, main_components
from acnn.surface.surface import Surface, surface_of, vertex_normals
from acnn.types import FloatArray, IntArray

WORKING_SIZE = 2500
"""Number of vertices at which shapes are matched, unless a model was trained on larger ones. Mean error x 100 of a
remeshed FAUST pair (040, 055) and of a pair of built-in humans of 5,000 vertices: 1.01 without copies, 1.03 with copies
of 3,000, 1.10 with copies of 2,500, which take three quarters of the time."""

SMALLEST = 100
"""Least size of a working copy: below it, a body has no limbs."""

COARSE, FINER = 1000, 1150
"""Meshes of fewer vertices are refined: edges longer than 4/3 of those of an even triangulation of `FINER` vertices are
split, which makes some 1,800. The pretrained model and descriptors know surfaces of about so many. Mean error x 100 of
three pairs of built-in humans of 600 and 800 vertices: 2.04 as they are, 1.55, 1.45 and 1.42 on even copies of 1,250,
1,800 and 2,500; of two noisy pairs of 800 and 1,000: 4.3, 4.1, 2.5 and 3.0. From 1,000 vertices on, such copies are
hardly better (1.29 and 1.24), from 1,500 no better."""

COARSEST = 300
"""Meshes of fewer vertices stay as they are: what their large faces leave out, no splitting brings back."""

PREVIEW = 30_000
"""Vertices with which a larger shape is shown; shapes of more than twice as many are reduced to it before they are
made even."""

LONGEST = 4.0 / 3.0
"""Edges longer than this times the edge length of an even triangulation are split before edges are collapsed."""


@dataclass(frozen=True, eq=False)
class WorkingCopy:
    """A shape and the copy of it that is matched instead.

    Attributes
    ----------
    original : Shape
        As loaded.
    shape : Shape
        The copy in the same coordinates, or the original itself.
    why : str
        Why it was copied, or why not.
    preview : Shape
        The original, or some `PREVIEW` of its vertices where it has many more; its `source` lists which.
    """

    original: Shape
    shape: Shape
    why: str
    preview: Shape

    @property
    def is_copy(self) -> bool:
        """Whether the shape was copied."""
        return self.shape is not self.original

    @property
    def report(self) -> dict[str, int | str]:
        """What `acnn match --json` prints of it: `vertices` of the original, `working` vertices, and `why`."""
        return {"vertices": len(self.original.vertices), "working": len(self.shape.vertices), "why": self.why}

    @cached_property
    def surface(self) -> Surface:
        """Surface of the copy in the coordinates of the shape."""
        return surface_of(self.shape, unit=1.0)

    @cached_property
    def points(self) -> BarycentricPoints:
        """Closest point on the copy for every vertex of the original; of a mesh, one that faces the same way."""
        surface = self.surface
        # a surface is centred: the shape's own coordinates are those of the original
        closest = ClosestPoints(self.shape.vertices, surface.faces)
        if not isinstance(self.original, Mesh):
            return closest(self.original.vertices)
        normals = vertex_normals(self.original.vertices, self.original.faces)
        return closest(self.original.vertices, normals, surface.mean_edge)

    @cached_property
    def nearest(self) -> IntArray:
        """(n,) vertex of the copy at the closest point of every vertex of the original: that of the largest weight."""
        if not self.is_copy:
            return np.arange(len(self.original.vertices), dtype=np.int32)
        return self.points.largest_corner(self.surface.faces)

    @cached_property
    def vertices(self) -> IntArray:
        """(k,) vertex of the original nearest to every vertex of the copy."""
        from scipy.spatial import cKDTree

        if not self.is_copy:
            return np.arange(len(self.original.vertices), dtype=np.int32)
        return cKDTree(self.original.vertices).query(self.shape.vertices)[1].astype(np.int32)

    def interpolate(self, values: FloatArray) -> FloatArray:
        """Values at the vertices of the copy, interpolated at the vertices of the original.

        Parameters
        ----------
        values : (k, ...) array

        Returns
        -------
        (n, ...) array
        """
        return values if not self.is_copy else self.points.interpolate(np.asarray(values)[self.surface.faces])


def working_copy(shape: Shape, size: int, coarse: int = 0) -> WorkingCopy:
    """Copy a shape with evenly spread vertices, at most `size` of them, unless it has no more already.

    Long edges of a mesh are split, then edges are collapsed (`decimate`), so that its vertices are spread evenly
    however it is triangulated. Its boundary stays where it is. A cloud is reduced to points that are as far from each
    other as possible. Of a coarse mesh, long edges are split and none collapsed: its surface stays the same.

    Parameters
    ----------
    shape : Shape
        Mesh or cloud of n vertices.
    size : int
        Largest number of vertices; 0 for no copy.
    coarse : int
        A mesh of fewer vertices, but at least `COARSEST`, is refined (`FINER`); 0 refines none.

    Returns
    -------
    WorkingCopy

    Raises
    ------
    InputError
        Where the size is neither 0 nor at least `SMALLEST`.

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface.working_copy import working_copy
    >>> copy = working_copy(acnn.builtin_human(), 1000)
    >>> copy.shape
    Mesh(1000 vertices, 1996 faces)
    >>> working_copy(acnn.builtin_human(), 3000).why
    'has no more than 3,000 vertices'
    """
    if size != 0 and size < SMALLEST:
        raise InputError(f"A working size of {size} vertices is too small: use 0 for none, or {SMALLEST} or more.")
    n = len(shape.vertices)
    preview = reduced(shape, PREVIEW) if n > 2 * PREVIEW else shape
    if size == 0:
        return WorkingCopy(shape, shape, "no working copy was asked for", preview)
    if isinstance(preview, PointCloud):
        if n <= size:
            return WorkingCopy(shape, shape, f"has no more than {size:,} points", preview)
        kept = np.sort(farthest_points(preview.vertices, size))
        normals = None if preview.normals is None else preview.normals[kept]
        copy = PointCloud(preview.vertices[kept], normals)
        return WorkingCopy(shape, copy, f"has more than {size:,} points", preview)
    if COARSEST <= n < min(coarse, size):
        return WorkingCopy(
            shape, _even_mesh(preview, min(size, FINER), False), f"has fewer than {coarse:,} vertices", preview
        )
    if n <= size:
        return WorkingCopy(shape, shape, f"has no more than {size:,} vertices", preview)
    return WorkingCopy(shape, _even_mesh(preview, size), f"has more than {size:,} vertices", preview)


def reduced(shape: Shape, count: int) -> Shape:
    """Reduce a shape to some of its vertices: by edge collapse, or of a cloud points spread like all of them.

    Parameters
    ----------
    shape : Shape
        Mesh or cloud.
    count : int
        Number of vertices, fewer than the shape has; of a mesh more where no more edges can be collapsed.

    Returns
    -------
    Shape
        Its `source` maps it to the vertices of the shape, as if these were its file.
    """
    n = len(shape.vertices)
    path = "" if shape.source is None else shape.source.path
    if isinstance(shape, PointCloud):
        order = np.argsort(morton_codes(np.asarray(shape.vertices, np.float64)), kind="stable")
        kept = np.sort(order[np.linspace(0, n - 1, count).astype(np.int64)])
        normals = None if shape.normals is None else shape.normals[kept]
        return PointCloud(shape.vertices[kept], normals, source=_subset(path, kept, n))
    numbers, points, faces = _ordered(shape)
    remaining, coarse = decimate(points, faces, count, required=False)
    return Mesh(points[remaining], coarse, source=_subset(path, numbers[remaining], n))


def farthest_points(points: FloatArray, count: int) -> IntArray:
    """Farthest-point sampling: each point is the farthest from all before it; the first from the mean.

    Parameters
    ----------
    points : (n, 3) array
    count : int
        At most n.

    Returns
    -------
    (count,) int array
        Indices, in the order they were taken.
    """
    coordinates = np.ascontiguousarray(points, np.float64)
    first = int(np.argmax(((coordinates - coordinates.mean(axis=0)) ** 2).sum(axis=1)))
    return _farthest(coordinates, first, count)


def _even_edge(area: float, vertices: int) -> float:
    """Edge length of equilateral triangles, two for every vertex."""
    return math.sqrt(2.0 / math.sqrt(3.0) * area / vertices)


def _even_mesh(mesh: Mesh, size: int, collapse: bool = True) -> Mesh:
    """Without collapsed edges the size is approximate.

    Halves of edges lie in the faces of a coarse mesh, so that it costs nothing to collapse any of them: rounding would
    choose, and neither a rotated mesh nor one with permuted vertices would have the same copy.
    """
    mesh = _without_debris(mesh)
    corners = mesh.vertices[mesh.faces]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    del corners
    order, points, faces = _ordered(mesh)
    longest = LONGEST * _even_edge(float(area), size)
    points, faces = split_long_edges(points, faces, longest, limit=4 * (len(order) + size))
    if not collapse:
        return Mesh(points, faces)
    kept, coarse = decimate(points, faces, min(size, len(points)), required=False)
    return Mesh(points[kept], coarse)


def _ordered(mesh: Mesh) -> tuple[IntArray, NDArray[np.float64], NDArray[np.int32]]:
    """Vertices in an order that does not depend on that of the file, in which edges of equal cost are collapsed.

    Returns the vertices of the mesh in that order, their coordinates, and the faces.
    """
    centred = mesh.vertices - mesh.vertices.mean(axis=0)
    order = np.argsort(np.einsum("nd,nd->n", centred, centred), kind="stable")
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return order, np.asarray(mesh.vertices[order], np.float64), number[mesh.faces]


def _subset(path: str, kept: IntArray, n: int) -> Source:
    """The source of a shape that has some of n vertices."""
    back = np.full(n, -1, np.int32)
    back[kept] = np.arange(len(kept), dtype=np.int32)
    return Source(path, back, kept.astype(np.int32))


def _without_debris(mesh: Mesh) -> Mesh:
    """The main components where there are many: the others cannot be matched, and each would keep some vertices."""
    count, member = vertex_components(mesh.faces, len(mesh.vertices))
    if count <= COMPONENTS:
        return mesh
    corners = mesh.vertices[mesh.faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    main = main_components(np.bincount(member[mesh.faces[:, 0]], areas, count).astype(float))
    kept = np.isin(member, main)
    number = np.cumsum(kept, dtype=np.int32) - 1
    return Mesh(mesh.vertices[kept], number[mesh.faces[kept[mesh.faces[:, 0]]]])


@compiled(nogil=True)
def _farthest(points: FloatArray, first: int, count: int) -> NDArray[np.int64]:
    samples = np.empty(count, np.int64)
    gap = np.full(len(points), np.inf)
    latest = first
    for k in range(count):
        samples[k] = latest
        x, y, z = points[latest]
        farthest, most = 0, -1.0
        for i in range(len(points)):
            dx, dy, dz = points[i, 0] - x, points[i, 1] - y, points[i, 2] - z
            gap[i] = min(gap[i], dx * dx + dy * dy + dz * dz)
            if gap[i] > most:
                farthest, most = i, gap[i]
        latest = farthest
    return samples
