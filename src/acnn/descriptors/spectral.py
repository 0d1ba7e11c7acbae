"""Descriptors from the spectrum of the Laplacian: heat kernel signature and wave kernel signature.

Both are invariant under isometries, reflections included: they do not distinguish left from right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.mesh import Shape
from acnn.surface.spectra import surface_eigenpairs
from acnn.surface.surface import Surface, surface_of
from acnn.types import FloatArray

ZERO = 1e-9
"""Eigenvalues below this fraction of the largest belong to constant functions, one per component of the shape."""

WKS_SPREAD = 7.0
"""Width of the energy bands in steps between them (Aubry et al., section 4)."""


def hks(
    eigenvalues: FloatArray,
    eigenfunctions: FloatArray,
    count: int = 100,
    *,
    times: ArrayLike | None = None,
    scaled: bool = False,
) -> FloatArray:
    """Heat kernel signature (Sun, Ovsjanikov, Guibas 2009): the heat that remains at x after time t.

        HKS(x, t) = sum_k exp(-t lambda_k) phi_k(x)^2

    Parameters
    ----------
    eigenvalues : (k,) array
        Of the Laplacian, constant function included.
    eigenfunctions : (n, k) array
        Orthonormal with respect to the vertex areas.
    count : int
        Number of times, evenly spaced in log t from 4 ln 10 / lambda_max to 4 ln 10 / (smallest lambda above zero).
    times : (count,) array or None
        The times themselves, instead of `count`, in normalised units squared.
    scaled : bool
        Divide by the heat trace sum_k exp(-t lambda_k), which gives all times values of similar size.

    Returns
    -------
    (n, count) array

    Raises
    ------
    InputError
        Where the arrays do not fit together, or times are not positive.

    Examples
    --------
    >>> import acnn
    >>> from acnn.descriptors import hks
    >>> from acnn.surface import eigenpairs, stiffness
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> hks(*eigenpairs(stiffness(surface), surface.vertex_areas, 30), 10).shape
    (2500, 10)
    """
    values, functions = _checked(eigenvalues, eigenfunctions)
    if times is None:
        low, high = _range(values, count)
        moments = 4.0 * np.log(10.0) * np.geomspace(1.0 / high, 1.0 / low, count)
    else:
        moments = _listed(times, "times")
        if not (moments > 0).all():
            raise InputError(f"The times of HKS must be positive; the smallest is {moments.min():g}.")
    decay = np.exp(-np.outer(values, moments))  # (k, count)
    if scaled:
        decay /= decay.sum(axis=0)
    return functions**2 @ decay


def wks(
    eigenvalues: FloatArray,
    eigenfunctions: FloatArray,
    count: int = 100,
    *,
    energies: ArrayLike | None = None,
    sigma: float | None = None,
) -> FloatArray:
    """Wave kernel signature (Aubry, Schlickewei, Cremers 2011): the probability of a particle of energy exp(e) at x.

        WKS(x, e) = sum_k w_k(e) phi_k(x)^2,    w_k(e) ~ exp(-(e - log lambda_k)^2 / (2 sigma^2)),    sum_k w_k(e) = 1

    Parameters
    ----------
    eigenvalues : (k,) array
        Of the Laplacian; those that are zero are not used.
    eigenfunctions : (n, k) array
        Orthonormal with respect to the vertex areas.
    count : int
        Number of energies, evenly spaced from log lambda_min + 2 sigma to log lambda_max - 2 sigma.
    energies : (count,) array or None
        The energies e themselves, instead of `count`.
    sigma : float or None
        Width of the bands; None is 7 steps between energies.

    Returns
    -------
    (n, count) array

    Raises
    ------
    InputError
        Where the arrays do not fit together, or the width is invalid.

    Examples
    --------
    >>> import acnn
    >>> from acnn.descriptors import wks
    >>> from acnn.surface import eigenpairs, stiffness
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> wks(*eigenpairs(stiffness(surface), surface.vertex_areas, 30), 10).shape
    (2500, 10)
    """
    values, functions = _checked(eigenvalues, eigenfunctions)
    if sigma is not None and not (np.isfinite(sigma) and sigma > 0):
        raise InputError(f"The width sigma of WKS must be a positive number, not {sigma}.")
    if energies is None:
        low, high = np.log(_range(values, count))
        # sigma is 7 steps of a range that is itself shortened by 2 sigma at both ends.
        width = WKS_SPREAD * (high - low) / (count - 1 + 4.0 * WKS_SPREAD) if sigma is None else sigma
        if not high - low > 4.0 * width:
            raise InputError(f"Bands of width sigma = {width:g} do not fit between energies {low:g} and {high:g}.")
        levels = np.linspace(low + 2.0 * width, high - 2.0 * width, count)
    else:
        levels = _listed(energies, "energies")
        steps = abs(levels[-1] - levels[0]) / max(len(levels) - 1, 1)
        width = WKS_SPREAD * steps if sigma is None else sigma
        if not width > 0:
            raise InputError("The energies of WKS are all the same: give the width of the bands as sigma.")
    positive = values > ZERO * values.max()
    exponent = -((levels[None, :] - np.log(values[positive])[:, None]) ** 2) / (2.0 * width**2)  # (k, count)
    # Far from every eigenvalue all weights would underflow; only their ratios matter.
    weights = np.exp(exponent - exponent.max(axis=0))
    return functions[:, positive] ** 2 @ (weights / weights.sum(axis=0))


@check_arguments
def hks_of(
    shape: Shape | Surface, count: int = 100, *, pairs: int = 100, times: ArrayLike | None = None, scaled: bool = False
) -> FloatArray:
    """`hks` of a mesh or cloud from its first eigenpairs.

    Parameters
    ----------
    shape : Mesh, PointCloud or Surface
    count : int
    pairs : int
        Number of eigenpairs; n - 1 where n is not larger.
    times : (count,) array or None
    scaled : bool
        See `hks`.

    Returns
    -------
    (n, count) array

    Raises
    ------
    InputError
        As `hks`, or where the eigenpairs cannot be computed.

    Examples
    --------
    >>> import acnn
    >>> from acnn.descriptors import hks_of
    >>> hks_of(acnn.builtin_human(), 10, pairs=30).shape
    (2500, 10)
    """
    return hks(*surface_eigenpairs(surface_of(shape), pairs), count, times=times, scaled=scaled)


@check_arguments
def wks_of(
    shape: Shape | Surface,
    count: int = 100,
    *,
    pairs: int = 100,
    energies: ArrayLike | None = None,
    sigma: float | None = None,
) -> FloatArray:
    """`wks` of a mesh or cloud from its first eigenpairs.

    Parameters
    ----------
    shape : Mesh, PointCloud or Surface
    count : int
    pairs : int
        Number of eigenpairs; n - 1 where n is not larger.
    energies : (count,) array or None
    sigma : float or None
        See `wks`.

    Returns
    -------
    (n, count) array

    Raises
    ------
    InputError
        As `wks`, or where the eigenpairs cannot be computed.

    Examples
    --------
    >>> import acnn
    >>> from acnn.descriptors import wks_of
    >>> wks_of(acnn.builtin_human(), 10, pairs=30).shape
    (2500, 10)
    """
    return wks(*surface_eigenpairs(surface_of(shape), pairs), count, energies=energies, sigma=sigma)


def _checked(eigenvalues: FloatArray, eigenfunctions: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, functions = np.asarray(eigenvalues, float), np.asarray(eigenfunctions, float)
    if values.ndim != 1 or functions.ndim != 2 or functions.shape[1] != len(values) or not len(values):
        raise InputError(
            f"Eigenvalues of shape {values.shape} and eigenfunctions of shape {functions.shape} do not fit together: "
            "(k,) and (n, k) are needed."
        )
    if not np.isfinite(values).all():
        raise InputError("The eigenvalues must be finite.")
    if not values.max() > 0:
        raise InputError(
            f"All {len(values)} eigenvalues are 0: the shape has as many separate components, or more. Remove debris, "
            "join the components, or compute more eigenpairs."
        )
    return values, functions


def _range(values: FloatArray, count: int) -> tuple[float, float]:
    """Smallest eigenvalue above zero, and the largest."""
    if count < 1:
        raise InputError(f"A signature needs at least 1 value, not {count}.")
    above = values[values > ZERO * values.max()]
    if not above.max() > above.min():
        raise InputError(
            "All eigenvalues above zero are the same, so there is no range to choose times or energies from. "
            "Compute more eigenpairs, or give the times or energies themselves."
        )
    return float(above.min()), float(above.max())


def _listed(values: ArrayLike, name: str) -> FloatArray:
    array = np.atleast_1d(np.asarray(values, float))
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise InputError(f"The {name} must be a list of finite numbers, not an array of shape {array.shape}.")
    return array
