import multiprocessing
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analytic import bumpy

from acnn.cache import cache_folder
from acnn.errors import InputError
from acnn.patches import PatchSettings, build_patches
from acnn.shapes import Mesh, PointCloud, Source
from acnn.shapes.load import own_descriptors
from acnn.training.cache_entries import patch_key, read_patches, write_patches
from acnn.training.prepared import cached_patches

SETTINGS = PatchSettings(angles=2, scales=(3.0, 9000.0), eigenpairs=20)


@pytest.fixture(scope="module")
def mesh():
    return bumpy(2)


def same(a, b):
    names = ("start", "vertices", "values", "eigenvalues", "eigenfunctions", "vertex_areas")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names) and a.settings == b.settings


def test_what_is_written_is_read_and_stays_on_disk(mesh, tmp_path):
    operator = build_patches(mesh, SETTINGS)
    write_patches(operator, tmp_path / "o.safetensors")
    found = read_patches(tmp_path / "o.safetensors")
    assert same(operator, found)
    assert isinstance(found.values.base.base, np.memmap) or isinstance(found.values.base, np.memmap)
    assert [p.name for p in tmp_path.iterdir()] == ["o.safetensors"]


def test_the_key_follows_everything_that_matters(mesh):
    keys = {
        patch_key(mesh, SETTINGS, 0.4),
        patch_key(mesh, SETTINGS, 0.5),
        patch_key(mesh, replace(SETTINGS, alpha=99.0), 0.4),
        patch_key(replace(mesh, vertices=mesh.vertices * (1 + 1e-15)), SETTINGS, 0.4),
        patch_key(replace(mesh, faces=mesh.faces[::-1]), SETTINGS, 0.4),
    }
    assert len(keys) == 5
    assert patch_key(replace(mesh, colors=np.zeros((162, 4), np.uint8)), SETTINGS, 0.4) in keys


@pytest.mark.parametrize("kind", ["mesh", "cloud"])
def test_a_measured_unit_and_the_same_unit_given_lead_to_one_entry(mesh, tmp_path, monkeypatch, kind):
    shape = mesh if kind == "mesh" else PointCloud(mesh.vertices)
    settings = replace(SETTINGS, scales=(6.0,))
    first = cached_patches(shape, settings, folder=tmp_path / "measured")
    given = cached_patches(shape, settings, unit=first.unit, folder=tmp_path / "given")
    assert same(first, given)
    monkeypatch.setattr("acnn.training.prepared.build_patches", None)
    assert same(first, cached_patches(shape, settings, unit=first.unit, folder=tmp_path / "measured"))
    assert same(first, cached_patches(shape, settings, folder=tmp_path / "given"))


def test_a_unit_is_measured_once(mesh, tmp_path, monkeypatch):
    unit = cached_patches(mesh, SETTINGS, folder=tmp_path).unit
    monkeypatch.setattr("acnn.surface.geodesics.geodesic_diameter", None)
    assert cached_patches(mesh, SETTINGS, folder=tmp_path).unit == unit
    other = replace(SETTINGS, scales=(6.0,))
    assert cached_patches(mesh, other, folder=tmp_path).unit == unit


def test_entries_of_an_earlier_version_are_not_read(mesh, tmp_path, monkeypatch):
    monkeypatch.setattr("acnn.training.cache_entries.PATCH_VERSION", 2)
    old = cached_patches(mesh, SETTINGS, folder=tmp_path)
    (path,) = tmp_path.glob("patches-*")
    monkeypatch.undo()
    with pytest.raises(InputError, match="version"):
        read_patches(path)
    assert same(old, cached_patches(mesh, SETTINGS, folder=tmp_path))
    assert len(list(tmp_path.glob("patches-*"))) == 2


def test_a_second_call_reads_the_first_ones_file(mesh, tmp_path, monkeypatch):
    first = cached_patches(mesh, SETTINGS, folder=tmp_path)
    monkeypatch.setattr("acnn.training.prepared.build_patches", None)
    assert same(first, cached_patches(mesh, SETTINGS, folder=tmp_path))


@pytest.mark.parametrize("damage", ["cut", "flipped", "header", "empty", "text"])
def test_a_damaged_entry_is_noticed_and_computed_again(mesh, tmp_path, damage):
    good = cached_patches(mesh, SETTINGS, folder=tmp_path)
    expected = {name: np.array(getattr(good, name)) for name in ("start", "vertices", "values")}
    (path,) = tmp_path.glob("patches-*")
    data = bytearray(path.read_bytes())
    del good
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data[-len(data) // 3] ^= 4
    elif damage == "header":
        data[30] ^= 255
    elif damage == "empty":
        data = bytearray()
    else:
        data = bytearray(b"not an operator at all, but longer than eight bytes")
    path.write_bytes(data)
    with pytest.raises(InputError, match="create it again"):
        read_patches(path)
    again = cached_patches(mesh, SETTINGS, folder=tmp_path)
    assert all(np.array_equal(getattr(again, name), array) for name, array in expected.items())
    assert same(again, read_patches(path))


def _prepare(folder):
    cached_patches(bumpy(2), SETTINGS, folder=folder)


def test_two_processes_may_prepare_the_same_shape_at_once(mesh, tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_prepare, args=(tmp_path,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    (path,) = tmp_path.glob("patches-*")
    assert same(read_patches(path), build_patches(mesh, SETTINGS))


def test_the_folder_is_the_one_asked_for_or_that_of_the_system(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("ACNN_CACHE")
    assert cache_folder().name == "acnn" or cache_folder().parent.name == "acnn"
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache_folder() == tmp_path / "xdg" / "acnn"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert cache_folder() == Path.home() / ".cache" / "acnn"


def test_own_array_follows_the_vertices_of_the_file(tmp_path):
    source = Source(str(tmp_path / "a.ply"), np.array([-1, 0, 1], np.int32), np.array([1, 2, 2], np.int32))
    shape = Mesh(np.zeros((3, 3)), np.zeros((0, 3), np.int32), source=source)
    with pytest.raises(InputError, match=r"a\.npy: there is no such file.*3 rows"):
        own_descriptors(shape)
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(own_descriptors(shape), [[2, 3], [4, 5], [4, 5]])
    np.save(tmp_path / "a.npy", np.arange(8).reshape(4, 2))
    with pytest.raises(InputError, match=r"has 4 rows, but a\.ply has 3 vertices"):
        own_descriptors(shape)
    np.save(tmp_path / "a.npy", np.array([{}, {}, {}]), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        own_descriptors(shape)
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(InputError, match="shape"):
        own_descriptors(shape)
    with pytest.raises(InputError, match="read from files"):
        own_descriptors(replace(shape, source=None))
