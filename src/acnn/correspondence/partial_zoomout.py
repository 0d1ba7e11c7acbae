"""ZoomOut of a part to its full shape, guided by matches of which many are right and some far off.

Functions of the full shape restricted to the part are smooth there, so the k first of them are expanded in the part's
own eigenfunctions, of which r(k) < k belong to the same frequencies (`partial_spectrum.py`) and s = `MARGIN` r are
taken, since along a cut they do not fit as they are:

    D_k = argmin sum_x w(x) |Phi_s(x) D - Psi_k(y(x))|^2,       y(x) = argmin_y |Phi_s(x) D_k - Psi_k(y)|,      C = D^T.

The other way round, functions of the part continued by zero, would have a jump along the cut. At every size, given
matches that fit replace those of ZoomOut (`guided_zoomout.py`), and w drops where a match fits badly or falls where the
part is known not to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.functional_map import functional_map_from_pairs
from acnn.correspondence.guided_zoomout import LIMIT, OUTLIER, local_support, match_vertices
from acnn.correspondence.partial_spectrum import PartialBases
from acnn.correspondence.soft_map import SoftMap
from acnn.correspondence.zoomout import mass_around, spread_vertices
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.edges import edges_with_faces
from acnn.surface.surface import Surface

FEWEST = 3
"""Eigenfunctions of the part below which nothing can be told apart."""


SAMPLES = 3000
"""Vertices of a part that determine a functional map of a few hundred eigenfunctions; more cost time only."""

MARGIN = 1.5
"""Eigenfunctions of the part over the rank. On cuts of SHREC'16 from SHOT matches, mean error x 100 of four parts with
1 and 1.5: 1.0 and 1.1, 4.5 and 1.3, 3.4 and 2.1, 6.6 and 3.5."""


@dataclass(frozen=True, eq=False)
class GuidedPart:
    """Result of `partial_zoomout`.

    - part_to_full: (n,) vertices of the full shape
    - functional_map: (k_full, k_part) C of the last size, part to full, in the bases it was made with
    - from_start: (n,) True where the match is one of the soft map's
    """

    part_to_full: IntArray
    functional_map: FloatArray
    from_start: NDArray[np.bool_]


def partial_zoomout(
    soft_map: SoftMap,
    part: Surface,
    full: Surface,
    bases: PartialBases,
    *,
    sizes: Sequence[int],
    start: FloatArray | None = None,
    inside: FloatArray | None = None,
    samples: tuple[IntArray, FloatArray] | None = None,
) -> GuidedPart:
    """Refine a soft map of a part to its full shape.

    Parameters
    - soft_map: all its listed matches are candidates
    - part, full: in the same run unit
    - bases: of both
    - sizes: numbers of eigenfunctions of the full shape, ascending; see `partial_sizes`
    - start: (k_full, k_part) functional map to start from; None fits one to the soft map
    - inside: (m,) in 0..1, where on the full shape the part is; None is 1 everywhere
    - samples: vertices of the part used before the last size and the area that each stands for, see `spread_samples`;
      None is all of them

    Raises InputError where sizes do not ascend or the soft map belongs to other shapes.
    """
    if soft_map.vertices.shape[0] != len(bases.part) or soft_map.reference_size != len(bases.full):
        raise InputError(
            f"{soft_map!r} does not belong to a part of {len(bases.part)} and a full shape of {len(bases.full)} "
            "vertices."
        )
    if not len(sizes) or any(b <= a for a, b in pairwise(sizes)):
        raise InputError(f"The sizes of ZoomOut must ascend; they are {list(sizes)}.")
    bases.full.first(sizes[-1])  # say at once where the basis is too small
    edges = edges_with_faces(full.faces)[0]
    support = local_support(soft_map.query_to_reference, part, full)
    current = robust_partial_map(soft_map, bases, sizes[0]) if start is None else start
    everything = np.arange(len(bases.part), dtype=np.int32), bases.part.mass
    for k in (*sizes[1:], None):
        rows, mass = everything if k is None or samples is None else samples
        points = (bases.part.first(current.shape[1])[rows] @ current.T).astype(np.float32)
        places = bases.full.first(current.shape[0]).astype(np.float32)
        matched, from_start = match_vertices(
            points, places, soft_map.rows(rows), support[rows], full, edges, LIMIT, OUTLIER
        )
        if k is not None:
            residual = ((points - places[matched]) ** 2).sum(axis=1, dtype=float)
            weights = mass / (1.0 + residual / max(4.0 * float(np.median(residual)), 1e-12))
            if inside is not None:
                weights *= np.maximum(inside[matched], 1e-3)
            size = (part_size(bases, k), k)
            current = functional_map_from_pairs(bases.part, bases.full, rows, matched, size, weights).T
    return GuidedPart(matched, current, from_start)


def robust_partial_map(soft_map: SoftMap, bases: PartialBases, k: int, rounds: int = 6) -> FloatArray:
    """(k, s) functional map of the best matches, weighted by area and confidence; outliers lose their weight.

    Weights are those of `robust_functional_map`: w / (1 + |residual|^2 / median)^2.
    """
    matched = soft_map.query_to_reference
    vertices = np.arange(len(matched), dtype=np.int32)
    size = (part_size(bases, k), k)
    phi, psi = bases.part.first(size[0]), bases.full.first(k)[matched]
    trust = bases.part.mass * np.maximum(soft_map.confidence, 1e-6)
    confident = soft_map.confidence >= np.median(soft_map.confidence)
    weights = trust
    for _ in range(rounds):
        current = functional_map_from_pairs(bases.part, bases.full, vertices, matched, size, weights)
        residual = ((phi @ current - psi) ** 2).sum(axis=1)
        weights = trust / (1.0 + residual / max(float(np.median(residual[confident])), 1e-12)) ** 2
    return current.T


def spread_samples(bases: PartialBases, count: int = SAMPLES) -> tuple[IntArray, FloatArray] | None:
    """(count,) vertices spread over the part and (count,) areas around them; None where there are few more vertices."""
    if len(bases.part) <= 1.5 * count:
        return None
    rows = spread_vertices(bases.part, count)
    return rows, mass_around(bases.part, rows)


def part_size(bases: PartialBases, k: int) -> int:
    """Eigenfunctions of the part that go with k of the full shape."""
    return min(max(round(MARGIN * bases.rank(k)), FEWEST), bases.part.size)


def partial_sizes(bases: PartialBases, start: int = 20, stop: int | None = None) -> list[int]:
    """Sizes of the full shape's basis from `start` to `stop` (None: all of it), a fifth more each, by 5 to 15."""
    last = bases.full.size if stop is None else min(stop, bases.full.size)
    sizes = [min(start, last)]
    while sizes[-1] < last:
        sizes.append(min(last, sizes[-1] + int(np.clip(sizes[-1] // 5, 5, 15))))
    return sizes
