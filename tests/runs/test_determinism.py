"""What is equal between two runs: the statements of the FAQ, on two built-in humans of 600 vertices."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from analytic import permuted

import acnn
from acnn.shapes import Mesh
from acnn.surface.working_copy import working_copy

ROUTES = {"network": "auto", "descriptors": "descriptors"}
IN_ANOTHER_PROCESS = """
import numpy as np
import acnn

a, b = (acnn.load(f"{name}.ply", repair=False) for name in "ab")
for route, method in {routes}.items():
    match = acnn.match(a, b, method=method, cache=False)
    np.savez(route, a_to_b=match.a_to_b, confidence=match.confidence)
"""


@pytest.fixture(scope="module")
def pair() -> tuple[Mesh, Mesh]:
    copies = (working_copy(acnn.builtin_human(*which), 1000).shape for which in ((0, 0), (3, 2)))
    # in single precision, which files keep
    return tuple(Mesh(copy.vertices.astype(np.float32).astype(float), copy.faces) for copy in copies)


@pytest.fixture(scope="module", params=ROUTES)
def first(request, pair):
    """The route, and the map of the pair without cache."""
    match = acnn.match(*pair, method=ROUTES[request.param], cache=False)
    assert match.report.route == request.param
    return request.param, match


def assert_same_bytes(match, first) -> None:
    assert match.a_to_b.tobytes() == first.a_to_b.tobytes()
    assert match.confidence.tobytes() == first.confidence.tobytes()


def test_again_and_with_a_cache_the_result_has_the_same_bytes(first, pair, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path))
    route, match = first
    assert_same_bytes(acnn.match(*pair, method=ROUTES[route]), match)  # computed again, and kept
    if route == "network":
        assert any(tmp_path.rglob("*.safetensors"))
        assert_same_bytes(acnn.match(*pair, method=ROUTES[route]), match)  # read from the cache


def test_permuted_vertices_permute_the_result(first, pair) -> None:
    route, match = first
    (a, place_a), (b, place_b) = permuted(pair[0], 1), permuted(pair[1], 2)
    other = acnn.match(a, b, method=ROUTES[route], cache=False)
    back = np.argsort(place_b)[other.a_to_b][place_a]  # in the numbering before
    assert (back == match.a_to_b).mean() >= 0.99
    size = np.sqrt(acnn.surface_of(pair[1], unit=1.0).vertex_areas.sum())
    moved = np.linalg.norm(pair[1].vertices[back] - pair[1].vertices[match.a_to_b], axis=1) / size
    assert moved.max() <= 0.05
    assert abs(other.confidence.mean() - match.confidence.mean()) <= 0.002


@pytest.fixture(scope="module")
def with_other_threads(pair, tmp_path_factory):
    """Folder with the results of all routes from a process with another number of threads."""
    folder = tmp_path_factory.mktemp("threads")
    for name, shape in zip("ab", pair, strict=True):
        acnn.save(shape, folder / f"{name}.ply")
    count = "1" if torch.get_num_threads() > 1 else "2"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, count)
    code = IN_ANOTHER_PROCESS.replace("{routes}", repr(ROUTES))
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)
    return folder


def test_one_and_two_threads_give_the_same_bytes(first, with_other_threads) -> None:
    route, match = first
    other = np.load(with_other_threads / f"{route}.npz")
    assert other["a_to_b"].tobytes() == match.a_to_b.tobytes()
    assert other["confidence"].tobytes() == match.confidence.tobytes()
