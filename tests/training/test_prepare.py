"""Preparing a dataset: right, once, in spite of damage, a full disk and interruptions, alone or spread out."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from acnn.datasets import Example, Sample, open_dataset
from acnn.descriptors import shot
from acnn.descriptors.settings import DescriptorSettings
from acnn.errors import InputError
from acnn.patches import PatchSettings, build_patches
from acnn.shapes import Mesh, load, save
from acnn.surface.surface import surface_of
from acnn.training import prepared as prepared_module
from acnn.training.parallel import DIED
from acnn.training.prepare import prepare
from acnn.training.prepared import Needs

PATCHES = PatchSettings(angles=2, scales=(12.0,))
DESCRIPTORS = DescriptorSettings(shot_radii=(30.0,))
SETTINGS = (DESCRIPTORS, PATCHES)
ON_COMMAND_LINE = ["--angles", "2", "--scales", "12", "--radius", "30", "--json"]


def blob(seed: int) -> Mesh:
    """A closed bumpy egg of 126 vertices."""
    rows, columns = 8, 18
    around = np.arange(columns) * 2 * np.pi / columns
    down = (np.arange(1, rows) * np.pi / rows)[:, None]
    ring = np.stack([np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), 1.7 * np.cos(down) + 0 * around], 2)
    vertices = np.concatenate([ring.reshape(-1, 3), [[0, 0, 1.7], [0, 0, -1.7]]])
    vertices *= 1 + np.random.default_rng(seed).uniform(0, 0.1, (len(vertices), 1))
    top, n = (rows - 1) * columns, columns
    faces = []
    for j in range(n):
        k = (j + 1) % n
        faces += [(top, j, k), (top + 1, top - n + k, top - n + j)]
        for i in range(rows - 2):
            a, b = i * n + j, i * n + k
            faces += [(a, a + n, b), (b, a + n, b + n)]
    return Mesh(vertices, np.array(faces, np.int32))


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    folder = tmp_path / "shapes"
    folder.mkdir()
    for k in range(4):
        save(blob(k), folder / f"egg{k}.ply")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@dataclass(frozen=True)
class Deadly:
    """A shape whose reading kills the process."""

    def __call__(self) -> Example:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_prepared_is_what_the_rooms_compute(shapes: Path, cache: Path) -> None:
    steps: list[tuple[int, int]] = []
    done, failures = prepare(open_dataset(shapes), Needs(*SETTINGS), progress=lambda a, b: steps.append((a, b)))
    assert not failures
    assert [p.name for p in done] == ["egg0", "egg1", "egg2", "egg3"]
    assert steps == [(k, 4) for k in range(5)]
    mesh = load(shapes / "egg2.ply")
    operator, expected = done[2].patches(), build_patches(mesh, PATCHES)
    np.testing.assert_array_equal(operator.values, expected.values)
    np.testing.assert_array_equal(operator.vertices, expected.vertices)
    np.testing.assert_array_equal(done[2].descriptors(), shot(surface_of(mesh), 30.0))
    np.testing.assert_array_equal(done[2].labels, np.arange(128))
    assert (done[2].n, done[2].unit) == (128, pytest.approx(expected.unit))
    assert not any(p.from_cache for p in done)


def test_second_time_all_comes_from_the_cache(shapes: Path, cache: Path) -> None:
    data = open_dataset(shapes)
    prepare(data, Needs(*SETTINGS))
    before = {path: path.stat().st_ino for path in cache.iterdir()}  # a file written again is another one
    assert len(before) == 12  # an operator, descriptors and the unit of each
    done, _ = prepare(data, Needs(*SETTINGS))
    assert all(p.from_cache for p in done)
    assert {path: path.stat().st_ino for path in cache.iterdir()} == before
    other, _ = prepare(data, Needs(replace(DESCRIPTORS, shot_radii=(25.0,)), PATCHES), samples="2")
    assert not other[0].from_cache
    assert len(list(cache.iterdir())) == 13


def test_a_datasets_unit_is_used_for_every_shape(shapes: Path, cache: Path) -> None:
    data = replace(open_dataset(shapes), unit=0.02)
    done, _ = prepare(data, Needs(*SETTINGS), samples="1")
    mesh = load(shapes / "egg1.ply")
    assert done[0].unit == 0.02
    np.testing.assert_array_equal(done[0].patches().values, build_patches(mesh, PATCHES, unit=0.02).values)
    np.testing.assert_array_equal(done[0].descriptors(), shot(surface_of(mesh, 0.02), 30.0))


def test_one_bad_shape_does_not_stop_the_others(shapes: Path, cache: Path) -> None:
    path = shapes / "egg1.ply"
    path.write_bytes(path.read_bytes()[:700])
    done, failures = prepare(open_dataset(shapes), Needs(*SETTINGS))
    assert [p.name for p in done] == ["egg0", "egg2", "egg3"]
    assert [f.item for f in failures] == ["egg1"]
    assert failures[0].why.startswith("egg1.ply: ")


def test_damaged_entries_are_computed_again(shapes: Path, cache: Path) -> None:
    data = open_dataset(shapes)
    prepare(data, Needs(*SETTINGS))
    sound = contents(cache)
    for k, path in enumerate(sorted(cache.iterdir())):
        content = bytearray(path.read_bytes())
        content[-5] ^= 0xFF
        path.write_bytes([content, content[:-40], b"", content[:3]][k % 4])
    done, failures = prepare(data, Needs(*SETTINGS))
    assert not failures
    assert not any(p.from_cache for p in done[1:])
    again = contents(cache)
    assert sorted(again) == sorted(sound)
    assert all(again[name] == sound[name] for name in sound if name.startswith("descriptors"))
    assert prepare(data, Needs(*SETTINGS))[0][3].from_cache


def test_own_descriptors_are_found_again_only_while_they_stay_the_same(shapes: Path, cache: Path) -> None:
    data = open_dataset(shapes).select("3")
    own = DescriptorSettings(kinds=("file",))
    np.save(shapes / "egg3.npy", np.arange(256.0).reshape(128, 2))
    done, failures = prepare(data, Needs(own, PATCHES))
    assert not failures
    np.testing.assert_array_equal(done[0].descriptors(), np.arange(256).reshape(128, 2))
    np.save(shapes / "egg3.npy", np.arange(128.0).reshape(128, 1))
    done, _ = prepare(data, Needs(own, PATCHES))
    assert not done[0].from_cache
    assert done[0].descriptors().shape == (128, 1)


def test_full_disk_is_told_and_what_was_done_stays(shapes: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = open_dataset(shapes)
    written: list[Path] = []
    write = prepared_module.write_patches

    def write_two(operator: object, path: Path) -> None:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        write(operator, path)  # type: ignore[arg-type]

    monkeypatch.setattr(prepared_module, "write_patches", write_two)
    with pytest.raises(OSError, match=r"No space left.*cache.*2 of 4 shapes are done and stay"):
        prepare(data, Needs(*SETTINGS))
    monkeypatch.undo()
    done, failures = prepare(data, Needs(*SETTINGS), cache_dir=cache)
    assert not failures
    assert [p.from_cache for p in done] == [True, True, False, False]


def test_a_limit_met_by_the_writing_library_is_told_too(shapes: Path, cache: Path) -> None:
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
        "from acnn.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "prepare", str(shapes), *ON_COMMAND_LINE]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1, run.stderr
    assert "No space left for the cache" in json.loads(run.stdout)["error"]
    assert {path.name.split("-")[0] for path in cache.iterdir()} == {"unit"}  # small enough, and whole


def test_processes_give_the_same_and_survive_a_bad_shape(shapes: Path, cache: Path, tmp_path: Path) -> None:
    (shapes / "egg2.ply").write_text("ply\nnothing\n")
    data = open_dataset(shapes)
    before = dict(os.environ)
    alone, _ = prepare(data, Needs(*SETTINGS))
    spread, failures = prepare(data, Needs(*SETTINGS), workers=2, cache_dir=tmp_path / "other")
    assert [f.item for f in failures] == ["egg2"]
    assert [p.name for p in spread] == ["egg0", "egg1", "egg3"]
    assert not any(p.from_cache for p in spread)
    for a, b in zip(alone, spread, strict=True):
        np.testing.assert_array_equal(a.patches().values, b.patches().values)
        np.testing.assert_array_equal(a.descriptors(), b.descriptors())
    assert dict(os.environ) == before


def test_a_process_that_dies_costs_only_its_own_shape(shapes: Path, cache: Path) -> None:
    data = open_dataset(shapes)
    data = replace(data, samples=(data.samples[0], Sample("deadly", Deadly()), *data.samples[1:3]))
    done, failures = prepare(data, Needs(*SETTINGS), workers=2)
    assert [p.name for p in done] == ["egg0", "egg1", "egg2"]
    assert [(f.item, f.why) for f in failures] == [("deadly", DIED)]


def test_an_interruption_keeps_what_was_done(shapes: Path, cache: Path) -> None:
    data = open_dataset(shapes)

    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(data, Needs(*SETTINGS), workers=2, progress=interrupt)
    assert not multiprocessing.active_children()
    assert not list(cache.glob(".*.part"))
    done, failures = prepare(data, Needs(*SETTINGS))
    assert not failures
    assert sum(p.from_cache for p in done) >= 2


def test_two_processes_may_prepare_the_same_at_once(shapes: Path, cache: Path) -> None:
    command = [sys.executable, "-m", "acnn", "prepare", str(shapes), *ON_COMMAND_LINE]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    facts = [json.loads(run.communicate(timeout=120)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert [fact["prepared"] for fact in facts] == [4, 4]
    assert all(p.from_cache for p in prepare(open_dataset(shapes), Needs(*SETTINGS))[0])
    assert len(list(cache.iterdir())) == 12


def test_bad_arguments(shapes: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = open_dataset(shapes)
    with pytest.raises(InputError, match="at least one"):
        prepare(data, Needs(*SETTINGS), workers=0)
    with pytest.raises(InputError, match="either workers or a scheduler"):
        prepare(data, Needs(*SETTINGS), workers=2, scheduler="tcp://127.0.0.1:8786")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'acnn\[dask\]'"):
        prepare(data, Needs(*SETTINGS), scheduler="tcp://127.0.0.1:8786")


def test_workers_of_a_dask_scheduler(shapes: Path, cache: Path) -> None:
    distributed = pytest.importorskip("distributed")
    (shapes / "egg2.ply").write_text("ply\nnothing\n")
    data = open_dataset(shapes)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        done, failures = prepare(data, Needs(*SETTINGS), scheduler=cluster.scheduler_address)
    assert [p.name for p in done] == ["egg0", "egg1", "egg3"]
    assert [f.item for f in failures] == ["egg2"]
    assert "as PLY" in failures[0].why
    assert [p.from_cache for p in prepare(data, Needs(*SETTINGS))[0]] == [True, True, True]
