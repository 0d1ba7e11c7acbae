"""Assertions for whoever adds a descriptor or a layer: rigid motion, order of vertices, and remeshing.

The function under test takes a `Mesh` (or, for the first two, a `PointCloud`) and returns an (n, p) array or tensor:
one row for each vertex. Every assertion returns the figure that it measured, and names it where it fails.

    acnn.testing.assert_rigid_invariant(acnn.shot, mesh)
    acnn.testing.assert_permutation_equivariant(lambda mesh: layer(features(mesh), patches(mesh)), mesh)
    acnn.testing.assert_remeshing_stable(acnn.shot, bound=0.65)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, PointCloud, Shape
from acnn.types import FloatArray, IntArray


@check_arguments
def assert_rigid_invariant(
    function: Callable[..., Any], mesh: Shape, *, tolerance: float = 1e-4, scale: float = 1.0, seed: int = 0
) -> float:
    """Assert that rotating and translating a shape does not change the function.

    Parameters
    ----------
    function : callable
        Mesh or PointCloud to (n, p) array.
    mesh : Mesh or PointCloud
        Choose one without symmetries: where directions are ambiguous, rounding decides.
    tolerance : float
        Largest change of any entry, relative to the largest absolute value of the function.
    scale : float
        Factor by which the shape is scaled as well, for functions that do not depend on size.
    seed : int
        Of the rotation and the translation, which is as long as the shape is large.

    Returns
    -------
    float
        The largest change, relative to the largest absolute value.

    Raises
    ------
    AssertionError
        Where the change exceeds the tolerance, with its size and the vertex, or where the function does not return
        one finite row for each vertex.

    Examples
    --------
    >>> import acnn
    >>> mesh = acnn.builtin_human()
    >>> change = assert_rigid_invariant(acnn.shot, mesh, scale=0.01)
    >>> assert_rigid_invariant(lambda mesh: mesh.vertices, mesh)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: Not invariant to rigid motion: ...
    """
    if not (np.isfinite(scale) and scale > 0):
        raise InputError(f"scale = {scale}: a shape can be scaled by a positive number only.")
    random = np.random.default_rng(seed)
    rotation, upper = np.linalg.qr(random.standard_normal((3, 3)))
    rotation *= np.sign(np.diag(upper))
    rotation[:, 0] *= np.linalg.det(rotation)  # a reflection is no rigid motion
    size = float(np.ptp(mesh.vertices, axis=0).max())
    moved = replace(mesh, vertices=scale * (mesh.vertices @ rotation.T + size * random.standard_normal(3)))
    if isinstance(moved, PointCloud) and moved.normals is not None:
        moved = replace(moved, normals=moved.normals @ rotation.T)
    what = "rigid motion" if scale == 1 else f"rigid motion and scaling by {scale:g}"
    before = _rows(function, mesh, "the mesh")
    return _compare(before, _rows(function, moved, f"the mesh after {what}"), tolerance, f"Not invariant to {what}")


@check_arguments
def assert_permutation_equivariant(
    function: Callable[..., Any], mesh: Shape, *, tolerance: float = 1e-4, seed: int = 0
) -> float:
    """Assert that another order of vertices and faces only changes the order of the rows of the function.

    Parameters
    ----------
    function : callable
        Mesh or PointCloud to (n, p) array.
    mesh : Mesh or PointCloud
        Its texture is not given to the function.
    tolerance : float
        Largest difference of any entry, relative to the largest absolute value of the function.
    seed : int
        Of the order.

    Returns
    -------
    float
        The largest difference, relative to the largest absolute value.

    Raises
    ------
    AssertionError
        Where the difference exceeds the tolerance, with its size and the vertex, or where the function does not return
        one finite row for each vertex.

    Examples
    --------
    >>> import acnn
    >>> mesh = acnn.builtin_human()
    >>> assert_permutation_equivariant(lambda mesh: mesh.vertices, mesh)
    0.0
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(mesh.vertices))
    place = np.argsort(order)
    colors = None if mesh.colors is None else mesh.colors[order]
    other: Shape
    if isinstance(mesh, Mesh):
        faces = place[mesh.faces][random.permutation(len(mesh.faces))].astype(np.int32)
        other = Mesh(mesh.vertices[order], faces, colors)
    else:
        other = PointCloud(mesh.vertices[order], None if mesh.normals is None else mesh.normals[order], colors)
    before = _rows(function, mesh, "the mesh")
    after = _rows(function, other, "the mesh with permuted vertices")
    return _compare(before, after[place], tolerance, "Not equivariant to the order of vertices")


@check_arguments
def assert_remeshing_stable(
    function: Callable[..., Any], bound: float, mesh: Mesh | None = None, *, copies: int = 1, seed: int = 0
) -> float:
    """Assert that the function depends on the surface, and little on its triangulation.

    The mesh is remeshed (other vertices, other edges, nearly the same surface), and the function on the copy is
    compared with the original's at the surface points that the copy's vertices came from, y to x(y):

        error = rms_y |g(y) - f(x(y))| / rms_{y, y'} |f(x(y)) - f(x(y'))|

    with means over the area. 0 is a function of the surface alone; 1 is a function whose values at one point of two
    triangulations differ as much as those at two random points of one.

    Parameters
    ----------
    function : callable
        Mesh to (n, p) array.
    bound : float
        Largest error allowed.
    mesh : Mesh or None
        Closed and manifold; None is a built-in human of 2,500 vertices.
    copies : int
        How many triangulations are compared; the largest error counts.
    seed : int
        Of the triangulations.

    Returns
    -------
    float
        The largest error.

    Raises
    ------
    AssertionError
        Where the error exceeds the bound, with both, or where the function does not return one finite row for each
        vertex.

    Examples
    --------
    >>> import acnn
    >>> error = assert_remeshing_stable(lambda mesh: mesh.vertices, bound=0.02)
    """
    from acnn.surface.simplify import remesh

    if copies < 1:
        raise InputError(f"{copies} copies: at least one is needed.")
    if mesh is None:
        from acnn.datasets.builtin import builtin_human

        mesh = builtin_human()
    values = _rows(function, mesh, "the mesh")
    errors = []
    for copy in range(copies):
        remeshed = remesh(mesh, seed=seed + copy)
        expected = remeshed.truth.interpolate(values[mesh.faces])
        found = _rows(function, remeshed.mesh, "the remeshed copy")
        errors.append(_relative_difference(found, expected, remeshed.mesh))
    worst = max(errors)
    assert worst <= bound, (
        f"Not stable under remeshing: the error is {worst:.4g} of the difference between two random points, above the "
        f"bound of {bound:g} ({len(mesh.vertices)} vertices, copies: {copies}, seed: {seed})."
    )
    return worst


def _relative_difference(found: FloatArray, expected: FloatArray, mesh: Mesh) -> float:
    """Root of the mean squared difference of rows over that of two random rows, weighted by area."""
    if found.shape != expected.shape:
        raise AssertionError(
            f"The function has {expected.shape[1]} columns on one mesh and {found.shape[1]} on another."
        )
    weights = _areas(mesh.vertices, mesh.faces)
    weights = weights / weights.sum()
    apart = float(weights @ ((found - expected) ** 2).sum(axis=1))
    spread = float(2 * weights @ ((expected - weights @ expected) ** 2).sum(axis=1))  # E |a - b|^2 = 2 Var a
    rounding = 1e-20 * float((expected**2).sum(axis=1).max(initial=0.0))
    if apart <= rounding:
        return 0.0
    return float(np.sqrt(apart / spread)) if spread > rounding else float("inf")


def _areas(vertices: FloatArray, faces: IntArray) -> FloatArray:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return np.bincount(faces.ravel(), weights=np.repeat(areas, 3), minlength=len(vertices)).astype(float)


def _rows(function: Callable[..., Any], mesh: Shape, what: str) -> FloatArray:
    """(n, p) values of the function in float64."""
    result = function(mesh)
    if hasattr(result, "detach"):
        result = result.detach().cpu()
        result = result.double() if result.is_floating_point() else result
    values = np.asarray(result, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    n = len(mesh.vertices)
    assert values.ndim == 2 and len(values) == n, (  # noqa: PT018
        f"The function returned an array of shape {values.shape} for {what}: ({n}, p) is needed, a row for each vertex."
    )
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    assert not len(bad), f"The function is not finite at {len(bad)} vertices of {what}, the first of them {bad[0]}."
    return values


def _compare(before: FloatArray, after: FloatArray, tolerance: float, complaint: str) -> float:
    """Largest difference over the largest absolute value; raises AssertionError where it exceeds the tolerance."""
    assert before.shape == after.shape, f"{complaint}: the result has shape {after.shape} instead of {before.shape}."
    difference = np.abs(after - before)
    size = float(np.abs(before).max(initial=0.0)) or 1.0
    largest = float(difference.max(initial=0.0)) / size
    if largest > tolerance:
        vertex, column = np.unravel_index(int(difference.argmax()), difference.shape)
        raise AssertionError(
            f"{complaint}: vertex {vertex}, column {column} changes from {before[vertex, column]:.6g} to "
            f"{after[vertex, column]:.6g}, {largest:.3g} of the largest value where {tolerance:g} is allowed; "
            f"{np.mean((difference > tolerance * size).any(axis=1)):.1%} of the vertices change."
        )
    return largest
