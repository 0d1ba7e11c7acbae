"""Damaged files of every reader: 500 cases, each in a process of its own with limits on time, memory and files."""

import os
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from damage import benchmark

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")

READERS = "cache glb gltf labels landmarks map npy obj off pairs ply run skin stl truth values xyz"


def test_damaged_files_end_in_a_result_or_a_clear_error(tmp_path: Path) -> None:
    targets = benchmark.targets(tmp_path)
    assert " ".join(sorted({target.name.split()[0] for target in targets})) == READERS
    for number, target in enumerate(targets):
        folder = tmp_path / f"valid{number}"
        folder.mkdir()
        for name, data in target.files.items():
            (folder / name).write_bytes(data)
        assert target.read(folder / target.victim) is not None, target.name
    rng = np.random.default_rng(20)
    seen = defaultdict(set)
    for first in range(0, 500, len(targets)):
        batch = targets[: 500 - first]
        for target, (way, found) in zip(batch, benchmark.run_cases(batch, rng, tmp_path), strict=True):
            case = f"{first}, {target.name}, {way}: {found}"
            assert found.kind in benchmark.GOOD, case
            assert found.megabytes < 2000, case
            seen[target.name.split()[0]].add(found.kind)
            if found.kind == "error":
                assert found.message.endswith((".", "?")), case
                assert "Traceback" not in found.message, case
    assert all("error" in kinds for kinds in seen.values())


def test_forbidden_actions_are_noticed(tmp_path: Path) -> None:
    """The watch itself works: files outside the folder, processes and pickles."""
    import pickle
    import subprocess

    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("secret")
    (inside / "a").write_text("own")
    assert benchmark.outcome(lambda: (inside / "a").read_text(), inside).kind == "read"
    harmful = [
        lambda: outside.read_text(),
        lambda: outside.write_text("changed"),
        lambda: subprocess.run(["true"], check=True),
        lambda: pickle.loads(pickle.dumps(Path("x"))),
    ]
    for action in harmful:
        assert benchmark.outcome(action, inside).kind == "forbidden"


@pytest.mark.parametrize("name", ["../secret.mtl", "{root}/secret.mtl", "..\\secret.mtl"])
def test_materials_outside_the_folder_are_not_read(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "shapes"
    folder.mkdir()
    (tmp_path / "secret.mtl").write_text("newmtl m\nmap_Kd secret.png\n")
    text = (
        f"mtllib {name.format(root=tmp_path)}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl m\n"
    )
    (folder / "a.obj").write_text(text + "f 1/1 2/2 3/3\nf 1/1 2/2 4/3\nf 1/1 3/2 4/3\nf 2/1 3/2 4/3\n")
    found = benchmark.outcome(lambda: benchmark.load_and_check(folder / "a.obj"), folder)
    assert found.kind in benchmark.GOOD, found


@pytest.mark.parametrize(("action", "kind"), [(lambda: os.kill(os.getpid(), 9), "crash"), (lambda: 1 / 0, "traceback")])
def test_a_crash_does_not_hide_the_cases_after_it(tmp_path: Path, action: Callable[[], object], kind: str) -> None:
    found = benchmark.outcomes([(lambda: 1, tmp_path), (action, tmp_path), (lambda: os.write(2, b"x"), tmp_path)])
    assert [one.kind for one in found] == ["read", kind, "printed"]
