"""A hundred damaged files: each ends in a sound shape or a clear error, within 10 s and 2 GB."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")


@pytest.fixture(scope="module")
def benchmark_module() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "damaged_files.py"
    spec = importlib.util.spec_from_file_location("damaged_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_damaged_files_end_in_a_result_or_a_clear_error(benchmark_module: ModuleType, tmp_path: Path) -> None:
    originals = benchmark_module.write_originals(tmp_path)
    assert {p.suffix for p in originals} == {".ply", ".off", ".obj", ".stl", ".glb", ".gltf", ".xyz", ".npy"}
    rng = np.random.default_rng(20)
    seen = set()
    for number in range(100):
        original = originals[number % len(originals)]
        way, content, suffix = benchmark_module.damage(original.read_bytes(), original.suffix, rng)
        path = tmp_path / f"variant{suffix}"
        path.write_bytes(content)
        kind, message, _, memory = benchmark_module.outcome(path)
        path.unlink()
        seen.add(kind)
        assert kind in ("shape", "mended", "error"), f"{number}, {original.name}, {way}: {kind} {message}"
        assert memory < 2000
        if kind == "error":
            assert message.startswith("variant")
            assert message.endswith(".")
    assert seen == {"shape", "mended", "error"}


def test_the_originals_are_sound(benchmark_module: ModuleType, tmp_path: Path) -> None:
    for original in benchmark_module.write_originals(tmp_path):
        kind, message, _, _ = benchmark_module.outcome(original)
        assert kind in ("shape", "mended"), f"{original.name}: {message}"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "a.ply",
            b"ply\nformat binary_little_endian 1.0\nelement vertex 9000000000000\nproperty float x\n"
            b"property float y\nproperty float z\nend_header\n" + bytes(100),
        ),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
            b"element face 1\nproperty list int int vertex_indices\nend_header\n0 0 0\n2000000000 1 2 3\n",
        ),
        ("a.off", b"OFF\n4000000000 1 0\n0 0 0\n"),
        (
            "a.npy",
            b"\x93NUMPY\x01\x00\x76\x00"
            + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000, 3), }".ljust(117)
            + b"\n",
        ),
        (
            "a.gltf",
            b'{"asset":{"version":"2.0"},"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],'
            b'"accessors":[{"count":9000000000,"type":"VEC3","componentType":5126}]}',
        ),
        ("a.gltf", b'{"asset":{"version":"2.0"},"nodes":[{"children":[0]}],"scenes":[{"nodes":[0]}]}'),
        ("a.gltf", b'{"asset":' + b"[" * 200000),
        ("a.stl", bytes(80) + b"\xff\xff\xff\xff" + bytes(50)),
    ],
)
def test_absurd_promises_are_refused_at_once(
    benchmark_module: ModuleType, tmp_path: Path, name: str, data: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    kind, message, _, memory = benchmark_module.outcome(tmp_path / name)
    assert kind == "error", message
    assert memory < 100
