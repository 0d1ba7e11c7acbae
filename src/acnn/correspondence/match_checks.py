"""Checks, before any work, that a shape can be matched."""

from __future__ import annotations

from typing import Any

import numpy as np

from acnn.errors import InputError
from acnn.shapes.defects import coincident_vertices
from acnn.shapes.describe import describe
from acnn.shapes.mesh import Mesh, PointCloud, Shape
from acnn.shapes.topology import groups, vertex_components
from acnn.surface.cloud import LOCAL_NEIGHBOURS
from acnn.surface.spectra import COMPONENTS, MAIN, main_components
from acnn.types import FloatArray, IntArray

FEWEST, FEWEST_SPECTRAL = 4, 25
"""Vertices below which nothing is matched: without eigenfunctions those of the smallest closed surface; with them 20
eigenfunctions, with which refinement begins, and some to spare."""

LINE = 1e-4
"""Width over length, as standard deviations of the points, below which a shape is a line: a rod 20,000 times as long as
wide."""

MANY = 1000
"""Number of points above which a cloud is assumed to have a surface."""

FLAT = 1e-6
"""Thickness over length, as standard deviations of the points, below which a shape is flat."""


UNITS = 2.0, 1e4
"""Fewest and most units of length that the diagonal of a shape may have: a full shape has a diameter of 200."""


def check_matchable(shape: Shape, name: str, *, spectral: bool = True, unit: float | None = None) -> list[str]:
    """Check that a shape has a surface on which vertices can be distinguished.

    Parameters
    ----------
    shape : Shape
        As `load` returns it.
    name : str
        What it is called in messages where it did not come from a file, such as `A`.
    spectral : bool
        Whether eigenfunctions are needed: for descriptor matching, to which the pretrained model falls back. A network
        that was trained on fragments, or on shapes of many components, can match such shapes without.
    unit : float or None
        Unit of length that was given for the shape; None is its own.

    Returns
    -------
    list[str]
        Notices about what makes a good match unlikely: components that cannot be matched, a flat shape.

    Raises
    ------
    InputError
        Where the shape cannot be matched, with what would be needed.
    """
    who = f"{name} ({shape.source.name})" if shape.source is not None and shape.source.path else name
    n = len(shape.vertices)
    fewest = FEWEST_SPECTRAL if spectral else FEWEST
    if n < fewest:
        what = f"{n} points" if not isinstance(shape, Mesh) else f"{n} vertices and {len(shape.faces)} faces"
        raise InputError(
            f"{who} has only {what}: at least {fewest} vertices are needed, and 1,000 or more for a good "
            "match. Subdivide it, or export it with more detail."
        )
    length, width, thickness = _spreads(shape.vertices)
    if not width > LINE * length:
        raise InputError(
            f"{who}: its {n} points lie on a line, as far as their extent shows, so there is no surface to match. "
            "Export the surface, without points that are far away from it."
        )
    if unit is not None:
        _check_unit(shape, who, unit)
    notices = []
    if not isinstance(shape, Mesh) and n < MANY:
        notices.append(
            f"{who} has only {n} points: so few may not separate the two sides of thin regions, such as limbs. Sample "
            f"the surface with {MANY:,} points or more, or give it as a mesh."
        )
    if not thickness > FLAT * length:
        notices.append(f"{who} is flat: without curvature, matches follow its outline only.")
    if not spectral:
        return notices
    areas, member = _components(shape)
    main = main_components(areas)
    if len(areas) <= COMPONENTS:
        return notices
    if len(main) > COMPONENTS:
        raise InputError(
            f"{who} consists of {len(areas)} separate components, of which {len(main)} make up {MAIN:.0%} of its area: "
            f"shapes of at most {COMPONENTS} components can be matched. Join vertices that should be one, or match the "
            "components one by one."
        )
    unmatched = int((~np.isin(member, main)).sum())
    notices.append(
        f"{who} consists of {len(areas)} separate components. Matches of all but the {len(main)} largest "
        f"({unmatched} of {n} vertices) are unreliable: remove such debris for a clean map."
    )
    return notices


def _check_unit(shape: Shape, who: str, unit: float) -> None:
    """Raise InputError for a unit of length that no shape of this size can have."""
    if not (np.isfinite(unit) and unit > 0):
        raise InputError(f"The unit of length must be a positive number, not {unit:g}.")
    points = shape.vertices[np.isfinite(shape.vertices).all(axis=1)]
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0)))
    if not UNITS[0] <= diagonal / unit <= UNITS[1]:
        raise InputError(
            f"A unit of length of {unit:g} does not fit: the diagonal of {who} is {diagonal:g}, or "
            f"{diagonal / unit:.2g} units, but a full shape is about 200 units long. If this is a full shape, "
            f"its unit is about {diagonal / 200:.2g}; leave out --unit to have it measured."
        )


def describe_shape(shape: Mesh | PointCloud) -> dict[str, Any]:
    """Describe a shape, with the finding `no-surface` for a cloud from which no surface can be made.

    Parameters
    ----------
    shape : Mesh or PointCloud
        As `load` returns it.

    Returns
    -------
    dict[str, Any]
        As from `acnn.shapes.describe.describe`.
    """
    description = describe(shape)
    if isinstance(shape, PointCloud):
        # For matching, the cloud is loaded with repair, which merges coincident points.
        single = np.unique(coincident_vertices(np.asarray(shape.vertices, np.float64)))
        cloud = PointCloud(shape.vertices[single], None if shape.normals is None else shape.normals[single])
        if not _has_surface(cloud):
            text = f"no surface can be made from its {len(single)} points, so it cannot be matched: use more points"
            description["findings"].append({"kind": "no-surface", "count": 1, "text": text, "repaired": False})
    return description


def _spreads(points: FloatArray) -> FloatArray:
    """(3,) standard deviations of points along their principal axes, descending."""
    points = points[np.isfinite(points).all(axis=1)]  # vertices without a face may be anywhere
    centred = points - points.mean(axis=0)
    centred = centred / (np.abs(centred).max() or 1.0)
    return np.linalg.svd(centred, compute_uv=False, full_matrices=False) / np.sqrt(len(points))


def _components(shape: Shape) -> tuple[FloatArray, IntArray]:
    """The area of every component (of a cloud, its number of points), and the component of each vertex."""
    n = len(shape.vertices)
    if isinstance(shape, Mesh):
        count, member = vertex_components(shape.faces, n)
        a, b, c = (shape.vertices[shape.faces[:, k]] for k in range(3))
        areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
        return np.bincount(member[shape.faces[:, 0]], areas, count).astype(float), member
    from scipy.spatial import cKDTree

    near = cKDTree(shape.vertices).query(shape.vertices, min(LOCAL_NEIGHBOURS + 1, n))[1]
    count, member = groups(np.repeat(np.arange(n), near.shape[1]), near.ravel(), n)
    return np.bincount(member, minlength=count).astype(float), member


def _has_surface(cloud: PointCloud) -> bool:
    """Whether a surface can be made from a cloud; assumed without a try where it has more than `MANY` points."""
    from acnn.surface.surface import surface_of

    try:
        return len(cloud.vertices) > MANY or surface_of(cloud, unit=1.0) is not None
    except InputError:
        return False
