"""Checks of what a reader returns: indices, coordinates and polygons, then repair; every change is recorded."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.defects import coincident_vertices
from acnn.shapes.formats.raw import FormatError, RawShape
from acnn.shapes.mesh import Finding, Mesh, PointCloud, Source, Texture
from acnn.shapes.repair import repair_mesh
from acnn.types import IntArray

MAX_COORDINATE = 1e100
"""Bound on coordinates, and its inverse on the extent: cubes of such lengths still fit into float64."""

EAR_BUDGET = 1_000_000
"""Limit on the sum of squared corner counts of the polygons split by ear clipping, whose time grows with the square."""

_log = logging.getLogger("acnn.shapes")


def build_shape(raw: RawShape, path: str, kind: Literal["mesh", "cloud"] | None, repair: bool) -> Mesh | PointCloud:
    """Build a shape from the contents of a file or from arrays, with checks and optional repair.

    Parameters
    ----------
    raw : RawShape
        Changed in place: it collects the findings.
    path : str
        The file; empty for arrays.
    kind : {'mesh', 'cloud'} or None
        None builds a mesh where there are faces.
    repair : bool
        Whether to repair the defects, or to list them only.

    Returns
    -------
    Mesh or PointCloud

    Raises
    ------
    FormatError
        Where no shape can be built.
    """
    # Numbers that overflow in a damaged file become infinite, which is checked below.
    with np.errstate(all="ignore"):
        _check_indices(raw)
        if len(raw.sizes) == 0 and kind == "mesh":
            raise FormatError("it holds points but no faces. Load it as a cloud, or export the surface")
        build = _build_mesh if len(raw.sizes) and kind != "cloud" else _build_cloud
        shape = build(raw, path, repair)
    assert shape.source is not None
    for finding in shape.source.findings:
        _log.log(logging.INFO if finding.repaired else logging.DEBUG, "%s: %s", shape.source.name, finding.text)
    return shape


def triangulate(vertices: NDArray[np.float64], corners: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Split polygons into triangles that keep the polygons' vertices, orientation and order.

    A polygon is split into a fan around its first corner. Where a triangle of that fan is inverted (the polygon is not
    convex), a quad is split along its other diagonal, and a larger polygon by ear clipping.

    Parameters
    ----------
    vertices : (n, 3) array
    corners : (c,) array
        Vertex of each polygon corner.
    sizes : (polygons,) array
        Number of corners of each polygon, at least 3.

    Returns
    -------
    (triangles, 3) array
        Indices into `corners`.
    (triangles,) array
        Polygon of each triangle.
    """
    if len(sizes) and (sizes == 3).all():
        return np.arange(len(corners)).reshape(-1, 3), np.arange(len(sizes))
    starts, counts = np.cumsum(sizes) - sizes, sizes - 2
    begin = np.cumsum(counts) - counts  # of each polygon in the triangles
    polygon = np.repeat(np.arange(len(sizes)), counts)
    step = np.arange(len(polygon)) - begin[polygon]
    first = starts[polygon]
    triangles = np.column_stack([first, first + step + 1, first + step + 2])
    inverted = _polygons_with_inverted_triangles(vertices, corners, sizes, triangles, polygon)
    quads = inverted[sizes[inverted] == 4]
    triangles[begin[quads]] = starts[quads][:, None] + np.array([1, 2, 3])
    triangles[begin[quads] + 1] = starts[quads][:, None] + np.array([1, 3, 0])
    larger = inverted[sizes[inverted] > 4]
    affordable = np.cumsum(sizes[larger] ** 2) <= EAR_BUDGET
    for number in larger[affordable].tolist():
        at, size = int(starts[number]), int(sizes[number])
        ears = _clip_ears(vertices[corners[at : at + size]])
        triangles[begin[number] : begin[number] + size - 2] = at + np.array(ears, np.int64)
    return triangles, polygon


def _check_indices(raw: RawShape) -> None:
    """Raise FormatError where there are no vertices, or where a face uses one that does not exist."""
    n = len(raw.vertices)
    if n == 0:
        raise FormatError("it holds no vertices")
    if n > np.iinfo(np.int32).max or len(raw.corners) > np.iinfo(np.int32).max:
        raise FormatError(f"{n} vertices are more than can be handled. Simplify it first")
    invalid = np.flatnonzero((raw.corners < 0) | (raw.corners >= n))
    if len(invalid):
        face = int(np.searchsorted(np.cumsum(raw.sizes), invalid[0], side="right"))
        raise FormatError(
            f"face {face} uses vertex {int(raw.corners[invalid[0]])}, but the {raw.origin} has {n} vertices (numbered "
            f"from 0); {len(invalid)} face corners are out of range"
        )
    if raw.uv is not None and raw.uv_corners is not None and not np.isfinite(raw.uv).all():
        count = int((~np.isfinite(raw.uv).all(axis=1)).sum())
        raw.note("texture-not-finite", count, f"{count} texture coordinates are not finite: set to 0")
        raw.uv = np.nan_to_num(raw.uv, nan=0.0, posinf=0.0, neginf=0.0)


def _build_mesh(raw: RawShape, path: str, repair: bool) -> Mesh:
    is_face = raw.sizes >= 3
    if not is_face.all():
        count, first = int((~is_face).sum()), int(np.argmin(is_face))
        raw.note("not-faces", count, f"{count} faces have fewer than three corners (first: face {first}): removed")
    used = np.zeros(len(raw.vertices), bool)
    used[raw.corners] = True
    finite = _finite_vertices(raw, used)
    invalid = np.flatnonzero(~finite & used)
    if len(invalid):
        raise FormatError(
            f"{len(invalid)} vertices of faces are not finite (first: vertex {int(invalid[0])}, "
            f"{raw.vertices[invalid[0]].tolist()}). Remove them and their faces"
        )
    if not finite.all():
        count, first = int((~finite).sum()), int(np.argmin(finite))
        raw.note("not-finite", count, f"{count} vertices without a face are not finite (first: vertex {first})")
    faces, uv_faces, polygon = _triangles(raw, is_face)
    findings = raw.findings
    try:
        result = repair_mesh(raw.vertices, faces, uv_faces, polygon, raw.soup)
    except FormatError as error:
        if repair:
            raise
        findings.append(Finding("no-area", len(faces), f"{error}; repair would reject it", False))
        return _mesh_as_read(raw, path, faces, uv_faces)
    if not repair:
        findings += [
            replace(f, repaired=False, text=f"{f.text} by repair (not applied)") if f.repaired else f
            for f in result.findings
        ]
        return _mesh_as_read(raw, path, faces, uv_faces)
    colors = None
    if raw.colors is not None:
        colors = raw.colors[result.to_file]
        kept = result.from_file >= 0
        lost = int((colors[result.from_file[kept]] != raw.colors[kept]).any(axis=1).sum())
        if lost:
            raw.note("colors-merged", lost, f"{lost} merged vertices had another colour: the first one's is kept")
    texture = _texture(raw, result.uv_faces)
    source = Source(path, _int32(result.from_file), _int32(result.to_file), (*findings, *result.findings))
    return Mesh(np.ascontiguousarray(raw.vertices[result.to_file]), _int32(result.faces), colors, texture, source)


def _build_cloud(raw: RawShape, path: str, repair: bool) -> PointCloud:
    n = len(raw.vertices)
    findings = raw.findings
    if len(raw.sizes):
        raw.note("faces-ignored", len(raw.sizes), f"{len(raw.sizes)} faces: ignored, as a cloud was requested")
    finite = _finite_vertices(raw, np.ones(n, bool))
    if not finite.all():
        count, first = int((~finite).sum()), int(np.argmin(finite))
        text = f"{count} points are not finite (first: point {first})"
        if not repair:
            raise FormatError(f"{text}. Load it with repair, which removes them")
        findings.append(Finding("not-finite", count, f"{text}: removed", True))
    labels = coincident_vertices(raw.vertices)
    duplicates = np.flatnonzero(labels != np.arange(n))
    if len(duplicates):
        done = "merged" if repair else "merged by repair (not applied)"
        text = f"{len(duplicates)} points coincide with another one (first: point {int(duplicates[0])}): {done}"
        findings.append(Finding("duplicate-vertices", len(duplicates), text, repair))
    labels = np.where(finite, labels, -1) if repair else np.arange(n)
    kept = np.flatnonzero(labels == np.arange(n))
    new_point = np.full(n + 1, -1, np.int64)  # the last entry, which label -1 refers to, stays -1
    new_point[kept] = np.arange(len(kept))
    normals = _unit_normals(raw)
    return PointCloud(
        np.ascontiguousarray(raw.vertices[kept]),
        None if normals is None else normals[kept],
        None if raw.colors is None else raw.colors[kept],
        Source(path, _int32(new_point[labels]), _int32(kept), tuple(findings)),
    )


def _finite_vertices(raw: RawShape, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,) which vertices are finite; raises FormatError where coordinates are too large or too close together."""
    finite = np.asarray(np.isfinite(raw.vertices).all(axis=1))
    points = raw.vertices[finite & used]
    if len(points) == 0:
        raise FormatError("none of its vertices has finite coordinates")
    largest, extent = float(np.abs(points).max()), float(np.ptp(points, axis=0).max())
    if largest > MAX_COORDINATE:
        vertex = int(np.flatnonzero(finite & used)[np.abs(points).max(axis=1).argmax()])
        raise FormatError(f"vertex {vertex} has a coordinate of {largest:.1e}, which is too large to compute with")
    if extent < 1 / MAX_COORDINATE:
        raise FormatError("all its vertices coincide, so it has no area")
    return finite


def _triangles(raw: RawShape, is_face: NDArray[np.bool_]) -> tuple[IntArray, NDArray[Any] | None, IntArray]:
    """(m, 3) vertices and texture rows of the triangles of all faces, and the (m,) polygon of each."""
    corners, sizes = raw.corners, raw.sizes
    where = np.arange(len(corners))
    if not is_face.all():
        where = np.flatnonzero(np.repeat(is_face, sizes))
        sizes = sizes[is_face]
    if len(sizes) == 0:
        raise FormatError("it holds no face with three corners or more")
    triangles, polygon = triangulate(raw.vertices, corners[where], sizes)
    larger = int((sizes > 3).sum())
    if larger:
        first = int(np.flatnonzero(is_face)[np.argmax(sizes > 3)])
        text = f"{larger} faces with four corners or more (first: face {first}): split into triangles"
        raw.findings.append(Finding("polygons", larger, text, True))
    triangles = where[triangles]
    uv_faces = None if raw.uv_corners is None else raw.uv_corners[triangles]
    return corners[triangles], uv_faces, np.flatnonzero(is_face)[polygon]


def _mesh_as_read(raw: RawShape, path: str, faces: IntArray, uv_faces: NDArray[Any] | None) -> Mesh:
    own = np.arange(len(raw.vertices), dtype=np.int32)
    source = Source(path, own, own, tuple(raw.findings))
    return Mesh(raw.vertices, _int32(faces), raw.colors, _texture(raw, uv_faces), source)


def _texture(raw: RawShape, uv_faces: NDArray[Any] | None) -> Texture | None:
    if raw.uv is None or uv_faces is None:
        return None
    return Texture(np.ascontiguousarray(raw.uv, np.float64), _int32(uv_faces), raw.image)


def _unit_normals(raw: RawShape) -> NDArray[Any] | None:
    if raw.normals is None:
        return None
    length = np.linalg.norm(raw.normals, axis=1)
    invalid = ~np.isfinite(length) | (length == 0)
    if invalid.any():
        where = f"first: point {int(np.argmax(invalid))}"
        text = f"{int(invalid.sum())} normals are zero or not finite ({where}): all normals are removed"
        raw.findings.append(Finding("bad-normals", int(invalid.sum()), text, True))
        return None
    return raw.normals / length[:, None]


def _int32(array: NDArray[Any]) -> IntArray:
    return np.ascontiguousarray(array, dtype=np.int32)


def _polygons_with_inverted_triangles(
    vertices: NDArray[np.float64], corners: IntArray, sizes: IntArray, triangles: IntArray, polygon: IntArray
) -> IntArray:
    """Polygons with a triangle whose normal points against the polygon's own."""
    large = np.flatnonzero(sizes[polygon] > 3)
    p = vertices[corners[triangles[large]]]
    normals = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    total = np.zeros((len(sizes), 3))
    np.add.at(total, polygon[large], normals)
    inverted = np.einsum("ij,ij->i", normals, total[polygon[large]]) < 0
    return np.unique(polygon[large][inverted])


def _clip_ears(points: NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """Triangles of a simple polygon, by clipping ears in the plane of its mean normal."""
    centred = points - points.mean(axis=0)
    normal = np.cross(centred, np.roll(centred, -1, axis=0)).sum(axis=0)
    drop = int(np.argmax(np.abs(normal)))
    axes = [(drop + 1) % 3, (drop + 2) % 3]
    # Mirrored where the normal points away, so that the polygon always runs counter-clockwise.
    planar = centred[:, axes] * (1.0 if normal[drop] >= 0 else np.array([-1.0, 1.0]))
    remaining = np.arange(len(points))
    triangles: list[tuple[int, int, int]] = []
    while len(remaining) > 3:
        before, after = np.roll(remaining, 1), np.roll(remaining, -1)
        convex = np.flatnonzero(_double_area(planar[before], planar[remaining], planar[after]) > 0)
        ear = 1
        for i in convex.tolist():
            a, b, c = planar[before[i]], planar[remaining[i]], planar[after[i]]
            others = planar[remaining[(remaining != before[i]) & (remaining != remaining[i]) & (remaining != after[i])]]
            inside = [_double_area(p, q, others) >= 0 for p, q in ((a, b), (b, c), (c, a))]
            if not np.logical_and.reduce(inside).any():
                ear = i
                break
        triangles.append((int(before[ear]), int(remaining[ear]), int(after[ear])))
        remaining = np.delete(remaining, ear)
    triangles.append((int(remaining[0]), int(remaining[1]), int(remaining[2])))
    return triangles


def _double_area(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the signed area of triangles in the plane, positive counter-clockwise."""
    return (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
