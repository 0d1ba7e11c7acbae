"""The first eigenpairs of a Laplacian: W phi = lambda S phi."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, eigsh, splu

from acnn.errors import InputError
from acnn.shapes.shape import FloatArray


def eigenpairs(stiffness: sp.csr_array, mass: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Smallest k eigenvalues and their eigenfunctions, orthonormal with respect to the mass.

    Shift-and-invert Lanczos on S^-1/2 W S^-1/2 from a fixed start vector; where it does not converge it is tried again
    with a larger shift and a larger subspace. The sign of each eigenfunction is fixed so that its entry of largest
    size is positive.

    Parameters
    - stiffness: (n, n) symmetric, positive semidefinite, zero row sums
    - mass: (n,) positive
    - k: how many, below n

    Returns (k,) ascending eigenvalues and (n, k) eigenfunctions.
    Raises InputError where k is out of range, entries are not finite, a mass is not positive, or nothing converges.
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
        values, vectors = _lanczos(scaled, k)
    order = np.argsort(values, kind="stable")
    functions = vectors[:, order] / root[:, None]
    largest = np.argmax(np.abs(functions), axis=0)
    functions *= np.where(functions[largest, np.arange(k)] < 0, -1.0, 1.0)
    return np.maximum(values[order], 0.0), functions


def _lanczos(matrix: sp.csc_array, k: int) -> tuple[FloatArray, FloatArray]:
    n = matrix.shape[0]
    # The shift keeps the factorisation definite; it is small beside the first nonzero eigenvalue, about 1 / area.
    size = float(matrix.diagonal().mean()) / n
    start = np.random.default_rng(0).standard_normal(n)
    problem: Exception | None = None
    for shift, room in ((1e-3, 2), (1e-1, 3), (10.0, 4)):
        sigma = -shift * size
        shifted = (matrix - sigma * sp.eye_array(n, format="csc")).tocsc()
        try:
            factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
            inverse = sp.linalg.LinearOperator((n, n), matvec=factor.solve, dtype=float)
            values, vectors = eigsh(
                matrix,
                k,
                sigma=sigma,
                which="LM",
                OPinv=inverse,
                v0=start,
                ncv=min(n, max(room * k, k + 20)),
                tol=1e-10,
            )
        except (ArpackError, RuntimeError) as error:
            problem = error
            continue
        if np.isfinite(values).all() and np.isfinite(vectors).all():
            return values, vectors
    raise InputError(
        f"The first {k} eigenpairs could not be computed ({problem}). The mesh probably has slivers or parts that are "
        "many orders of magnitude apart in size: mend it with 'acnn info SHAPE --repair OUT', or ask for fewer."
    )
