"""Compiled core of geodesic polar charts: windows of straight lines, and the front that fills what they leave out.

A window is an edge of an unfolded triangle, seen from a source at the origin of a plane, and the directions between
which straight lines from the source reach it. Vectors are pairs of numbers in registers, not arrays.

Arrays are few and are passed one by one: a tuple of arrays, or a view of a row, counts references at every use, and
threads that share a mesh would wait for each other's counts (2.6 times the processor time on two cores).
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.types import FloatArray, IntArray

Vector: TypeAlias = tuple[float, float]

DEPTH = 3
"""Triangles that are unfolded beyond an edge from its virtual source."""

MOST_WINDOWS = 20_000
"""Windows of straight lines followed through one triangle at a centre; beyond, the front alone goes on."""

TRUST = 0.01
"""Fraction by which the front must undercut an exact distance: it errs by less, unless it found a shorter way."""

# Columns of the arrays below.
BEGIN, TWIN = 0, 1
LENGTH, APEX_X, APEX_Y, CORNER = 0, 1, 2, 3
RHO, THETA = 0, 1
PLACE, EXACT = 0, 1
REACHED, HEAP = 0, 1


class HalfEdges(NamedTuple):
    """A manifold mesh for walks over its surface.

    Half-edge h = 3 f + i runs from corner i of face f to the next corner; the third corner of the face is its apex.

    Attributes
    ----------
    first : (n,) int32 array
        A half-edge that begins at each vertex: the first of its fan on the boundary, the longest one elsewhere.
    links : (3 m, 2) int32 array
        The vertex where each half-edge begins, and the half-edge on its other side, -1 on the boundary.
    measures : (3 m, 4) array
        Length, the apex along and to the left of the half-edge, angle of the face where the half-edge begins.
    """

    first: NDArray[np.int32]
    links: NDArray[np.int32]
    measures: FloatArray


@compiled(nogil=True)
def charts_of(
    first: IntArray, links: IntArray, measures: FloatArray, radius: float, begin: int, end: int
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Charts of the vertices begin to end - 1.

    Parameters
    ----------
    first, links, measures
        Of `HalfEdges`.
    radius : float
        Of the charts.
    begin, end : int
        The centres.

    Returns
    -------
    tuple
        (end - begin,) lengths of rows; vertices, rho, theta of all rows, in no particular order within a row;
        (end - begin,) angles around the centres.
    """
    n = len(first)
    polar = np.empty((n, 2))  # rho, infinite where a vertex has not been reached, and theta
    marks = np.empty((n, 2), np.int32)  # place in the heap, -1 outside; 1 where reached by a straight line
    for v in range(n):
        polar[v, RHO], marks[v, PLACE], marks[v, EXACT] = np.inf, -1, 0
    lists = np.empty((n, 2), np.int32)  # vertices reached; heap of those to go on from, the nearest first
    sizes = np.zeros(2, np.int64)  # of both lists
    windows, edges = np.empty((MOST_WINDOWS, 8)), np.empty((MOST_WINDOWS, 2), np.int32)
    counts, angles = np.zeros(end - begin, np.int64), np.zeros(end - begin)
    vertices = np.empty(64 * (end - begin), np.int32)
    rho, theta = np.empty(len(vertices), np.float32), np.empty(len(vertices), np.float32)
    filled = 0
    for centre in range(begin, end):
        total, closed = _angle_sum(first, links, measures, centre)
        angle = 2.0 * math.pi if closed else total
        angles[centre - begin] = angle
        _straight_lines(
            first, links, measures, polar, marks, lists, sizes, windows, edges, centre, angle / total, radius
        )
        _front(first, links, measures, polar, marks, lists, sizes, windows, edges, centre, closed, radius)

        if filled + sizes[REACHED] > len(vertices):
            longer = 2 * (filled + sizes[REACHED])
            more_vertices, more_rho = np.empty(longer, np.int32), np.empty(longer, np.float32)
            more_theta = np.empty(longer, np.float32)
            for k in range(filled):
                more_vertices[k], more_rho[k], more_theta[k] = vertices[k], rho[k], theta[k]
            vertices, rho, theta = more_vertices, more_rho, more_theta
        for k in range(sizes[REACHED]):
            v = lists[k, REACHED]
            if polar[v, RHO] <= radius:
                direction = polar[v, THETA]
                if closed:
                    direction -= 2.0 * math.pi * math.floor(direction / (2.0 * math.pi))
                vertices[filled], rho[filled], theta[filled] = v, polar[v, RHO], direction
                filled += 1
                counts[centre - begin] += 1
            polar[v, RHO], marks[v, EXACT] = np.inf, 0
        sizes[REACHED] = 0
    return counts, vertices[:filled], rho[:filled], theta[:filled], angles


@compiled(nogil=True)
def _angle_sum(first: IntArray, links: IntArray, measures: FloatArray, centre: int) -> tuple[float, bool]:
    """Sum of the triangles' angles at a vertex, and whether they close around it."""
    total, h = 0.0, first[centre]
    while True:
        total += measures[h, CORNER]
        h = links[_before(h), TWIN]
        if h < 0 or h == first[centre]:
            return total, h >= 0


@compiled(nogil=True)
def _straight_lines(
    first: IntArray,
    links: IntArray,
    measures: FloatArray,
    polar: FloatArray,
    marks: IntArray,
    lists: IntArray,
    sizes: IntArray,
    windows: FloatArray,
    edges: IntArray,
    centre: int,
    slope: float,
    limit: float,
) -> None:
    """Reach what straight lines from the centre meet; `slope` scales angles at the centre to those of the chart."""
    _reach(polar, marks, lists, sizes, centre, 0.0, 0.0, True, -1.0)
    for follow in range(2):  # neighbours first: their distances keep windows from going around a limb
        angle, h = 0.0, first[centre]
        while True:
            after, before = _after(h), _before(h)
            right, left = measures[h, LENGTH], measures[before, LENGTH]
            corner = measures[h, CORNER]
            turn = corner * slope
            across = links[after, TWIN]
            if not follow:
                _reach(polar, marks, lists, sizes, links[after, BEGIN], right, angle, True, limit)
            elif across >= 0:
                end = left * math.cos(corner), left * math.sin(corner)
                _look(
                    links, measures, polar, marks, lists, sizes, windows, edges,
                    across, end, right, angle, turn, MOST_WINDOWS, True, limit,
                )  # fmt: skip
            angle += turn
            h = links[before, TWIN]
            if h < 0 and not follow:
                _reach(polar, marks, lists, sizes, links[before, BEGIN], left, angle, True, limit)
            if h < 0 or h == first[centre]:
                break


@compiled(nogil=True)
def _front(
    first: IntArray,
    links: IntArray,
    measures: FloatArray,
    polar: FloatArray,
    marks: IntArray,
    lists: IntArray,
    sizes: IntArray,
    windows: FloatArray,
    edges: IntArray,
    centre: int,
    closed: bool,
    limit: float,
) -> None:
    """Reach the other vertices from virtual sources, in the order of distance."""
    while sizes[HEAP]:
        j = _nearest(polar, marks, lists, sizes)
        h = first[j]
        while True:
            before = _before(h)
            # In the triangle j, p, q the vertex q lies beyond the edge jp, and p beyond the edge qj.
            for side in range(2):
                edge = before if side else h
                left, right, apex = links[edge, BEGIN], links[_after(edge), BEGIN], links[_before(edge), BEGIN]
                distance = polar[j, RHO] + measures[h if side else before, LENGTH]
                if distance < polar[apex, RHO]:
                    _reach(polar, marks, lists, sizes, apex, distance, polar[j, THETA], False, limit)
                # A straight line is replaced only where the way over j is shorter, which clears the mark just above.
                if marks[apex, EXACT] or left == centre or right == centre:
                    continue
                a, b, length = polar[left, RHO], polar[right, RHO], measures[edge, LENGTH]
                if not (abs(a - b) < length < a + b < np.inf):
                    continue
                x = (a * a + b * b - length * length) / (2.0 * b)  # the left end along the line to the right end
                turn = polar[left, THETA] - polar[right, THETA]
                if closed:
                    turn -= 2.0 * math.pi * np.rint(turn / (2.0 * math.pi))
                _look(
                    links, measures, polar, marks, lists, sizes, windows, edges,
                    edge, (x, math.sqrt(max(a * a - x * x, 0.0))), b, polar[right, THETA], turn, DEPTH, False, limit,
                )  # fmt: skip
            h = links[before, TWIN]
            if h < 0 or h == first[j]:
                break


@compiled(nogil=True)
def _look(
    links: IntArray,
    measures: FloatArray,
    polar: FloatArray,
    marks: IntArray,
    lists: IntArray,
    sizes: IntArray,
    windows: FloatArray,
    edges: IntArray,
    edge: int,
    left_end: Vector,
    right_distance: float,
    angle: float,
    turn: float,
    depth: int,
    exact: bool,
    limit: float,
) -> None:
    """Reach the vertices that straight lines from a source meet beyond an edge.

    Parameters
    ----------
    links, measures
        Of `HalfEdges`.
    polar, marks, lists, sizes, windows, edges
        As in `charts_of`.
    edge : int
        The half-edge, its face beyond it.
    left_end : tuple[float, float]
        Where it begins, in the plane of the source with the right end on the x axis.
    right_distance : float
        Of its right end, where it ends, from the source.
    angle, turn : float
        Direction of the right end in the chart, and what the left end adds to it.
    depth : int
        Triangles to unfold at most.
    exact : bool
        The source is the centre.
    limit : float
        Distance beyond which nothing matters.
    """
    span = 0.0  # angle at the source between the ends, once it is needed
    right_end = right_distance, 0.0
    _queue(windows, edges, 0, left_end, right_end, left_end, right_end, edge, 0)
    done, count = 0, 1
    while done < count:
        a, b = (windows[done, 0], windows[done, 1]), (windows[done, 2], windows[done, 3])
        left, right = (windows[done, 4], windows[done, 5]), (windows[done, 6], windows[done, 7])
        h, steps = edges[done, 0], edges[done, 1]
        done += 1
        along_x, along_y = (b[0] - a[0]) / measures[h, LENGTH], (b[1] - a[1]) / measures[h, LENGTH]
        x, y = measures[h, APEX_X], measures[h, APEX_Y]
        c = a[0] + x * along_x - y * along_y, a[1] + x * along_y + y * along_x
        beyond_right, beyond_left = _cross(right, c) < 0.0, _cross(c, left) < 0.0
        before, after = _before(h), _after(h)
        if not (beyond_right or beyond_left):
            distance, apex = math.sqrt(c[0] * c[0] + c[1] * c[1]), links[before, BEGIN]
            if distance < polar[apex, RHO]:
                if span == 0.0:
                    span = math.atan2(left_end[1], left_end[0])
                    # Ends that were reached around different sides of a limb have no common source.
                    if span <= 0.0 or (not exact and abs(turn) > 2.0 * span + 1.0):
                        return
                direction = angle + turn * (math.atan2(c[1], c[0]) / span)
                _reach(polar, marks, lists, sizes, apex, distance, direction, exact, limit)
        if steps + 1 >= depth or count + 2 > MOST_WINDOWS:
            continue
        if not beyond_left and links[before, TWIN] >= 0:
            nearer = right if beyond_right else c
            if _worth(links, measures, polar, before, a, c, left, nearer, limit):
                _queue(windows, edges, count, a, c, left, nearer, links[before, TWIN], steps + 1)
                count += 1
        if not beyond_right and links[after, TWIN] >= 0:
            nearer = left if beyond_left else c
            if _worth(links, measures, polar, after, c, b, nearer, right, limit):
                _queue(windows, edges, count, c, b, nearer, right, links[after, TWIN], steps + 1)
                count += 1


@compiled(nogil=True)
def _queue(
    windows: FloatArray,
    edges: IntArray,
    at: int,
    a: Vector,
    b: Vector,
    left: Vector,
    right: Vector,
    edge: int,
    steps: int,
) -> None:
    """Write a window: an edge from a to b, seen between the directions left and right."""
    windows[at, 0], windows[at, 1] = a
    windows[at, 2], windows[at, 3] = b
    windows[at, 4], windows[at, 5] = left
    windows[at, 6], windows[at, 7] = right
    edges[at, 0], edges[at, 1] = edge, steps


@compiled(nogil=True)
def _worth(
    links: IntArray,
    measures: FloatArray,
    polar: FloatArray,
    h: int,
    a: Vector,
    b: Vector,
    left: Vector,
    right: Vector,
    limit: float,
) -> bool:
    """Whether lines through a window can be shortest (the filter of Xin and Wang, ACM TOG 28(4), 2009).

    They cannot where the far side of the window is reached sooner along the edge from the other end. `h` is the
    half-edge from b to a, in the triangle that the lines come from.
    """
    length = measures[h, LENGTH]
    along = b[0] - a[0], b[1] - a[1]
    fraction = min(max(-(a[0] * along[0] + a[1] * along[1]) / (length * length), 0.0), 1.0)
    x, y = a[0] + fraction * along[0], a[1] + fraction * along[1]
    if x * x + y * y > limit * limit:
        return False
    at_left = min(max(_cross(a, left) / _crossing(left, along), 0.0), 1.0)
    at_right = min(max(_cross(a, right) / _crossing(right, along), 0.0), 1.0)
    x, y = a[0] + at_right * along[0], a[1] + at_right * along[1]
    sooner = polar[links[_after(h), BEGIN], RHO] + at_right * length
    if x * x + y * y > sooner * sooner:
        return False
    x, y = a[0] + at_left * along[0], a[1] + at_left * along[1]
    sooner = polar[links[h, BEGIN], RHO] + (1.0 - at_left) * length
    return x * x + y * y <= sooner * sooner


@compiled(nogil=True)
def _crossing(direction: Vector, along: Vector) -> float:
    """Cross product by which to divide; lines that run along an edge meet it at an end."""
    crossed = _cross(direction, along)
    return crossed if crossed != 0.0 else 1e-300


@compiled(nogil=True)
def _reach(
    polar: FloatArray,
    marks: IntArray,
    lists: IntArray,
    sizes: IntArray,
    v: int,
    distance: float,
    direction: float,
    exact: bool,
    limit: float,
) -> None:
    """Take a distance and direction of a vertex if it is nearer than known, and go on from there if within limits."""
    trust = TRUST if marks[v, EXACT] and not exact else 1e-9
    if not distance < polar[v, RHO] * (1.0 - trust):
        return
    if polar[v, RHO] == np.inf:
        lists[sizes[REACHED], REACHED] = v
        sizes[REACHED] += 1
    polar[v, RHO], polar[v, THETA], marks[v, EXACT] = distance, direction, exact
    if distance <= limit:
        at = marks[v, PLACE]
        if at < 0:
            at = sizes[HEAP]
            sizes[HEAP] += 1
        while at > 0 and polar[lists[(at - 1) // 2, HEAP], RHO] > distance:
            _put(marks, lists, at, lists[(at - 1) // 2, HEAP])
            at = (at - 1) // 2
        _put(marks, lists, at, v)


@compiled(nogil=True)
def _nearest(polar: FloatArray, marks: IntArray, lists: IntArray, sizes: IntArray) -> int:
    """Take the nearest vertex out of the heap."""
    nearest = lists[0, HEAP]
    marks[nearest, PLACE] = -1
    sizes[HEAP] -= 1
    size = sizes[HEAP]
    last, at = lists[size, HEAP], 0
    while size:
        below = 2 * at + 1
        if below + 1 < size and polar[lists[below + 1, HEAP], RHO] < polar[lists[below, HEAP], RHO]:
            below += 1
        if below >= size or polar[lists[below, HEAP], RHO] >= polar[last, RHO]:
            _put(marks, lists, at, last)
            break
        _put(marks, lists, at, lists[below, HEAP])
        at = below
    return nearest


@compiled(nogil=True)
def _put(marks: IntArray, lists: IntArray, at: int, v: int) -> None:
    lists[at, HEAP] = v
    marks[v, PLACE] = at


@compiled(nogil=True)
def _cross(a: Vector, b: Vector) -> float:
    return a[0] * b[1] - a[1] * b[0]


@compiled(nogil=True)
def _after(h: int) -> int:
    return h - 2 if h % 3 == 2 else h + 1


@compiled(nogil=True)
def _before(h: int) -> int:
    return h + 2 if h % 3 == 0 else h - 1
