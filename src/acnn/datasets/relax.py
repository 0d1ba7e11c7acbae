"""Nearly isometric bending: takes the stretch and the folds out of a posed body."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def rigid_relaxer(
    faces: NDArray[np.int32], count: int, *, hold: float = 0.1, rounds: int = 10
) -> Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]:
    """Make a function (rest, posed) -> relaxed, all (n, 3), for one connectivity.

    It lowers sum over edges |(p_i - p_j) - R_i (r_i - r_j)|^2 + hold sum over vertices |p_i - posed_i|^2 in turns over
    the rotations R_i and the places p (as rigid as possible, Sorkine and Alexa 2007): every neighbourhood keeps its
    shape at rest up to a rotation, as skin does, while the pose stays. The matrix is factorised once.

    - faces: (m, 3), closed; count: number of vertices
    - hold: pull towards the given pose; rounds: number of turns
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()  # closed: each edge once in either direction
    ones = np.ones(len(start))
    neighbours = sparse.csr_matrix((ones, (start, end)), shape=(count, count))
    degree = np.asarray(neighbours.sum(axis=1)).ravel()
    # an edge counts at both of its ends, hence the 2
    factor = splu((2 * (sparse.diags(degree) - neighbours) + hold * sparse.identity(count)).tocsc())
    gather = sparse.csr_matrix((ones, (start, np.arange(len(start)))), shape=(count, len(start)))

    def relax(rest: NDArray[np.float64], posed: NDArray[np.float64]) -> NDArray[np.float64]:
        before = rest[start] - rest[end]
        places = posed
        for _ in range(rounds):
            after = places[start] - places[end]
            spread = gather @ (before[:, :, None] * after[:, None, :]).reshape(-1, 9)
            u, _, vt = np.linalg.svd(spread.reshape(-1, 3, 3))
            flip = np.sign(np.linalg.det(u @ vt))
            u[:, :, 2] *= flip[:, None]
            turn = np.transpose(u @ vt, (0, 2, 1))  # (n, 3, 3)
            wanted = np.einsum("eij,ej->ei", turn[start] + turn[end], before)
            places = factor.solve(gather @ wanted + hold * posed)
        return places

    return relax
