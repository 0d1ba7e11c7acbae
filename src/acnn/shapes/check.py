"""Checks of what a reader returns: indices, coordinates, polygons, then repair; every step is recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.defects import same_place
from acnn.shapes.formats.raw import FormatError, RawShape
from acnn.shapes.mesh import Finding, Mesh, PointCloud, Source, Texture
from acnn.shapes.repair import mend
from acnn.types import IntArray

SPAN = 1e100  # lengths outside 1 / SPAN .. SPAN overflow when squared


def checked_shape(raw: RawShape, path: str, kind: Literal["mesh", "cloud"] | None, repair: bool) -> Mesh | PointCloud:
    """The shape that a file or arrays hold, repaired where `repair` says so.

    Parameters
    ----------
    path : str
        The file, or empty.
    kind : {'mesh', 'cloud'} or None
        None takes a mesh where there are faces.

    Raises
    ------
    FormatError
        Where it cannot be used.
    """
    # What overflows in damaged numbers ends up infinite and is rejected below.
    with np.errstate(all="ignore"):
        check_indices(raw)
        if len(raw.sizes) == 0 and kind == "mesh":
            raise FormatError("it holds points but no faces. Load it as a cloud, or export the surface")
        if len(raw.sizes) and kind != "cloud":
            return checked_mesh(raw, path, repair)
        return checked_cloud(raw, path, repair)


def check_indices(raw: RawShape) -> None:
    """Raise FormatError where there are no vertices, or where a face uses one that is not there."""
    n = len(raw.vertices)
    if n == 0:
        raise FormatError("it holds no vertices")
    if n > np.iinfo(np.int32).max or len(raw.corners) > np.iinfo(np.int32).max:
        raise FormatError(f"{n} vertices are more than can be handled. Simplify it first")
    outside = np.flatnonzero((raw.corners < 0) | (raw.corners >= n))
    if len(outside):
        face = int(np.searchsorted(np.cumsum(raw.sizes), outside[0], side="right"))
        raise FormatError(
            f"face {face} uses vertex {int(raw.corners[outside[0]])}, but the {raw.origin} has {n} vertices (numbered "
            f"from 0); {len(outside)} face corners are wrong like that"
        )
    if raw.uv is not None and raw.uv_corners is not None and not np.isfinite(raw.uv).all():
        bad = int((~np.isfinite(raw.uv).all(axis=1)).sum())
        raw.note("texture-not-finite", bad, f"{bad} texture coordinates are not finite: set to 0")
        raw.uv = np.nan_to_num(raw.uv, nan=0.0, posinf=0.0, neginf=0.0)


def checked_mesh(raw: RawShape, path: str, repair: bool) -> Mesh:
    """The mesh of a file, mended where `repair` says so; raises FormatError where it cannot be used."""
    few = raw.sizes < 3
    if few.any():
        raw.note(
            "not-faces",
            int(few.sum()),
            f"{int(few.sum())} faces have fewer than three corners (first: face {int(np.argmax(few))}): left out",
        )
    used = np.zeros(len(raw.vertices), bool)
    used[raw.corners] = True
    finite = _finite(raw, used)
    bad = np.flatnonzero(~finite & used)
    if len(bad):
        raise FormatError(
            f"{len(bad)} vertices of faces are not finite (first: vertex {int(bad[0])}, "
            f"{raw.vertices[bad[0]].tolist()}). Remove them and their faces"
        )
    if not finite.all():
        count = int((~finite).sum())
        raw.note(
            "not-finite",
            count,
            f"{count} vertices without a face are not finite (first: vertex {int(np.flatnonzero(~finite)[0])})",
        )
    faces, uv_faces, polygon = _triangles(raw, ~few)
    findings = list(raw.findings)
    try:
        mended = mend(raw.vertices, faces, uv_faces, polygon, raw.soup)
    except FormatError as error:
        if repair:
            raise
        findings.append(Finding("no-area", len(faces), f"{error}; repair would reject it", False))
        return _as_read(raw, path, faces, uv_faces, findings)
    if not repair:
        would = [
            replace(f, repaired=False, text=f"{f.text} by repair; not done here") if f.repaired else f
            for f in mended.findings
        ]
        return _as_read(raw, path, faces, uv_faces, findings + would)
    colors = None if raw.colors is None else raw.colors[mended.to_file]
    if raw.colors is not None and colors is not None:
        kept = mended.from_file >= 0
        other = int((colors[mended.from_file[kept]] != raw.colors[kept]).any(axis=1).sum())
        if other:
            findings.append(
                Finding(
                    "colors-merged",
                    other,
                    f"{other} joined vertices had another colour: the first one's is kept",
                    False,
                )
            )
    texture = None if mended.uv_faces is None or raw.uv is None else _texture(raw, mended.uv_faces)
    source = Source(path, _int32(mended.from_file), _int32(mended.to_file), tuple(findings + mended.findings))
    return Mesh(np.ascontiguousarray(raw.vertices[mended.to_file]), _int32(mended.faces), colors, texture, source)


def checked_cloud(raw: RawShape, path: str, repair: bool) -> PointCloud:
    """The points of a file, finite and each once where `repair` says so; raises FormatError where there are none."""
    n = len(raw.vertices)
    findings = list(raw.findings)
    if len(raw.sizes):
        findings.append(
            Finding("faces-ignored", len(raw.sizes), f"{len(raw.sizes)} faces: left out, a cloud was asked for", False)
        )
    finite = _finite(raw, np.ones(n, bool))
    kept = np.arange(n)
    label = np.arange(n)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        if not repair:
            raise FormatError(
                f"{len(bad)} points are not finite (first: point {int(bad[0])}). "
                "Load it with repair, which leaves them out"
            )
        findings.append(
            Finding(
                "not-finite", len(bad), f"{len(bad)} points are not finite (first: point {int(bad[0])}): left out", True
            )
        )
    place = same_place(raw.vertices)
    doubles = np.flatnonzero(place != np.arange(n))
    if len(doubles):
        done = "joined" if repair else "kept; repair joins them"
        text = f"{len(doubles)} points lie exactly on another one (first: point {int(doubles[0])}): {done}"
        findings.append(Finding("duplicate-vertices", len(doubles), text, repair))
    if repair:
        label = np.where(finite, place, -1)
        kept = np.flatnonzero(label == np.arange(n))
    here = np.full(n + 1, -1, np.int64)
    here[kept] = np.arange(len(kept))
    normals = _unit_normals(raw, findings)
    return PointCloud(
        np.ascontiguousarray(raw.vertices[kept]),
        None if normals is None else normals[kept],
        None if raw.colors is None else raw.colors[kept],
        Source(path, _int32(here[label]), _int32(kept), tuple(findings)),
    )


def _finite(raw: RawShape, used: np.ndarray) -> np.ndarray:
    """Which vertices have finite coordinates; raises where they span too much or too little to compute with."""
    finite = np.asarray(np.isfinite(raw.vertices).all(axis=1))
    points = raw.vertices[finite & used]
    if len(points) == 0:
        raise FormatError("none of its vertices has finite coordinates")
    largest, extent = float(np.abs(points).max()), float(np.ptp(points, axis=0).max())
    if largest > SPAN:
        vertex = int(np.flatnonzero(finite & used)[np.abs(points).max(axis=1).argmax()])
        raise FormatError(f"vertex {vertex} has a coordinate of {largest:.1e}, which cannot be computed with")
    if extent < 1 / SPAN:
        raise FormatError("all its vertices lie in one place, so it has no area")
    return finite


def _triangles(raw: RawShape, kept: np.ndarray) -> tuple[np.ndarray, NDArray | None, np.ndarray]:
    corners, sizes = raw.corners, raw.sizes
    where = np.arange(len(corners))
    if not kept.all():
        where = np.flatnonzero(np.repeat(kept, sizes))
        sizes = sizes[kept]
    if len(sizes) == 0:
        raise FormatError("it holds no face with three corners or more")
    triangles, owner = triangulate(raw.vertices, corners[where], sizes)
    larger = int((sizes > 3).sum())
    if larger:
        first = int(np.flatnonzero(kept)[np.flatnonzero(sizes > 3)[0]])
        text = f"{larger} faces with four corners or more (first: face {first}): split into triangles"
        raw.findings.append(Finding("polygons", larger, text, True))
    triangles = where[triangles]
    uv_faces = None if raw.uv_corners is None else raw.uv_corners[triangles]
    return corners[triangles], uv_faces, np.flatnonzero(kept)[owner]


def _as_read(raw: RawShape, path: str, faces: np.ndarray, uv_faces: NDArray | None, findings: list[Finding]) -> Mesh:
    own = np.arange(len(raw.vertices), dtype=np.int32)
    texture = None if uv_faces is None or raw.uv is None else _texture(raw, uv_faces)
    return Mesh(raw.vertices, _int32(faces), raw.colors, texture, Source(path, own, own, tuple(findings)))


def _texture(raw: RawShape, uv_faces: np.ndarray) -> Texture:
    assert raw.uv is not None
    return Texture(np.ascontiguousarray(raw.uv, np.float64), _int32(uv_faces), raw.image)


def _unit_normals(raw: RawShape, findings: list[Finding]) -> NDArray | None:
    if raw.normals is None:
        return None
    length = np.linalg.norm(raw.normals, axis=1)
    bad = ~np.isfinite(length) | (length == 0)
    if bad.any():
        where = f"first: point {int(np.argmax(bad))}"
        text = f"{int(bad.sum())} normals are zero or not finite ({where}): all normals are left out"
        findings.append(Finding("bad-normals", int(bad.sum()), text, True))
        return None
    return raw.normals / length[:, None]


def _int32(array: np.ndarray) -> IntArray:
    return np.ascontiguousarray(array, dtype=np.int32)


EAR_BUDGET = 1_000_000  # ears take time like the square of the corners; beyond this, fans are left as they are


def triangulate(vertices: NDArray[np.float64], corners: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Split polygons into triangles that keep the polygon's vertices, orientation and order in the file.

    A polygon is split into a fan around its first corner; where a triangle of that fan would turn over (the polygon is
    not convex), around another corner for quads, and by clipping ears for larger ones.

    Parameters
    ----------
    vertices : (n, 3) array
    corners : (c,) array
        Vertex of each polygon corner.
    sizes : (polygons,) array
        Corners of each, at least 3.

    Returns
    -------
    tuple[array, array]
        (triangles, 3) positions in `corners`, and (triangles,) the polygon of each.
    """
    starts = np.cumsum(sizes) - sizes
    if len(sizes) and (sizes == 3).all():
        return np.arange(len(corners)).reshape(-1, 3), np.arange(len(sizes))
    counts = sizes - 2
    owner = np.repeat(np.arange(len(sizes)), counts)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = starts[owner]
    triangles = np.column_stack([first, first + step + 1, first + step + 2])
    turned = _turned_over(vertices, corners, sizes, triangles, owner)
    begin = np.cumsum(counts) - counts
    quads = turned[sizes[turned] == 4]
    triangles[begin[quads]] = starts[quads][:, None] + np.array([1, 2, 3])
    triangles[begin[quads] + 1] = starts[quads][:, None] + np.array([1, 3, 0])
    larger = turned[sizes[turned] > 4]
    affordable = np.cumsum(sizes[larger] ** 2) <= EAR_BUDGET
    for polygon in larger[affordable].tolist():
        at, size = int(starts[polygon]), int(sizes[polygon])
        ears = _clip_ears(vertices[corners[at : at + size]])
        triangles[begin[polygon] : begin[polygon] + size - 2] = at + np.array(ears, np.int64)
    return triangles, owner


def _turned_over(
    vertices: NDArray[np.float64], corners: IntArray, sizes: IntArray, triangles: IntArray, owner: IntArray
) -> IntArray:
    """Polygons with a fan triangle whose normal points against the polygon's own."""
    large = np.flatnonzero(sizes[owner] > 3)
    p = vertices[corners[triangles[large]]]
    with np.errstate(over="ignore", invalid="ignore"):
        normals = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
        total = np.zeros((len(sizes), 3))
        np.add.at(total, owner[large], normals)
        against = np.einsum("ij,ij->i", normals, total[owner[large]]) < 0
    return np.unique(owner[large][against])


def _clip_ears(points: NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """Triangles of a simple polygon, by taking off ears in the plane of its mean normal."""
    centred = points - points.mean(axis=0)
    normal = np.cross(centred, np.roll(centred, -1, axis=0)).sum(axis=0)
    drop = int(np.argmax(np.abs(normal)))
    keep = [(drop + 1) % 3, (drop + 2) % 3]
    # Mirrored where the normal points away, so that the polygon always runs counter-clockwise.
    flat = centred[:, keep] * (1.0 if normal[drop] >= 0 else np.array([-1.0, 1.0]))
    left = np.arange(len(points))
    result: list[tuple[int, int, int]] = []
    while len(left) > 3:
        before, after = np.roll(left, 1), np.roll(left, -1)
        convex = np.flatnonzero(_turn(flat[before], flat[left], flat[after]) > 0)
        ear = 1
        for i in convex.tolist():
            a, b, c = flat[before[i]], flat[left[i]], flat[after[i]]
            others = flat[left[(left != before[i]) & (left != left[i]) & (left != after[i])]]
            inside = (_turn(a, b, others) >= 0) & (_turn(b, c, others) >= 0) & (_turn(c, a, others) >= 0)
            if not inside.any():
                ear = i
                break
        result.append((int(before[ear]), int(left[ear]), int(after[ear])))
        left = np.delete(left, ear)
    result.append((int(left[0]), int(left[1]), int(left[2])))
    return result


def _turn(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the signed area of triangles in the plane, positive counter-clockwise."""
    return (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
