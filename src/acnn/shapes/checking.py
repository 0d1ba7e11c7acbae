"""From what a reader found to a checked shape: indices, coordinates, polygons, then repair, every step recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.polygons import triangulate
from acnn.shapes.formats.raw import FormatError, RawShape
from acnn.shapes.repair import mend
from acnn.shapes.shape import Finding, IntArray, Mesh, PointCloud, Source, Texture
from acnn.shapes.weld import same_place

SPAN = 1e100  # lengths outside 1 / SPAN .. SPAN overflow when squared


def checked_shape(raw: RawShape, path: str, kind: Literal["mesh", "cloud"] | None, repair: bool) -> Mesh | PointCloud:
    """The shape that a file or arrays hold, repaired where `repair` says so.

    - path: the file, or empty
    - kind: None takes a mesh where there are faces

    Raises FormatError where it cannot be used.
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
