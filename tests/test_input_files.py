"""Arrays given as files: whatever is in them, an array that fits comes out, or an InputError that names the file."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analytic import sphere
from damage import benchmark

from acnn.correspondence.map_files import fingerprint, read_map
from acnn.datasets.label_files import read_labels, read_truth, read_vts
from acnn.datasets.shrec16 import read_baryc
from acnn.errors import InputError
from acnn.input_files import read_json, read_npy, read_npz, read_table
from acnn.runs.transfer import read_values
from acnn.shapes import Mesh, load, save
from acnn.training.prepared import own_descriptors

MUTATIONS = 60


@pytest.fixture(scope="module")
def shape(tmp_path_factory) -> Mesh:
    path = tmp_path_factory.mktemp("shape") / "shape.ply"
    save(sphere(1), path)
    return load(path)


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def text(array: np.ndarray, form: str = "%d") -> bytes:
    stream = io.BytesIO()
    np.savetxt(stream, array, fmt=form)
    return stream.getvalue()


def npz(arrays: dict[str, np.ndarray | bytes]) -> bytes:
    """An archive of arrays, or of what is given as the bytes of one."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(array))
    return stream.getvalue()


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


def readers(shape: Mesh) -> dict[str, tuple[str, bytes, Callable[[Path], object]]]:
    """Of every reader: the name of a file, what may stand in it, and how it is read."""
    n, m = len(shape.vertices), len(shape.faces)
    rng = np.random.default_rng(1)
    numbers, weights = np.arange(n), rng.dirichlet([1, 1, 1], n)
    places = "%d %.6f %.6f %.6f"

    def own(path: Path) -> object:
        beside = Path(shape.source.path).with_suffix(".npy")
        beside.write_bytes(path.read_bytes())
        return own_descriptors(shape)

    def values(path: Path) -> object:
        return read_values(path, shape)

    def map_of(path: Path) -> object:
        return read_map(path, shape, shape)

    return {
        "labels as whole numbers": ("a.npy", npy(numbers), values),
        "values": ("a.npy", npy(rng.normal(size=(n, 2))), values),
        "words": ("a.npy", npy(np.array([f"w{i}" for i in range(n)])), values),
        "values as text": ("a.txt", text(weights, "%.5f"), values),
        "descriptors": ("a.npy", npy(rng.normal(size=(n, 4)).astype(np.float32)), own),
        "map": ("a.npz", npz(a_map(shape)), map_of),
        "map as text": ("a.txt", text(numbers), map_of),
        "map from 1": ("a.vts", text(numbers + 1), map_of),
        "labels of a dataset": ("a.txt", text(numbers), lambda path: read_labels(path, n, n)),
        "rows of a dataset": ("a.vts", text(numbers + 1), lambda path: read_vts(path, n)),
        "truth": ("a.txt", text(np.c_[numbers, weights], places), lambda path: read_truth(path, n, m)),
        "SHREC'16": ("a.txt", text(np.c_[numbers + 1, weights], places), lambda path: read_baryc(path, n, m)),
    }


@pytest.mark.filterwarnings("error")
def test_mutated_files_end_in_a_result_or_an_input_error(shape: Mesh, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for reader, (name, data, read) in readers(shape).items():
        path = tmp_path / name
        path.write_bytes(data)
        assert read(path) is not None
        messages = []
        for _ in range(MUTATIONS):
            _, content, _ = benchmark.damage(data, "", rng)
            path.write_bytes(content)
            try:
                read(path)
            except InputError as error:
                messages.append(str(error))
        named = "shape.npy" if reader == "descriptors" else name
        assert len(messages) > MUTATIONS / 4, reader
        assert all(named in message for message in messages), reader


@pytest.mark.filterwarnings("error")
def test_mutated_arrays_inside_a_sound_archive(shape: Mesh, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    sound = a_map(shape)
    path = tmp_path / "map.npz"
    messages = []
    for _ in range(300):
        name = str(rng.choice(list(sound)))
        _, content, _ = benchmark.damage(npy(sound[name]), "", rng)
        path.write_bytes(npz(sound | {name: content}))
        try:
            read_map(path, shape, shape)
        except InputError as error:
            messages.append(str(error))
    assert 50 < len(messages) < 300
    assert all("map.npz" in message for message in messages)


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
