"""Comparison of two groups of aligned shapes by permutation tests: one for the whole shape, one at every vertex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError

Array = NDArray[np.float64]

CHUNK = 4_000_000
"""Numbers in one block of permutations: 32 MB."""

RIDGE = 1e-8
"""Added to the scatter at a vertex, as a fraction of the mean over all vertices, so that it can be inverted."""


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Difference of the mean shapes of two groups, second minus first, with p-values.

    Attributes
    ----------
    names : tuple[str, str]
        Of the groups.
    counts : tuple[int, int]
        Numbers of shapes.
    difference : (n, 3) array
        Difference of the means, in the common frame.
    distance : float
        Its root mean square over the vertices.
    p_value : float
        Of the whole shape: how often a random assignment to groups of these sizes gives at least this distance.
    hotelling : (n,) array
        Hotelling's T^2 at each vertex; NaN where a group has data of fewer than two shapes.
    p_values : (n,) array
        At each vertex: how often the largest T^2 of all vertices under a random assignment is at least that of the
        vertex. This corrects for multiple comparison: the probability of any false finding is at most the level.
    uncorrected : (n,) array
        The same with the T^2 of the vertex itself under random assignments.
    permutations : int
        Number of random assignments.
    """

    names: tuple[str, str]
    counts: tuple[int, int]
    difference: Array
    distance: float
    p_value: float
    hotelling: Array
    p_values: Array
    uncorrected: Array
    permutations: int

    def as_dict(self) -> dict[str, Any]:
        """Key figures for JSON: no arrays of vertices."""
        known = np.isfinite(self.p_values)
        return {
            "names": list(self.names),
            "counts": list(self.counts),
            "distance": self.distance,
            "p_value": self.p_value,
            "smallest_vertex_p_value": float(self.p_values[known].min()) if known.any() else None,
            "significant_vertices": int(np.count_nonzero(self.p_values[known] <= 0.05)),
            "permutations": self.permutations,
        }


def compare_groups(
    shapes: Array,
    groups: Sequence[str | None],
    *,
    weights: Array | None = None,
    permutations: int = 1999,
    seed: int = 0,
) -> GroupComparison:
    """Compare the means of two groups of aligned shapes by permutation tests.

    A p-value is (1 + b) / (1 + permutations), where b random assignments give at least the observed statistic; so the
    level is kept for every distribution and sample size, as long as shapes were aligned (and completed) without
    knowledge of the groups. At a vertex, T^2 = (N - 2) q / (1 - q) with q = (n_1 n_2 / N) d^T S^-1 d, for d the
    difference of the means and S the total scatter, which no assignment changes.

    Parameters
    ----------
    shapes : (s, n, 3) array
        Aligned together, without missing values.
    groups : sequence of str or None
        Group of each shape; None leaves a shape out.
    weights : (s, n) array or None
        0 where a shape has no data; vertices are tested where both groups have data of two shapes.
    permutations : int
        Number of random assignments.
    seed : int
        Random seed.

    Returns
    -------
    GroupComparison

    Raises
    ------
    InputError
        Where there are not two groups of at least two shapes each.
    """
    first, second = group_names(groups, len(shapes))
    if permutations < 19:
        raise InputError(f"{permutations} permutations: give at least 19, the least that can reach p = 0.05.")
    used = np.array([group is not None for group in groups])
    member = np.array([group == second for group in groups])[used]
    x = shapes[used].reshape(int(used.sum()), -1)
    total, ones = len(x), int(member.sum())
    x = x - x.mean(axis=0)
    random = np.random.default_rng(seed)
    assignments = np.array([member] + [random.permutation(member) for _ in range(permutations)])
    contrasts = np.where(assignments, 1 / ones, -1 / (total - ones))  # (1 + permutations, s)
    difference = (contrasts[0] @ x).reshape(-1, 3)
    squares = np.einsum("ps,st,pt->p", contrasts, x @ x.T, contrasts, optimize=True)
    q, largest, exceeded = _vertex_statistics(contrasts, x, _tested(weights, used, member))
    q *= ones * (total - ones) / total
    return GroupComparison(
        (first, second),
        (total - ones, ones),
        difference,
        float(np.sqrt(np.mean((difference**2).sum(axis=1)))),
        _exceedance(squares),
        (total - 2) * q / np.maximum(1 - q, 1e-12),
        _corrected(q, largest * ones * (total - ones) / total),
        np.where(np.isnan(q), np.nan, exceeded / (1 + permutations)),
        permutations,
    )


def group_names(groups: Sequence[str | None], count: int) -> tuple[str, str]:
    """The two groups, sorted by name; InputError where there are not two of at least two shapes each."""
    if len(groups) != count:
        raise InputError(f"There are {len(groups)} group labels for {count} shapes: give one for each, or None.")
    names = sorted({str(group) for group in groups if group is not None})
    if len(names) != 2:
        raise InputError(
            f"There are {len(names)} groups{': ' + ', '.join(names[:6]) if names else ''}. Two are compared: name two, "
            "and leave other shapes without a group."
        )
    for name in names:
        if (members := list(groups).count(name)) < 2:
            raise InputError(f"Group '{name}' has {members} shape: at least two in each group are needed.")
    return names[0], names[1]


def _tested(weights: Array | None, used: NDArray[np.bool_], member: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Vertices at which both groups have data of at least two shapes; None is all."""
    if weights is None:
        return None
    data = weights[used] > 0
    return np.asarray((data[member].sum(axis=0) >= 2) & (data[~member].sum(axis=0) >= 2))


def _vertex_statistics(
    contrasts: Array, x: Array, tested: NDArray[np.bool_] | None
) -> tuple[Array, Array, NDArray[np.int64]]:
    """d^T S^-1 d at the vertices, its largest per permutation, and how many permutations reach it at each vertex."""
    points = x.reshape(len(x), -1, 3)
    if tested is None:
        tested = np.ones(points.shape[1], bool)
    points = points[:, tested]
    scatter = np.einsum("sni,snj->nij", points, points)
    ridge = RIDGE * np.trace(scatter, axis1=1, axis2=2).mean() / 3 if points.size else 0.0
    values, vectors = np.linalg.eigh(scatter)
    whitened = np.einsum("sni,nij->snj", points, vectors) / np.sqrt(np.maximum(values, 0.0) + max(ridge, 1e-300))
    flat = whitened.reshape(len(x), -1)
    statistics = np.full(len(tested), np.nan)
    exceeded = np.zeros(len(tested), np.int64)
    largest = np.zeros(len(contrasts))
    if points.size:
        observed = ((contrasts[0] @ flat).reshape(-1, 3) ** 2).sum(axis=1)
        statistics[tested] = observed
        counts = np.zeros(len(observed), np.int64)
        step = max(1, CHUNK // flat.shape[1])
        for begin in range(0, len(contrasts), step):
            some = ((contrasts[begin : begin + step] @ flat).reshape(-1, len(observed), 3) ** 2).sum(axis=2)
            largest[begin : begin + step] = some.max(axis=1)
            counts += (some >= observed * (1 - 1e-9)).sum(axis=0)
        exceeded[tested] = counts  # the observed assignment is the first of them
    return statistics, largest, exceeded


def _exceedance(statistics: Array) -> float:
    """Fraction of all assignments, the observed one first, with at least the observed value up to rounding."""
    return float(np.mean(statistics >= statistics[0] * (1 - 1e-9)))


def _corrected(values: Array, largest: Array) -> Array:
    """P-values of vertices from the largest statistics of all assignments; NaN where not tested."""
    order = np.sort(largest)
    below = np.searchsorted(order, np.nan_to_num(values) * (1 - 1e-9), side="left")
    return np.where(np.isnan(values), np.nan, (len(order) - below) / len(order))
