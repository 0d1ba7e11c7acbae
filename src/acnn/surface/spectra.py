"""Spectra of a surface: the first eigenpairs of its Laplacians, W phi = lambda S phi, one problem for every angle."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, SuperLU, eigsh, splu

from acnn.arguments import check_arguments, check_fields
from acnn.errors import InputError
from acnn.progress import Progress
from acnn.shapes.topology import groups
from acnn.surface.curvature import SMOOTHING, principal_frames
from acnn.surface.laplacian import StiffnessParts, stiffness, stiffness_parts
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

COMPONENTS = 50
"""Largest number of components of a surface whose spectrum covers all of them: a quarter of the 200 eigenfunctions that
functional maps use."""

MAIN = 0.95
"""Fraction of the total area that `main_components` cover; the remaining components count as debris."""


@dataclass(frozen=True)
class SpectraSettings:
    """Everything that the spectra of a surface depend on besides the surface.

    Attributes
    ----------
    alpha : float
        Conductivity along the long axis over that across it; 1 is isotropic.
    angles : int
        L, the number of eigenproblems; the long axis of problem l is at theta_l = l pi / L from v_M.
    count : int
        k, the number of eigenpairs of each problem.
    smoothing : float
        Radius over which curvature is averaged, in normalised units.

    Raises
    ------
    InputError
        Where a value is out of range.
    """

    alpha: float = 1.0
    angles: int = 1
    count: int = 100
    smoothing: float = SMOOTHING

    def __post_init__(self) -> None:
        check_fields(self)
        if not (np.isfinite(self.alpha) and self.alpha >= 1):
            raise InputError(f"alpha = {self.alpha}: it must be at least 1, which is isotropic.")
        if not 1 <= self.angles <= 360:
            raise InputError(f"{self.angles} angles: the number of angles must be between 1 and 360.")
        if self.count < 1:
            raise InputError(f"{self.count} eigenpairs: at least one is needed.")

    @property
    def thetas(self) -> FloatArray:
        """(angles,) array, theta_l = l pi / L in radians."""
        return np.arange(self.angles) * np.pi / self.angles

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for files and hashes."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Spectra:
    """The first eigenpairs of L anisotropic Laplacians of one surface.

    For every angle theta_l, W(alpha, theta_l) phi = lambda S phi with Phi^T S Phi = I.

    Attributes
    ----------
    eigenvalues : (L, k) array
        Ascending for every angle.
    eigenfunctions : (L, n, k) array
        Orthonormal with respect to the areas.
    areas : (n,) array
        Vertex areas, the diagonal of S.
    settings : SpectraSettings
        The settings that they were computed with.
    """

    eigenvalues: FloatArray
    eigenfunctions: FloatArray
    areas: FloatArray
    settings: SpectraSettings

    def __repr__(self) -> str:
        angles, n, count = self.eigenfunctions.shape
        return f"Spectra({n} vertices, {angles} angles, {count} eigenpairs)"


@check_arguments
def compute_spectra(
    surface: Surface, settings: SpectraSettings, progress: Progress | None = None, threads: int | None = None
) -> Spectra:
    """Solve one eigenproblem W(alpha, theta_l) phi = lambda S phi for every angle theta_l = l pi / L.

    With alpha = 1 and one angle the problem is that of the Laplacian, as `surface_eigenpairs` solves it.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.
    settings : SpectraSettings
        Anisotropy, number of angles and number of eigenpairs; n - 1 pairs where n is not larger than their number.
    progress : Progress or None
        Called with (problems solved, total).
    threads : int or None
        None is one per core.

    Returns
    -------
    Spectra
        In float64.

    Raises
    ------
    InputError
        Where the eigenpairs cannot be computed.

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface import SpectraSettings, compute_spectra
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> compute_spectra(surface, SpectraSettings(alpha=100.0, angles=2, count=5))
    Spectra(2500 vertices, 2 angles, 5 eigenpairs)
    """
    if settings.alpha == 1.0 and settings.angles == 1:
        eigenvalues, eigenfunctions = surface_eigenpairs(surface, settings.count)
        if progress:
            progress(1, 1)
        return Spectra(eigenvalues[None], eigenfunctions[None], surface.vertex_areas, settings)
    problems = _Eigenproblems(surface, principal_frames(surface, settings.smoothing), settings)
    problems.solve(range(settings.angles), threads, progress)
    return problems.spectra()


def sufficient_spectra(
    surface: Surface,
    frames: FloatArray,
    settings: SpectraSettings,
    suffices: Callable[[float], bool],
    threads: int | None = None,
) -> Spectra | None:
    """Spectra of all angles if their eigenpairs reach far enough, else None.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.
    frames : (m, 2, 3) array
        Orthonormal frame of every face, the direction of theta = 0 first.
    settings : SpectraSettings
        Anisotropy, number of angles and number of eigenpairs.
    suffices : Callable[[float], bool]
        Decides from the smallest, over the angles, of the last eigenvalues.
    threads : int or None
        None is one per core.

    Returns
    -------
    Spectra or None
        In float64.

    Raises
    ------
    InputError
        Where the eigenpairs cannot be computed.
    """
    problems = _Eigenproblems(surface, frames, settings)
    # The two principal directions need most eigenpairs: where theirs do not suffice, no other problem has to be solved.
    principal = sorted({0, settings.angles // 2})
    for angles in (principal, [angle for angle in range(settings.angles) if angle not in principal]):
        problems.solve(angles, threads)
        if not suffices(problems.smallest_last_eigenvalue):
            return None
    return problems.spectra()


def surface_eigenpairs(surface: Surface, k: int) -> tuple[FloatArray, FloatArray]:
    """First eigenpairs of the Laplacian of a surface, W phi = lambda S phi, without its debris.

    Every component has an eigenvalue 0, so that the first eigenpairs of a scan with hundreds of specks around it would
    all be constant functions. A surface of more than `COMPONENTS` components is therefore replaced by its
    `main_components`.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.
    k : int
        Number of eigenpairs; n - 1 where n is not larger.

    Returns
    -------
    eigenvalues : (k,) array
        Ascending.
    eigenfunctions : (n, k) array
        Orthonormal with respect to the vertex areas, 0 on debris.

    Raises
    ------
    InputError
        Where the eigenpairs cannot be computed.
    """
    matrix, areas = stiffness(surface), surface.vertex_areas
    n = len(areas)
    count, component = _components(matrix)
    if count <= COMPONENTS:
        return eigenpairs(matrix, areas, min(k, n - 1))
    main = np.flatnonzero(np.isin(component, main_components(np.bincount(component, areas).astype(float))))
    eigenvalues, restricted = eigenpairs(sp.csr_array(matrix[main][:, main]), areas[main], min(k, len(main) - 1))
    eigenfunctions = np.zeros((n, len(eigenvalues)))
    eigenfunctions[main] = restricted
    return eigenvalues, eigenfunctions


@check_arguments
def eigenpairs(stiffness: sp.csr_array, mass: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Smallest k eigenvalues of W phi = lambda S phi and their eigenfunctions, Phi^T S Phi = I.

    Shift-and-invert Lanczos on S^-1/2 W S^-1/2 from a fixed start vector; where it does not converge it is repeated
    with a larger shift and a larger subspace, and eigenvalues that it missed are counted and computed. The sign of each
    eigenfunction is fixed so that its entry of largest magnitude is positive. A shape of k components or more has k
    eigenvalues 0; its eigenfunctions are constant on one of the k largest components each, and 0 elsewhere.

    Parameters
    ----------
    stiffness : (n, n) sparse array
        W: symmetric, positive semidefinite, zero row sums.
    mass : (n,) array
        The diagonal of S, positive.
    k : int
        Number of eigenpairs, below n.

    Returns
    -------
    eigenvalues : (k,) array
        Ascending.
    eigenfunctions : (n, k) array

    Raises
    ------
    InputError
        Where k is out of range, entries are not finite, a mass is not positive, or the solver does not converge.

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface import eigenpairs, stiffness
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> eigenvalues, eigenfunctions = eigenpairs(stiffness(surface), surface.vertex_areas, 5)
    >>> eigenfunctions.shape, bool(eigenvalues[0] < 1e-9)
    ((2500, 5), True)
    """
    n = len(mass)
    if not 0 < k < n:
        raise InputError(f"Asked for {k} eigenpairs of a shape with {n} vertices; 1 to {n - 1} can be computed.")
    bad = np.flatnonzero(~(np.isfinite(mass) & (mass > 0)))
    if len(bad):
        raise InputError(
            f"Vertex {bad[0]} (and {len(bad) - 1} more) has no area, so there are no eigenfunctions. "
            "Repair the shape with 'acnn info SHAPE --repair OUT'."
        )
    if not np.isfinite(stiffness.data).all():
        raise InputError("The Laplacian has entries that are not finite: the shape has triangles without area.")
    # ARPACK takes eigenvalues of the inverse below 4e-11 for rounding, so areas must be of size 1. Powers of two divide
    # them without any rounding.
    unit = 2.0 ** np.round(0.5 * np.log2(mass.sum()))
    root = np.sqrt(mass) / unit
    scaled = sp.csc_array(sp.diags_array(1 / root) @ stiffness @ sp.diags_array(1 / root))
    scaled = (scaled + scaled.T) * 0.5
    components, component = _components(stiffness)
    if components >= k:
        return np.zeros(k), _constants(component, mass, k)
    if k > n // 2 or n < 200:  # Lanczos would build most of the space anyway
        values, vectors = np.linalg.eigh(scaled.toarray())
        values, vectors = values[:k], vectors[:, :k]
    else:
        values, vectors = _lanczos(scaled, k, float((root**2).sum()), components)
    order = np.argsort(values, kind="stable")
    functions = vectors[:, order] / root[:, None] / unit
    largest = np.argmax(np.abs(functions), axis=0)
    functions *= np.where(functions[largest, np.arange(k)] < 0, -1.0, 1.0)
    # Rayleigh quotients from differences along edges keep small eigenvalues accurate where slivers have huge entries.
    upper = sp.triu(stiffness, 1).tocoo()
    values = -upper.data @ (functions[upper.row] - functions[upper.col]) ** 2
    order = np.argsort(values, kind="stable")
    return np.maximum(values[order], 0.0), functions[:, order]


def main_components(areas: FloatArray) -> IntArray:
    """The largest components that together cover the fraction `MAIN` of the area, the largest first.

    Parameters
    ----------
    areas : (c,) array
        Area of every component.

    Returns
    -------
    (m,) array
        Components.
    """
    order = np.argsort(-areas, kind="stable")
    total = np.cumsum(areas[order])
    return order[: int(np.searchsorted(total, MAIN * total[-1])) + 1]


class _Eigenproblems:
    """The eigenproblems of all angles, solved in any order."""

    def __init__(self, surface: Surface, frames: FloatArray, settings: SpectraSettings) -> None:
        self.settings = settings
        self.parts: StiffnessParts = stiffness_parts(surface, frames)
        self.areas = surface.vertex_areas
        count = min(settings.count, len(self.areas) - 1)
        self.eigenvalues = np.full((settings.angles, count), np.inf)
        self.eigenfunctions = np.empty((settings.angles, len(self.areas), count))

    def solve(self, angles: Sequence[int], threads: int | None, progress: Progress | None = None) -> None:
        """Solve the problems of some angles."""

        def run(angle: int) -> None:
            matrix = self.parts.matrix(self.settings.alpha, self.settings.thetas[angle])
            pairs = eigenpairs(matrix, self.areas, self.eigenvalues.shape[1])
            self.eigenvalues[angle], self.eigenfunctions[angle] = pairs

        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            jobs = [pool.submit(run, angle) for angle in angles]
            for done, job in enumerate(as_completed(jobs), 1):
                job.result()
                if progress:
                    progress(done, len(jobs))

    @property
    def smallest_last_eigenvalue(self) -> float:
        """Smallest of the last eigenvalues of the problems solved."""
        return float(self.eigenvalues[:, -1].min())

    def spectra(self) -> Spectra:
        """All eigenpairs, once every problem is solved."""
        return Spectra(self.eigenvalues, self.eigenfunctions, self.areas, self.settings)


def _components(stiffness: sp.csr_array) -> tuple[int, IntArray]:
    """Number of connected components, and the component of each vertex (n,)."""
    entries = stiffness.tocoo()
    nonzero = entries.data != 0
    return groups(entries.row[nonzero], entries.col[nonzero], stiffness.shape[0])


def _constants(component: IntArray, mass: FloatArray, k: int) -> FloatArray:
    """(n, k) array, functions constant on one component each, the k largest first, of norm 1 with respect to S."""
    areas = np.bincount(component, weights=mass)
    largest = np.argsort(-areas, kind="stable")[:k]
    return (component[:, None] == largest) / np.sqrt(areas[largest])


def _lanczos(matrix: sp.csc_array, k: int, area: float, components: int) -> tuple[FloatArray, FloatArray]:
    """Smallest k eigenpairs of a symmetric matrix by shift-and-invert Lanczos, with the first shift that converges."""
    n = matrix.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    failure: Exception | None = None
    for shift, factor in ((0.01, 2), (1.0, 3), (100.0, 4)):
        sigma = -shift / area  # keeps the factorisation definite, and is small beside the first nonzero eigenvalue
        try:
            solve = _factorised(matrix, sigma).solve
            inverse = LinearOperator((n, n), matvec=solve, dtype=float)
            space = min(n, max(factor * k, k + 20))
            values, vectors = eigsh(matrix, k, sigma=sigma, which="LM", OPinv=inverse, v0=start, ncv=space, tol=1e-10)
            values, vectors = _completed(matrix, sigma, solve, values, vectors)
        except (ArpackError, RuntimeError) as error:
            failure = error
            continue
        if np.isfinite(values).all() and np.isfinite(vectors).all():
            return values, vectors
    raise InputError(
        f"The first {k} eigenpairs could not be computed ({failure}). The shape has {components} connected "
        f"component{'' if components == 1 else 's'}, and probably slivers or parts that are "
        "many orders of magnitude apart in size: repair it with 'acnn info SHAPE --repair OUT', or ask for fewer."
    )


def _completed(
    matrix: sp.csc_array,
    sigma: float,
    solve: Callable[[FloatArray], FloatArray],
    values: FloatArray,
    vectors: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Add eigenpairs that Lanczos missed, such as copies of an eigenvalue that symmetry repeats.

    By Sylvester's law of inertia a factorisation of A - mu I has as many negative pivots as A has eigenvalues below mu.
    Where there are more of them than computed, Lanczos continues in the orthogonal complement of the known ones.
    """
    n, k = vectors.shape
    for attempt in range(10):
        order = np.argsort(values, kind="stable")[:k]
        values, vectors = values[order], vectors[:, order]
        mu = values[-1] * (1.0 - 1e-5)
        factor = _factorised(matrix, mu)
        if not np.array_equal(factor.perm_r, factor.perm_c):  # off-diagonal pivots have no meaningful sign
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
        inverted, added = eigsh(operator, min(missing + 2, n - k - 1), which="LM", v0=start, tol=1e-10)
        values, vectors = np.append(values, sigma + 1.0 / inverted), np.hstack([vectors, added])
    order = np.argsort(values, kind="stable")[:k]
    return values[order], vectors[:, order]


def _factorised(matrix: sp.csc_array, shift: float) -> SuperLU:
    """Factorisation of A - shift I."""
    shifted = (matrix - shift * sp.eye_array(matrix.shape[0], format="csc")).tocsc()
    return splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
