"""Making a surface of what a file holds: every fault found, mended where it can be, and recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.defects import inside_out, is_soup, same_place, spanning_orientation, stitches, swap_flat, without_area
from acnn.shapes.formats.raw import FormatError
from acnn.shapes.mesh import Finding
from acnn.shapes.topology import agree, boundary_loops, consistent_flips, face_components, fans, mesh_edges, unpaired
from acnn.types import IntArray

ROUNDS = 4
MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(eq=False)
class Mended:
    """A mesh on its way from file to surface.

    Attributes
    ----------
    vertices : (file vertices, 3) array
        As in the file.
    faces : (m, 3) array
        Vertices; of the file until `to_file` is set, then of the mended mesh.
    uv_faces : (m, 3) array or None
        Or None.
    polygon : (m,) array
        The file's polygon that each face belongs to.
    from_file, to_file : array
        As in `Source`.
    findings : list[Finding]
        In the order found.
    """

    vertices: NDArray[np.float64]
    faces: IntArray
    uv_faces: IntArray | None
    polygon: IntArray
    from_file: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    to_file: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    findings: list[Finding] = field(default_factory=list)

    def note(self, kind: str, count: int, text: str, repaired: bool = True) -> None:
        """Record a fault and what was done about it."""
        self.findings.append(Finding(kind, int(count), text, repaired))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Leave out faces."""
        self.faces, self.polygon = self.faces[kept], self.polygon[kept]
        if self.uv_faces is not None:
            self.uv_faces = self.uv_faces[kept]

    def turn(self, turned: NDArray[np.bool_]) -> None:
        """Turn faces over."""
        self.faces[turned] = self.faces[turned][:, [0, 2, 1]]
        if self.uv_faces is not None:
            self.uv_faces[turned] = self.uv_faces[turned][:, [0, 2, 1]]


def mend(
    vertices: NDArray[np.float64], faces: IntArray, uv_faces: IntArray | None, polygon: IntArray, soup: bool
) -> Mended:
    """Turn triangles into an oriented manifold surface, possibly with boundary and several components.

    In this order: coinciding vertices are joined where the surface demands it; faces without area and repeated faces
    are left out; edges with more than two faces, and vertices where fans of faces meet in a point, are cut; faces are
    turned so that neighbours agree and the outside is outside; vertices without a face are left out. Vertices keep the
    file's order; copies made by cutting come last.

    Parameters
    ----------
    vertices : (n, 3) array
        Finite where a face uses them.
    faces : (m, 3) array
        In 0..n-1.
    uv_faces : (m, 3) array or None
        Or None.
    polygon : (m,) array
        Face in the file.
    soup : bool
        True where the format cannot share vertices.

    Raises
    ------
    FormatError
        Where no face with an area is left.
    """
    work = Mended(vertices, faces.copy(), None if uv_faces is None else uv_faces.copy(), polygon)
    label = _weld(work, soup)
    _drop_degenerate(work)
    _drop_repeated(work)
    work.to_file = np.arange(len(vertices))
    # Cutting may leave faces side by side that did not count as neighbours before, so it is looked at again.
    for _ in range(ROUNDS):
        first, second, crowded = _cut_edges(work)
        cut = _orient(work, first, second)
        if cut is not None:
            first, second = first[~cut], second[~cut]
        _cut_vertices(work, first, second)
        if cut is None and not crowded:
            break
    _number(work, label)
    _turn_outside_out(work, first, second)
    return work


def _weld(work: Mended, soup: bool) -> IntArray:
    n = len(work.vertices)
    place = same_place(work.vertices)
    doubles = int((place != np.arange(n)).sum())
    if doubles == 0:
        return place
    soup = soup or is_soup(work.faces, place)
    label = stitches(work.faces, place, soup)
    joined = int((label != np.arange(n)).sum())
    if joined:
        why = "no two faces share a vertex (a triangle soup)" if soup else "they split the surface along its edges"
        first = int(np.flatnonzero(label != np.arange(n))[0])
        work.note(
            "duplicate-vertices",
            joined,
            f"{joined} vertices lie exactly on another one (first: vertex {first} on vertex {int(label[first])}) "
            f"and {why}: joined",
        )
    apart = np.flatnonzero((place != np.arange(n)) & (label == np.arange(n)))
    if len(apart):
        work.note(
            "coincident-vertices",
            len(apart),
            f"{len(apart)} vertices lie exactly on another one without being part of the same surface there "
            f"(first: vertex {int(apart[0])} on vertex {int(place[apart[0]])}): kept apart",
            repaired=False,
        )
    work.faces = label[work.faces]
    return label


def _drop_degenerate(work: Mended) -> None:
    a, b, c = work.faces.T
    repeated = (a == b) | (b == c) | (a == c)
    flat = repeated | without_area(work.vertices, work.faces)
    count = int(flat.sum())
    if count:
        first = int(work.polygon[np.flatnonzero(flat)[0]])
        work.keep(~repeated)
        swapped = swap_flat(work.vertices, work.faces, work.uv_faces) if count > int(repeated.sum()) else 0
        left = without_area(work.vertices, work.faces)
        work.keep(~left)
        what = f"{count} faces have no area, {int(repeated.sum())} of them a repeated vertex (first: face {first})"
        done = f"{swapped} given one by swapping an edge with a neighbour, the rest left out" if swapped else "left out"
        work.note("degenerate-faces", count, f"{what}: {done}")
    if len(work.faces) == 0:
        raise FormatError(
            "no face has an area: all its points lie on one line or in one place, or it holds no real surface"
        )


def _drop_repeated(work: Mended) -> None:
    n = len(work.vertices)
    ordered = np.sort(work.faces, axis=1)
    key = ordered[:, 0] * n + ordered[:, 1]
    # Mixed into one word, triples sort much faster; only where two words agree need the triples be compared.
    word = np.sort(key.astype(np.uint64) * MIX + ordered[:, 2].astype(np.uint64))
    if not (word[1:] == word[:-1]).any():
        return
    order = np.lexsort((ordered[:, 2], key))
    same = (key[order[1:]] == key[order[:-1]]) & (ordered[order[1:], 2] == ordered[order[:-1], 2])
    repeated = np.zeros(len(ordered), bool)
    repeated[order[1:][same]] = True
    count = int(repeated.sum())
    if count:
        first = int(work.polygon[np.flatnonzero(repeated)[0]])
        work.note("duplicate-faces", count, f"{count} faces repeat another one (first: face {first}): left out")
        work.keep(~repeated)


def _cut_edges(work: Mended) -> tuple[IntArray, IntArray, int]:
    """The pairs of half-edges where exactly two faces meet, and the number of edges with more."""
    edges = mesh_edges(work.faces)
    crowded = np.flatnonzero(edges.counts > 2)
    if len(crowded):
        a, b = work.to_file[np.sort(edges.vertices[crowded[0]])]
        work.note(
            "non-manifold-edges",
            len(crowded),
            f"{len(crowded)} edges have more than two faces (first: between vertices {int(a)} and {int(b)}, "
            f"{int(edges.counts[crowded[0]])} faces): cut apart there",
        )
    first, second = edges.pairs()
    return first, second, len(crowded)


def _orient(work: Mended, first: IntArray, second: IntArray) -> NDArray[np.bool_] | None:
    """Turn faces so that neighbours agree; which pairs of half-edges must be cut because they cannot, or None."""
    if agree(work.faces, first, second).all():
        return None
    turned, one_sided = consistent_flips(work.faces, first, second)
    cut = None
    if one_sided.any():
        turned |= spanning_orientation(work.faces, first, second, one_sided)
    count = int(turned.sum())
    if count:
        face = int(work.polygon[np.flatnonzero(turned)[0]])
        work.note(
            "inconsistent-orientation",
            count,
            f"{count} faces run against their neighbours (first: face {face}): turned over",
        )
        # Corners move within a face, so its half-edges do too: 0, 1, 2 become 2, 1, 0.
        work.turn(turned)
        for half in (first, second):
            moved = turned[half // 3]
            half[moved] += 2 - 2 * (half[moved] % 3)
    if one_sided.any():
        cut = ~agree(work.faces, first, second)
        work.note(
            "one-sided-surface",
            int(one_sided.sum()),
            f"a part of {int(one_sided.sum())} faces has no outside (a Moebius band): cut along {int(cut.sum())} edges",
        )
    return cut


def _cut_vertices(work: Mended, first: IntArray, second: IntArray) -> None:
    """Give each fan of faces a vertex of its own; the first fan keeps it, the others get new ones at the end."""
    n = len(work.to_file)
    flat = work.faces.reshape(-1)
    count, fan = fans(work.faces, first, second)
    vertex_of_fan = np.zeros(count, np.int64)
    vertex_of_fan[fan] = flat
    per_vertex = np.bincount(vertex_of_fan, minlength=n)
    split = np.flatnonzero(per_vertex > 1)
    if len(split) == 0:
        return
    main_fan = np.full(n, -1, np.int64)
    main_fan[flat[::-1]] = fan[::-1]
    number = vertex_of_fan.copy()
    further = np.flatnonzero(main_fan[vertex_of_fan] != np.arange(count))
    further = further[np.argsort(vertex_of_fan[further], kind="stable")]
    number[further] = n + np.arange(len(further))
    work.note(
        "non-manifold-vertices",
        len(split),
        f"at {len(split)} vertices several fans of faces meet (first: vertex {int(work.to_file[split[0]])}, "
        f"{int(per_vertex[split[0]])} fans): each fan has its own copy, {len(further)} vertices more",
    )
    work.to_file = np.concatenate([work.to_file, work.to_file[vertex_of_fan[further]]])
    work.faces = number[fan].reshape(-1, 3)


def _number(work: Mended, label: IntArray) -> None:
    """Leave out vertices without a face and record how the rest relate to the file's."""
    used = np.zeros(len(work.to_file), bool)
    used[work.faces.reshape(-1)] = True
    number = np.cumsum(used) - 1
    number[~used] = -1
    work.from_file = number[label]
    lost = np.flatnonzero(work.from_file < 0)
    if len(lost):
        work.note(
            "unreferenced-vertices",
            len(lost),
            f"{len(lost)} vertices have no face (first: vertex {int(lost[0])}): left out",
        )
    if not used.all():
        work.faces, work.to_file = number[work.faces], work.to_file[used]


def _turn_outside_out(work: Mended, first: IntArray, second: IntArray) -> None:
    m = len(work.faces)
    count, component = face_components(first, second, m)
    half_edges = unpaired(first, second, m)
    loops, loop = boundary_loops(work.faces, half_edges)
    points = work.vertices[work.to_file]
    turned, closed, opened = inside_out(points, work.faces, component, count, half_edges, loop, loops)
    if closed or opened:
        parts = [f"{closed} closed" if closed else "", f"{opened} open" if opened else ""]
        how = "volume below zero" + (", open ones with their holes capped" if opened else "")
        work.note(
            "inside-out",
            int(turned.sum()),
            f"{' and '.join(p for p in parts if p)} of {count} components are inside out ({how}): turned",
        )
        work.turn(turned)
    if count > 1:
        largest = int(np.bincount(component, minlength=count).max())
        work.note(
            "components",
            count,
            f"{count} separate components, the largest with {largest} faces: all kept",
            repaired=False,
        )
    if loops:
        work.note(
            "boundary",
            len(half_edges),
            f"the surface is open: {loops} boundary loops with {len(half_edges)} edges: kept",
            False,
        )
