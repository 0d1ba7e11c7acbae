"""The cache keeps to its limit, and never removes what is in use or not its own."""

import json
import os
import time
from dataclasses import replace

import pytest
from analytic import bumpy

from acnn import InputError, cache
from acnn.cli import main
from acnn.datasets.dataset import Example, InMemory, Sample
from acnn.descriptors.settings import DescriptorSettings
from acnn.patches import PatchSettings
from acnn.training.prepared import Needs, cached_patches, prepare_sample

SETTINGS = PatchSettings(angles=1, scales=(6.0,))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path))
    return tmp_path


def old_entry(folder, name, hours, size=100_000):
    path = folder / name
    path.write_bytes(b"x" * size)
    age(path, hours)
    return path


def age(path, hours):
    used = time.time() - 3600 * hours
    os.utime(path, (used, used))


def answer(capsys, *options):
    assert main(["cache", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_size_and_limit_are_shown_and_the_limit_stays(folder, capsys):
    old_entry(folder, "patches-0a.safetensors", 2)
    old_entry(folder, "model.safetensors", 2)
    shown = {"folder": str(folder), "entries": 1, "megabytes": 0.1, "limit_gb": 10.0}
    assert answer(capsys) == shown | {"removed": 0, "freed_megabytes": 0.0}
    assert answer(capsys, "--limit", "2.5")["limit_gb"] == 2.5
    assert answer(capsys)["limit_gb"] == 2.5
    assert main(["cache"]) == 0
    assert "2.5 GB" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--limit", "-1"], ["--limit", "nan"], ["--limit", "inf"], ["--no-cache"]])
def test_bad_options(folder, options):
    assert main(["cache", *options]) == 2
    assert list(folder.iterdir()) == []


def test_clearing_leaves_what_is_not_of_the_cache(folder, capsys):
    kept = {"model.safetensors", "patches.safetensors", "patches-0a.txt", ".patches-0a-" + "0" * 32 + ".part"}
    for name in kept:
        old_entry(folder, name, 0)
    for name in ("patches-0a.safetensors", "descriptors-1b.safetensors", "remeshed-2c.safetensors"):
        old_entry(folder, name, 0)
    old_entry(folder, ".patches-0a-" + "1" * 32 + ".part", 2)  # of a process that was killed
    answered = answer(capsys, "--clear")
    assert (answered["removed"], answered["entries"], answered["freed_megabytes"]) == (3, 0, 0.3)
    assert {path.name for path in folder.iterdir()} == kept


def test_a_new_limit_removes_what_was_not_used_for_longest(folder, capsys):
    names = [f"patches-{i}.safetensors" for i in range(4)]
    for hours, name in zip((4, 9, 2, 0), names, strict=True):
        old_entry(folder, name, hours)
    assert answer(capsys, "--limit", "0.00025")["removed"] == 2
    assert sorted(path.name for path in folder.glob("patches*")) == [names[2], names[3]]
    assert answer(capsys, "--limit", "0")["removed"] == 1  # the last hour stays
    assert [path.name for path in folder.glob("patches*")] == [names[3]]


def test_an_entry_that_is_added_takes_the_place_of_the_oldest(folder):
    old, older, read = (
        old_entry(folder, f"patches-{i}.safetensors", hours, 1_000_000) for i, hours in enumerate((3, 4, 5))
    )
    cache.mark_used(read)
    (folder / cache.LIMIT_FILE).write_text("0.0025")
    cached_patches(bumpy(1), SETTINGS)
    assert [path.exists() for path in (old, older, read)] == [True, False, True]


def test_what_a_process_prepares_stays_however_large_and_however_long_it_takes(folder):
    (folder / cache.LIMIT_FILE).write_text("0")
    prepared = []
    for i in range(3):
        mesh = bumpy(1)
        sample = Sample(str(i), InMemory(Example(replace(mesh, vertices=(1 + i) * mesh.vertices), None)), number=i)
        for path in folder.glob("*.safetensors"):
            age(path, 5)  # as if one shape took hours
        prepared.append(prepare_sample(sample, Needs(DescriptorSettings(kinds=("hks",)), SETTINGS), folder))
    for one in prepared:
        assert one.patches().n == one.descriptors().shape[0] == len(bumpy(1).vertices)
    cache.clear(folder)
    with pytest.raises(InputError, match="removed from the cache while it was in use"):
        prepared[0].patches()


def test_use_is_noted(folder):
    cached_patches(bumpy(1), SETTINGS)
    entries = list(folder.iterdir())  # the operator, and the unit that was measured for it
    assert len(entries) == 2
    for path in entries:
        age(path, 5)
    cached_patches(bumpy(1), SETTINGS)  # reads them
    assert all(time.time() - path.stat().st_mtime < 1000 for path in entries)
