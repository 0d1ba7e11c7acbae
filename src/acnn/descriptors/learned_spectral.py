"""Learned spectral descriptors: optimal spectral descriptors (OSD) and anisotropic diffusion descriptors (ADD).

HKS and WKS filter the spectrum of the Laplacian with functions chosen by hand. Here the filters are combinations of
cubic B-splines beta_m over the eigenvalues, and the combination is learned (Litman and Bronstein 2014):

    g_m(x) = sum_k beta_m(lambda_k) phi_k(x)^2        geometry vector, M numbers
    f(x)   = A g(x)                                   descriptor, Q numbers

With g, g+ at matching points and g, g- at others, A enlarges the distances of the latter against the former:

    Sigma+ = E[(g - g+)(g - g+)^T],    Sigma- = E[(g - g-)(g - g-)^T]
    max tr A Sigma- A^T    subject to    A Sigma+ A^T = I

which the leading generalised eigenvectors of the pair solve. ADD (Boscaini et al. 2016) is the same for the geometry
vectors of several anisotropic Laplacians side by side, each angle with filters of its own: a mirror image exchanges the
angles theta and pi - theta, so that left and right can be told apart, which isotropic vectors cannot do.

Any other vectors may take the place of g, such as WKS.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from acnn.errors import InputError
from acnn.types import FloatArray, IntArray

Normalisation = Literal["none", "unit", "log"]

LOG_FLOOR = 0.01
"""Part of the mean that is added before logarithms are taken: a spline may be empty at a point."""

ROWS = 4096
"""Pairs whose differences are held at a time."""


@dataclass(frozen=True)
class SplineBasis:
    """Cubic B-splines over eigenvalues, with the same knots for every shape.

        beta_m(lambda) = B(lambda / spacing - m + shift),    m = 0 .. count - 1,    spacing = upper / (count - shift)

    where B is the cubic B-spline on [0, 4]. Their sum is 1 from (3 - shift) spacings to `upper`. Without a shift the
    constant function (lambda = 0) has no weight; with 2 it is the centre of the first spline.

    Attributes
    ----------
    count : int
        M, more than the shift.
    upper : float
        Upper end of the eigenvalues, in the unit of those that will be given.
    shift : float
        From 0 to 3, in spacings.
    """

    count: int
    upper: float
    shift: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.shift <= 3:
            raise InputError(f"The splines are shifted by {self.shift} spacings; 0 to 3 make sense.")
        if not self.count > self.shift:
            raise InputError(f"{self.count} splines shifted by {self.shift:g} spacings: give more of them.")
        if not (np.isfinite(self.upper) and self.upper > 0):
            raise InputError(f"The upper end of the splines must be a positive number, not {self.upper}.")

    @classmethod
    def covering(
        cls, spectra: Iterable[ArrayLike], count: int, shift: float = 2.0, percentile: float = 99.0
    ) -> SplineBasis:
        """The basis from 0 to a percentile of all eigenvalues of the training shapes, arrays of any shape."""
        arrays = [np.ravel(np.asarray(eigenvalues, float)) for eigenvalues in spectra]
        if not arrays or not all(len(array) for array in arrays):
            raise InputError("There are no eigenvalues that splines could cover.")
        return cls(count, float(np.percentile(np.concatenate(arrays), percentile)), shift)

    @property
    def spacing(self) -> float:
        """Distance between the beginnings of splines."""
        return self.upper / (self.count - self.shift)

    def evaluate(self, eigenvalues: ArrayLike) -> FloatArray:
        """(k, count) values of the splines at (k,) eigenvalues; above `upper` they fade to 0.

        Raises
        ------
        InputError
            Where the eigenvalues are no list of finite numbers.
        """
        values = np.asarray(eigenvalues, float)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InputError(f"The eigenvalues must be a list of finite numbers, not an array of shape {values.shape}.")
        return _cubic(values[:, None] / self.spacing + self.shift - np.arange(self.count))


def geometry_vectors(eigenvalues: ArrayLike, eigenfunctions: NDArray[np.floating], basis: SplineBasis) -> FloatArray:
    """Geometry vectors g_m(x) = sum_k beta_m(lambda_k) phi_k(x)^2.

    They depend neither on the signs of eigenfunctions nor on the order of equal eigenvalues.

    Parameters
    ----------
    eigenvalues : (k,) array
    eigenfunctions : (n, k) array
        Orthonormal with respect to the vertex areas.
    basis : SplineBasis

    Returns
    -------
    array
        (n, M) float64.

    Raises
    ------
    InputError
        Where the arrays do not fit together.
    """
    weights = basis.evaluate(eigenvalues)
    functions = np.asarray(eigenfunctions)
    if functions.ndim != 2 or functions.shape[1] != len(weights):
        raise InputError(
            f"{len(weights)} eigenvalues and eigenfunctions of shape {functions.shape} do not fit together: "
            "(k,) and (n, k) are needed."
        )
    return np.square(functions, dtype=float) @ weights


def anisotropic_geometry_vectors(
    eigenvalues: NDArray[np.floating], eigenfunctions: NDArray[np.floating], basis: SplineBasis
) -> FloatArray:
    """Geometry vectors of the Laplacians of L angles, side by side: the M of the first angle, then of the next.

    Parameters
    ----------
    eigenvalues : (L, k) array
    eigenfunctions : (L, n, k) array
        Of each angle, orthonormal with respect to the vertex areas.
    basis : SplineBasis
        One for all angles.

    Returns
    -------
    array
        (n, L M) float64.

    Raises
    ------
    InputError
        Where the arrays do not fit together.
    """
    if np.ndim(eigenvalues) != 2 or np.ndim(eigenfunctions) != 3 or len(eigenvalues) != len(eigenfunctions):
        raise InputError(
            f"Eigenvalues of shape {np.shape(eigenvalues)} and eigenfunctions of shape {np.shape(eigenfunctions)} do "
            "not fit together: (angles, k) and (angles, n, k) are needed."
        )
    angles = zip(eigenvalues, eigenfunctions, strict=True)
    return np.concatenate([geometry_vectors(values, functions, basis) for values, functions in angles], axis=1)


def normalised_vectors(vectors: NDArray[np.floating], normalisation: Normalisation) -> FloatArray:
    """Vectors of one shape, made comparable between shapes before the statistics are taken.

    Parameters
    ----------
    vectors : (n, M) array
        Not negative for `log`.
    normalisation : Normalisation
        `none` leaves them; `unit` scales rows to length 1 (rows of zeros stay); `log` takes
        log(g + `LOG_FLOOR` mean(g)), since the spread of g between matching points grows with g.

    Raises
    ------
    InputError
        For another normalisation, and for negative vectors with `log`.
    """
    rows = np.asarray(vectors, float)
    if normalisation == "none":
        return rows
    if normalisation == "unit":
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    if normalisation != "log":
        raise InputError(f"Unknown normalisation '{normalisation}': use one of {', '.join(get_args(Normalisation))}.")
    if not (rows.min() >= 0 and rows.max() > 0):
        raise InputError("Only vectors without negative numbers, and not all zero, have logarithms.")
    return np.log(rows + LOG_FLOOR * rows.mean())


class PairStatistics:
    """Second-order statistics of the differences between matching and between other points, over many shapes.

    Shapes are added two at a time and forgotten: two M x M sums are kept, and `ROWS` differences while adding.

    Parameters
    ----------
    size : int
        M, the length of the vectors.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"Vectors of {size} numbers: at least one is needed.")
        self.size = size
        self.matching = 0
        self.others = 0
        self._positive = np.zeros((size, size))
        self._negative = np.zeros((size, size))

    def __repr__(self) -> str:
        return f"PairStatistics({self.size}, {self.matching} matching pairs, {self.others} others)"

    @property
    def positive(self) -> FloatArray:
        """(M, M) Sigma+; raises InputError where no pair was added."""
        if not self.matching:
            raise InputError("No matching points were added, so their statistics are not known.")
        return self._positive / self.matching

    @property
    def negative(self) -> FloatArray:
        """(M, M) Sigma-; raises InputError where no pair was added."""
        if not self.others:
            raise InputError("No points that do not match were added: a shape of two vertices at least is needed.")
        return self._negative / self.others

    def add(
        self,
        g_a: NDArray[np.floating],
        g_b: NDArray[np.floating],
        pairs: IntArray,
        rng: np.random.Generator,
    ) -> None:
        """Add the matching points of two shapes, and for each two at random that do not match.

        One of the latter is on the other shape and one on the same.

        Parameters
        ----------
        g_a, g_b : (n, M) and (m, M) array
            Vectors of both shapes.
        pairs : (p, 2) array
            Rows (vertex of a, matching vertex of b).
        rng : Generator
            Of the points that do not match.

        Raises
        ------
        InputError
            Where sizes do not fit, numbers are not finite, or a pair names a vertex that is not there.
        """
        first, second = self._checked(g_a, "a"), self._checked(g_b, "b")
        matches = np.asarray(pairs)
        if matches.ndim != 2 or matches.shape[1] != 2 or not np.issubdtype(matches.dtype, np.integer):
            raise InputError(f"Pairs must be whole numbers of shape (p, 2), not {matches.dtype} of {matches.shape}.")
        if len(matches) and (matches.min() < 0 or (matches.max(axis=0) >= (len(first), len(second))).any()):
            raise InputError(
                f"Pairs name vertices up to {matches.max(axis=0).tolist()}, but the shapes have {len(first)} and "
                f"{len(second)}, numbered from 0."
            )
        for begin in range(0, len(matches), ROWS):
            x, y = matches[begin : begin + ROWS].T
            here = first[x]
            self.matching += _add_squares(self._positive, here - second[y])
            other = rng.integers(len(second), size=len(y))
            wrong = other != y
            self.others += _add_squares(self._negative, here[wrong] - second[other[wrong]])
            if len(first) > 1:
                # One to n - 1 vertices further on, so never the vertex itself.
                apart = (x + rng.integers(1, len(first), size=len(x))) % len(first)
                self.others += _add_squares(self._negative, here - first[apart])

    def _checked(self, vectors: NDArray[np.floating], name: str) -> FloatArray:
        array = np.asarray(vectors)
        if array.ndim != 2 or array.shape[1] != self.size:
            raise InputError(f"The vectors of shape {name} are an array of {array.shape}; (n, {self.size}) is needed.")
        if not np.isfinite(array).all():
            raise InputError(f"The vectors of shape {name} are not all finite.")
        return array


def fit_projection(positive: FloatArray, negative: FloatArray, dimension: int, ridge: float = 1e-3) -> FloatArray:
    """The matrix A of a learned descriptor f = A g, in closed form.

        Sigma- v = mu (Sigma+ + ridge tr(Sigma+)/M I) v

    The span of the v with the largest mu is kept, and in it the rows of A are chosen so that A Sigma+ A^T = I and
    A Sigma- A^T is diagonal and descending: distances of f are measured in standard deviations of matching points.

    Parameters
    ----------
    positive, negative : (M, M) array
        Sigma+ and Sigma-, as `PairStatistics` gives them.
    dimension : int
        Q, at most M.
    ridge : float
        Part of the mean variance that is added to every direction: filters that fit few training pairs too well are
        held back.

    Returns
    -------
    array
        (Q, M). Descriptors of (n, M) vectors are `vectors @ A.T`.

    Raises
    ------
    InputError
        Where sizes do not fit, or matching points do not differ in some direction so that no scale is known.
    """
    size = len(positive)
    if positive.shape != (size, size) or negative.shape != (size, size):
        raise InputError(f"Statistics of shapes {positive.shape} and {negative.shape}: both must be (M, M).")
    if not 1 <= dimension <= size:
        raise InputError(f"A descriptor of {dimension} numbers cannot be taken from {size}: 1 to {size} can.")
    if not (np.isfinite(ridge) and ridge >= 0):
        raise InputError(f"ridge = {ridge}: it must be at least 0.")
    scale = float(np.trace(positive)) / size
    if not (np.isfinite(scale) and scale > 0):
        raise InputError("Matching points do not differ at all: give pairs of different shapes.")
    top = (size - dimension, size - 1)
    try:
        regular = positive + ridge * scale * np.eye(size)
        span = scipy.linalg.eigh(negative, regular, subset_by_index=top)[1]
        inner = scipy.linalg.eigh(span.T @ negative @ span, span.T @ positive @ span)[1]
    except np.linalg.LinAlgError:
        raise InputError(
            f"Matching points differ in fewer than {dimension} independent directions: use more pairs, a smaller "
            "dimension or a larger ridge."
        ) from None
    projection = (span @ inner[:, ::-1]).T
    # The sign of an eigenvector is arbitrary: the largest entry of each row is made positive.
    largest = np.argmax(np.abs(projection), axis=1)
    return projection * np.sign(projection[np.arange(dimension), largest])[:, None]


def _cubic(x: FloatArray) -> FloatArray:
    """The cubic B-spline on [0, 4], symmetric about 2: pieces of u^3 / 6 and (4 - 6 u^2 + 3 u^3) / 6."""
    u = np.abs(x - 2.0)
    return np.where(u < 1.0, (4.0 - 6.0 * u**2 + 3.0 * u**3) / 6.0, np.maximum(2.0 - u, 0.0) ** 3 / 6.0)


def _add_squares(total: FloatArray, differences: FloatArray) -> int:
    """Add the sum of d d^T over the rows d, in place, and return how many there are."""
    total += differences.T @ differences
    return len(differences)
