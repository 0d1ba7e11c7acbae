"""The first eigenpairs of a Laplacian: W phi = lambda S phi."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, SuperLU, eigsh, splu

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.topology import groups
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

COMPONENTS = 50
"""Components up to which a surface has its own spectrum: a quarter of the 200 eigenfunctions that maps are made of."""

MAIN = 0.95
"""Fraction of the area that is no debris."""


@check_arguments
def eigenpairs(stiffness: sp.csr_array, mass: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Smallest k eigenvalues and their eigenfunctions, orthonormal with respect to the mass.

    Shift-and-invert Lanczos on S^-1/2 W S^-1/2 from a fixed start vector; where it does not converge it is tried again
    with a larger shift and a larger subspace, and eigenvalues that it passed over are counted and fetched. The sign of
    each eigenfunction is fixed so that its entry of largest size is positive. A shape of k components or more has k
    eigenvalues 0; its eigenfunctions are constant on the k largest components, one each, and 0 elsewhere.

    Parameters
    ----------
    stiffness : (n, n) array
        Symmetric, positive semidefinite, zero row sums.
    mass : (n,) array
        Positive.
    k : int
        How many, below n.

    Returns
    -------
    tuple[array, array]
        (k,) ascending eigenvalues and (n, k) eigenfunctions.

    Raises
    ------
    InputError
        Where k is out of range, entries are not finite, a mass is not positive, or nothing converges.
    """
    n = len(mass)
    if not 0 < k < n:
        raise InputError(f"Asked for {k} eigenpairs of a shape with {n} vertices; 1 to {n - 1} can be computed.")
    bad = np.flatnonzero(~(np.isfinite(mass) & (mass > 0)))
    if len(bad):
        raise InputError(
            f"Vertex {bad[0]} (and {len(bad) - 1} more) has no area, so there are no eigenfunctions. "
            "Mend the shape with 'acnn info SHAPE --repair OUT'."
        )
    if not np.isfinite(stiffness.data).all():
        raise InputError("The Laplacian has entries that are not finite: the shape has triangles without area.")
    root = np.sqrt(mass)
    scaled = sp.csc_array(sp.diags_array(1 / root) @ stiffness @ sp.diags_array(1 / root))
    scaled = (scaled + scaled.T) * 0.5
    if k > n // 2 or n < 200:  # Lanczos would build most of the space anyway
        values, vectors = np.linalg.eigh(scaled.toarray())
        values, vectors = values[:k], vectors[:, :k]
    else:
        components, member = _components(stiffness)
        if components >= k:
            return np.zeros(k), _constants(member, mass, k)
        values, vectors = _lanczos(scaled, k, float(mass.sum()), components)
    order = np.argsort(values, kind="stable")
    functions = vectors[:, order] / root[:, None]
    largest = np.argmax(np.abs(functions), axis=0)
    functions *= np.where(functions[largest, np.arange(k)] < 0, -1.0, 1.0)
    # Rayleigh quotients from differences along edges keep small eigenvalues exact where slivers make entries huge.
    upper = sp.triu(stiffness, 1).tocoo()
    values = -upper.data @ (functions[upper.row] - functions[upper.col]) ** 2
    order = np.argsort(values, kind="stable")
    return np.maximum(values[order], 0.0), functions[:, order]


def surface_eigenpairs(surface: Surface, k: int) -> tuple[FloatArray, FloatArray]:
    """First eigenpairs of the Laplacian of a surface, of which debris takes none.

    Every component has an eigenvalue 0, so that a scan with hundreds of specks around it would have no other among the
    first. A surface of more than `COMPONENTS` components is therefore replaced by its `main_components`.

    Parameters
    ----------
    surface : Surface
    k
        How many; fewer where there are not as many vertices.

    Returns
    -------
    eigenvalues : array
        (k,) ascending.
    eigenfunctions : array
        (n, k) orthonormal with respect to the vertex areas, 0 on what was left out.
    """
    from acnn.surface.laplacian import stiffness

    matrix, mass = stiffness(surface), surface.vertex_areas
    n = len(mass)
    count, member = _components(matrix)
    if count <= COMPONENTS:
        return eigenpairs(matrix, mass, min(k, n - 1))
    kept = np.flatnonzero(np.isin(member, main_components(np.bincount(member, mass).astype(float))))
    values, inner = eigenpairs(sp.csr_array(matrix[kept][:, kept]), mass[kept], min(k, len(kept) - 1))
    functions = np.zeros((n, len(values)))
    functions[kept] = inner
    return values, functions


def main_components(areas: FloatArray) -> IntArray:
    """The largest components that together have `MAIN` of the area, the largest first."""
    order = np.argsort(-areas, kind="stable")
    total = np.cumsum(areas[order])
    return order[: int(np.searchsorted(total, MAIN * total[-1])) + 1]


def _components(stiffness: sp.csr_array) -> tuple[int, IntArray]:
    """How many connected components there are, and the one of each vertex (n,)."""
    links = stiffness.tocoo()
    linked = links.data != 0
    return groups(links.row[linked], links.col[linked], stiffness.shape[0])


def _constants(member: IntArray, mass: FloatArray, k: int) -> FloatArray:
    """(n, k) functions constant on one component each, the k largest first, of norm 1 with respect to the mass."""
    areas = np.bincount(member, weights=mass)
    chosen = np.argsort(-areas, kind="stable")[:k]
    return (member[:, None] == chosen) / np.sqrt(areas[chosen])


def _lanczos(matrix: sp.csc_array, k: int, area: float, components: int) -> tuple[FloatArray, FloatArray]:
    n = matrix.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    problem: Exception | None = None
    for shift, room in ((0.01, 2), (1.0, 3), (100.0, 4)):
        sigma = -shift / area  # keeps the factorisation definite, and is small beside the first nonzero eigenvalue
        try:
            solve = _factorised(matrix, sigma).solve
            inverse = LinearOperator((n, n), matvec=solve, dtype=float)
            space = min(n, max(room * k, k + 20))
            values, vectors = eigsh(matrix, k, sigma=sigma, which="LM", OPinv=inverse, v0=start, ncv=space, tol=1e-10)
            values, vectors = _completed(matrix, sigma, solve, values, vectors)
        except (ArpackError, RuntimeError) as error:
            problem = error
            continue
        if np.isfinite(values).all() and np.isfinite(vectors).all():
            return values, vectors
    raise InputError(
        f"The first {k} eigenpairs could not be computed ({problem}). The shape has {components} connected "
        f"component{'' if components == 1 else 's'}, and probably slivers or parts that are "
        "many orders of magnitude apart in size: mend it with 'acnn info SHAPE --repair OUT', or ask for fewer."
    )


def _completed(
    matrix: sp.csc_array,
    sigma: float,
    solve: Callable[[FloatArray], FloatArray],
    values: FloatArray,
    vectors: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Add what Lanczos missed: of an eigenvalue repeated by symmetry it finds only some copies.

    By Sylvester's law of inertia a factorisation of A - mu has as many negative pivots as A has eigenvalues below mu.
    Where that is more than were found, the search goes on in the complement of what is known.
    """
    n, k = vectors.shape
    for attempt in range(10):
        order = np.argsort(values, kind="stable")[:k]
        values, vectors = values[order], vectors[:, order]
        mu = values[-1] * (1.0 - 1e-5)
        factor = _factorised(matrix, mu)
        if not np.array_equal(factor.perm_r, factor.perm_c):  # pivots moved off the diagonal: their signs mean nothing
            break
        missing = int(np.sum(factor.U.diagonal() < 0)) - int(np.sum(values < mu))
        if missing <= 0:
            break
        known = vectors

        def restricted(x: FloatArray, known: FloatArray = known) -> FloatArray:
            x = solve(x - known @ (known.T @ x))
            return x - known @ (known.T @ x)

        start = restricted(np.random.default_rng(attempt + 1).standard_normal((n,)))
        operator = LinearOperator((n, n), matvec=restricted, dtype=float)
        more, found = eigsh(operator, min(missing + 2, n - k - 1), which="LM", v0=start, tol=1e-10)
        values, vectors = np.append(values, sigma + 1.0 / more), np.hstack([vectors, found])
    order = np.argsort(values, kind="stable")[:k]
    return values[order], vectors[:, order]


def _factorised(matrix: sp.csc_array, shift: float) -> SuperLU:
    shifted = (matrix - shift * sp.eye_array(matrix.shape[0], format="csc")).tocsc()
    return splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
