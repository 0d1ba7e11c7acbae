"""Repair of meshes: from the triangles of a file to an oriented manifold surface, with a record of every change."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.defects import (
    coincident_vertices,
    degenerate_faces,
    inside_out,
    is_triangle_soup,
    spanning_tree_flips,
    swap_degenerate_edges,
    weld_labels,
)
from acnn.shapes.formats.raw import FormatError
from acnn.shapes.mesh import Finding
from acnn.shapes.topology import (
    boundary_loops,
    consistent_flips,
    face_components,
    fans,
    mesh_edges,
    orientations_agree,
    unpaired_half_edges,
)
from acnn.types import IntArray

MAX_CUT_ROUNDS = 4
"""Limit on the rounds of cutting; a cut can leave faces side by side that were not neighbours before."""

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, the multiplier of Fibonacci hashing."""


@dataclass(eq=False)
class MeshRepair:
    """A mesh under repair.

    Attributes
    ----------
    vertices : (file vertices, 3) array
        As in the file.
    faces : (m, 3) array
        Vertices; of the file until `to_file` is set, then of the repaired mesh.
    uv_faces : (m, 3) array or None
        Rows of the texture coordinates.
    polygon : (m,) array
        The file's polygon that each face belongs to.
    from_file, to_file : array
        As in `Source`.
    findings : list[Finding]
        In the order in which they were made.
    """

    vertices: NDArray[np.float64]
    faces: IntArray
    uv_faces: IntArray | None
    polygon: IntArray
    from_file: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    to_file: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    findings: list[Finding] = field(default_factory=list)

    def note(self, kind: str, count: int, text: str, repaired: bool = True) -> None:
        """Record a defect and what was done about it."""
        self.findings.append(Finding(kind, int(count), text, repaired))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Remove the faces where `kept` is False."""
        self.faces, self.polygon = self.faces[kept], self.polygon[kept]
        if self.uv_faces is not None:
            self.uv_faces = self.uv_faces[kept]

    def flip(self, flipped: NDArray[np.bool_]) -> None:
        """Reverse the orientation of faces."""
        self.faces[flipped] = self.faces[flipped][:, [0, 2, 1]]
        if self.uv_faces is not None:
            self.uv_faces[flipped] = self.uv_faces[flipped][:, [0, 2, 1]]


def repair_mesh(
    vertices: NDArray[np.float64], faces: IntArray, uv_faces: IntArray | None, polygon: IntArray, soup: bool
) -> MeshRepair:
    """Turn triangles into an oriented manifold surface, possibly with boundary and several components.

    In this order: coincident vertices are welded where they belong to one surface; degenerate and duplicate faces are
    removed; edges with more than two faces and vertices with several fans are cut; faces are flipped so that neighbours
    are consistent and normals point outwards; vertices without a face are removed. Vertices keep the order of the file,
    and copies made by cutting come last.

    Parameters
    ----------
    vertices : (n, 3) array
        Finite where a face uses them.
    faces : (m, 3) array
        Vertices in 0..n-1.
    uv_faces : (m, 3) array or None
        Rows of the texture coordinates.
    polygon : (m,) array
        The file's polygon that each face belongs to.
    soup : bool
        Whether the format cannot share vertices between faces.

    Returns
    -------
    MeshRepair

    Raises
    ------
    FormatError
        Where no face with an area remains.
    """
    work = MeshRepair(vertices, faces.copy(), None if uv_faces is None else uv_faces.copy(), polygon)
    labels = _weld(work, soup)
    _remove_degenerate(work)
    _remove_duplicates(work)
    work.to_file = np.arange(len(vertices))
    for _ in range(MAX_CUT_ROUNDS):
        first, second, non_manifold = _manifold_pairs(work)
        cut = _orient(work, first, second)
        if cut is not None:
            first, second = first[~cut], second[~cut]
        _cut_vertices(work, first, second)
        if cut is None and not non_manifold:
            break
    _remove_unreferenced(work, labels)
    _orient_outwards(work, first, second)
    return work


def _weld(work: MeshRepair, soup: bool) -> IntArray:
    """Weld coincident vertices that belong to one surface; the (n,) vertex that stands for each."""
    own = np.arange(len(work.vertices))
    points = coincident_vertices(work.vertices)
    if (points == own).all():
        return points
    soup = soup or is_triangle_soup(work.faces, points)
    labels = weld_labels(work.faces, points, soup)
    welded = np.flatnonzero(labels != own)
    if len(welded):
        why = "no two faces share a vertex (a triangle soup)" if soup else "they split the surface along its edges"
        work.note(
            "duplicate-vertices",
            len(welded),
            f"{len(welded)} vertices coincide with another one (first: vertex {int(welded[0])} with vertex "
            f"{int(labels[welded[0]])}) and {why}: merged",
        )
    separate = np.flatnonzero((points != own) & (labels == own))
    if len(separate):
        work.note(
            "coincident-vertices",
            len(separate),
            f"{len(separate)} vertices coincide with another one without belonging to the same surface there "
            f"(first: vertex {int(separate[0])} with vertex {int(points[separate[0]])}): kept separate",
            repaired=False,
        )
    work.faces = labels[work.faces]
    return labels


def _remove_degenerate(work: MeshRepair) -> None:
    a, b, c = work.faces.T
    repeated = (a == b) | (b == c) | (a == c)
    degenerate = repeated | degenerate_faces(work.vertices, work.faces)
    count = int(degenerate.sum())
    if count:
        first = int(work.polygon[np.flatnonzero(degenerate)[0]])
        work.keep(~repeated)
        some = count > int(repeated.sum())
        swapped = swap_degenerate_edges(work.vertices, work.faces, work.uv_faces) if some else 0
        work.keep(~degenerate_faces(work.vertices, work.faces))
        what = f"{count} faces have no area, {int(repeated.sum())} of them a repeated vertex (first: face {first})"
        done = f"{swapped} repaired by swapping an edge with a neighbour, the rest removed" if swapped else "removed"
        work.note("degenerate-faces", count, f"{what}: {done}")
    if len(work.faces) == 0:
        raise FormatError("no face has an area: all points coincide or lie on one line, or it holds no real surface")


def _remove_duplicates(work: MeshRepair) -> None:
    n = len(work.vertices)
    ordered = np.sort(work.faces, axis=1)
    key = ordered[:, 0] * n + ordered[:, 1]
    # Sorting one hash is much faster than sorting triples, which are compared only where two hashes are equal.
    hashes = np.sort(key.astype(np.uint64) * HASH_FACTOR + ordered[:, 2].astype(np.uint64))
    if not (hashes[1:] == hashes[:-1]).any():
        return
    order = np.lexsort((ordered[:, 2], key))
    same = (key[order[1:]] == key[order[:-1]]) & (ordered[order[1:], 2] == ordered[order[:-1], 2])
    duplicate = np.zeros(len(ordered), bool)
    duplicate[order[1:][same]] = True
    count = int(duplicate.sum())
    if count:
        first = int(work.polygon[np.flatnonzero(duplicate)[0]])
        work.note("duplicate-faces", count, f"{count} faces repeat another one (first: face {first}): removed")
        work.keep(~duplicate)


def _manifold_pairs(work: MeshRepair) -> tuple[IntArray, IntArray, int]:
    """The pairs of half-edges where exactly two faces meet, and the number of edges with more."""
    edges = mesh_edges(work.faces)
    non_manifold = np.flatnonzero(edges.counts > 2)
    if len(non_manifold):
        a, b = work.to_file[np.sort(edges.vertices[non_manifold[0]])]
        work.note(
            "non-manifold-edges",
            len(non_manifold),
            f"{len(non_manifold)} edges have more than two faces (first: between vertices {int(a)} and {int(b)}, "
            f"{int(edges.counts[non_manifold[0]])} faces): cut apart",
        )
    first, second = edges.pairs()
    return first, second, len(non_manifold)


def _orient(work: MeshRepair, first: IntArray, second: IntArray) -> NDArray[np.bool_] | None:
    """Flip faces so that neighbours are consistent; the pairs of half-edges to cut where they cannot be, or None."""
    if orientations_agree(work.faces, first, second).all():
        return None
    flipped, non_orientable = consistent_flips(work.faces, first, second)
    if non_orientable.any():
        flipped |= spanning_tree_flips(work.faces, first, second, non_orientable)
    count = int(flipped.sum())
    if count:
        face = int(work.polygon[np.flatnonzero(flipped)[0]])
        work.note(
            "inconsistent-orientation",
            count,
            f"{count} faces are oriented against their neighbours (first: face {face}): flipped",
        )
        # Corners move within a face, and its half-edges with them: 0, 1, 2 become 2, 1, 0.
        work.flip(flipped)
        for half in (first, second):
            moved = flipped[half // 3]
            half[moved] += 2 - 2 * (half[moved] % 3)
    if not non_orientable.any():
        return None
    cut = ~orientations_agree(work.faces, first, second)
    work.note(
        "one-sided-surface",
        int(non_orientable.sum()),
        f"{int(non_orientable.sum())} faces belong to a one-sided surface (Moebius band): cut along "
        f"{int(cut.sum())} edges",
    )
    return cut


def _cut_vertices(work: MeshRepair, first: IntArray, second: IntArray) -> None:
    """Give each fan of faces a vertex of its own; the first fan keeps it, the others get new ones at the end."""
    n = len(work.to_file)
    corners = work.faces.reshape(-1)
    count, fan = fans(work.faces, first, second)
    vertex_of_fan = np.zeros(count, np.int64)
    vertex_of_fan[fan] = corners
    fan_counts = np.bincount(vertex_of_fan, minlength=n)
    split = np.flatnonzero(fan_counts > 1)
    if len(split) == 0:
        return
    main_fan = np.full(n, -1, np.int64)
    main_fan[corners[::-1]] = fan[::-1]
    further = np.flatnonzero(main_fan[vertex_of_fan] != np.arange(count))
    further = further[np.argsort(vertex_of_fan[further], kind="stable")]
    new_vertex = vertex_of_fan.copy()
    new_vertex[further] = n + np.arange(len(further))
    work.note(
        "non-manifold-vertices",
        len(split),
        f"{len(split)} vertices have several fans of faces (first: vertex {int(work.to_file[split[0]])}, "
        f"{int(fan_counts[split[0]])} fans): duplicated for each fan, {len(further)} vertices added",
    )
    work.to_file = np.concatenate([work.to_file, work.to_file[vertex_of_fan[further]]])
    work.faces = new_vertex[fan].reshape(-1, 3)


def _remove_unreferenced(work: MeshRepair, labels: IntArray) -> None:
    """Remove vertices without a face, and set the correspondence to the file's vertices."""
    used = np.zeros(len(work.to_file), bool)
    used[work.faces.reshape(-1)] = True
    new_vertex = np.where(used, np.cumsum(used) - 1, -1)
    work.from_file = new_vertex[labels]
    removed = np.flatnonzero(work.from_file < 0)
    if len(removed):
        work.note(
            "unreferenced-vertices",
            len(removed),
            f"{len(removed)} vertices have no face (first: vertex {int(removed[0])}): removed",
        )
    if not used.all():
        work.faces, work.to_file = new_vertex[work.faces], work.to_file[used]


def _orient_outwards(work: MeshRepair, first: IntArray, second: IntArray) -> None:
    """Flip components that are inside out; record components and boundaries."""
    m = len(work.faces)
    count, component = face_components(first, second, m)
    half_edges = unpaired_half_edges(first, second, m)
    loops, loop = boundary_loops(work.faces, half_edges)
    points = work.vertices[work.to_file]
    flipped, closed, opened = inside_out(points, work.faces, component, count, half_edges, loop, loops)
    if closed or opened:
        which = " and ".join(f"{number} {kind}" for number, kind in ((closed, "closed"), (opened, "open")) if number)
        why = "negative volume" + (", open ones with their holes capped" if opened else "")
        work.note("inside-out", int(flipped.sum()), f"{which} of {count} components are inside out ({why}): flipped")
        work.flip(flipped)
    if count > 1:
        largest = int(np.bincount(component, minlength=count).max())
        text = f"{count} separate components, the largest with {largest} faces: all kept"
        work.note("components", count, text, repaired=False)
    if loops:
        text = f"the surface is open: {loops} boundary loops with {len(half_edges)} edges: kept"
        work.note("boundary", len(half_edges), text, repaired=False)
