"""Arrays given as files: whatever is in them, an array that fits comes out, or an InputError that names the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analytic import sphere
from damage import benchmark

from acnn.correspondence.map_files import fingerprint, read_map
from acnn.errors import InputError
from acnn.input_files import read_json, read_npy, read_npz, read_table
from acnn.shapes import Mesh, load, save
from acnn.shapes.load import own_descriptors

npy, npz = benchmark.npy, benchmark.npz


@pytest.fixture(scope="module")
def shape(tmp_path_factory) -> Mesh:
    path = tmp_path_factory.mktemp("shape") / "shape.ply"
    save(sphere(1), path)
    return load(path)


def a_map(shape: Mesh) -> dict[str, Any]:
    n = len(shape.vertices)
    rng = np.random.default_rng(0)
    return {
        "a_to_b": np.arange(n),
        "a_to_b_faces": rng.integers(len(shape.faces), size=n),
        "a_to_b_weights": rng.dirichlet([1, 1, 1], n),
        "a_fingerprint": fingerprint(shape),
        "b_fingerprint": fingerprint(shape),
    }


def header(shape: str, descr: str = "'<f8'") -> bytes:
    content = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content.encode("latin-1")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (npy(np.array([{}, 1], dtype=object)), "Python objects"),
        (npy(np.zeros(2, [("a", "f8")])), "numbers or strings"),
        (npy(np.zeros((0, 3))), "is empty"),
        (npy(np.zeros(9))[:-1], "ends before"),
        (header("(90000000000, 3)"), "ends before"),
        (header("(9" + "0" * 300 + ",)"), "ends before"),
        (header("(-1, 3)"), "is empty"),
        (header("(1,) * 40"), "header is damaged"),
        (header("(" + "1, " * 16 + ")" * 50), "header is damaged"),
        (header("(" * 100), "header is damaged"),
        (header("(1,)", "'<U0'"), "numbers or strings"),
        (header("(1,)", "'<U1'") + b"\xff\xff\xff\x7f", "Unicode"),
        (b"\x80\x04K\x01.", "does not begin"),
        (b"1 2 3\n", "does not begin"),
    ],
)
def test_bytes_that_are_no_array_are_refused_in_words(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(InputError, match=rf"a\.npy: .*{words}"):
        read_npy(tmp_path / "a.npy")
    (tmp_path / "a.npz").write_bytes(npz({"first": np.ones(3), "second": data}))
    with pytest.raises(InputError, match=rf"a\.npz: .*'second\.npy'.*{words}"):
        read_npz(tmp_path / "a.npz")


def test_an_archive_that_would_fill_the_memory_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.npz"
    path.write_bytes(npz({str(number): bytes(1 << 20) for number in range(10)}))
    assert path.stat().st_size < 1 << 15
    monkeypatch.setattr("acnn.input_files.MAX_UNPACKED", 9 << 20)
    monkeypatch.setattr("zipfile.ZipFile.read", None)
    with pytest.raises(InputError, match=r"bomb\.npz: .*unpacked it would have 0\.01 GB"):
        read_npz(path)


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    for read in (read_npy, read_npz, read_json, lambda path: read_table(path, float)):
        with pytest.raises(InputError, match="nothing here: there is no such file"):
            read(tmp_path / "nothing here")
        with pytest.raises(InputError, match="is a folder"):
            read(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[1]", "1", "[" * 100000, '{"a": "\\ud800"}x', "\x00"])
def test_what_is_no_json_object_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a_to_b": np.zeros(42)}, "vertex indices"),
        ({"a_to_b": np.array(["x"] * 42)}, "vertex indices"),
        ({"a_to_b": np.zeros((42, 1), int)}, "shape"),
        ({"a_to_b": np.full(42, 2**63, np.uint64)}, "names vertex 9223372036854775808"),
        ({"a_to_b_weights": np.array(["x"] * 126).reshape(42, 3)}, "do not fit"),
        ({"a_to_b_weights": np.full((42, 3), 1j)}, "do not fit"),
        ({"a_to_b_weights": np.full((42, 3), np.nan)}, "sum to 1"),
        ({"a_to_b_weights": np.full((42, 3), 1e308)}, "sum to 1"),
        ({"a_to_b_faces": np.zeros(42)}, "do not fit"),
    ],
)
def test_maps_that_do_not_fit_are_told(shape: Mesh, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "map.npz"
    path.write_bytes(npz(a_map(shape) | change))
    with pytest.raises(InputError, match=rf"map\.npz: .*{words}"):
        read_map(path, shape, shape)


def test_an_unsigned_map_is_a_map(shape: Mesh, tmp_path: Path) -> None:
    sound = a_map(shape)
    path = tmp_path / "map.npz"
    path.write_bytes(npz(sound | {"a_to_b": sound["a_to_b"].astype(np.uint64)}))
    np.testing.assert_array_equal(read_map(path, shape, shape).vertices, sound["a_to_b"])


def test_descriptors_that_are_not_finite_name_file_and_row(shape: Mesh) -> None:
    values = np.zeros((42, 3))
    values[7, 1], values[9, 2] = np.nan, 1e200
    path = Path(shape.source.path).with_suffix(".npy")
    path.write_bytes(npy(values))
    with pytest.raises(InputError, match=r"shape\.npy: row 7 \(and 1 more\)"):
        own_descriptors(shape)
