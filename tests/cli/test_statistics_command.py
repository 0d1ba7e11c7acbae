"""`acnn statistics`: a folder of meshes in, mean, modes, scores and a page out; bad files do not stop the rest."""

import csv
import json

import numpy as np
import pytest

import acnn
from acnn.cli import main
from acnn.datasets.families import make_family


@pytest.fixture(scope="module")
def bones():
    return make_family("bone", 8, vertices=600, seed=1)


@pytest.fixture
def folder(bones, tmp_path):
    target = tmp_path / "bones"
    target.mkdir()
    for i in range(8):
        acnn.save(bones.mesh(i), target / f"bone_{i}.{'obj' if i == 3 else 'ply'}")
    acnn.save(bones.mesh(0), target / "template.ply")
    return target


def run(capsys, *arguments):
    code = main(["statistics", *map(str, arguments), "--json"])
    output = capsys.readouterr()
    return code, json.loads(output.out) if output.out else None, output.err


def test_result_of_a_folder(bones, folder, tmp_path, capsys):
    groups = tmp_path / "groups.csv"
    lines = [f"bone_{i},{'old' if i < 4 else 'young'}" for i in range(7)]
    groups.write_text("\n".join(["shape,age", *lines, ""]))
    out = tmp_path / "out"
    code, facts, _ = run(capsys, folder, "--out", out, "--groups", groups, "--modes", 3, "--permutations", 99)
    assert code == 0
    assert facts["shapes"] == 8
    assert facts["groups"]["names"] == ["old", "young"]
    assert facts["groups"]["counts"] == [4, 3]
    expected = acnn.shape_statistics(bones.vertices, modes=3)
    arrays = np.load(out / "statistics.npz")
    assert np.allclose(arrays["standard_deviations"], expected.standard_deviations, rtol=1e-4)
    assert np.allclose(np.abs(arrays["scores"]), np.abs(expected.scores), atol=1e-3)
    with (out / "scores.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == [f"bone_{i}" for i in range(8)]
    assert [row["group"] for row in rows] == ["old"] * 4 + ["young"] * 3 + [""]
    assert float(rows[2]["mode_1"]) == pytest.approx(arrays["scores"][2, 0], abs=1e-5)
    plus, minus, mean = (acnn.load(out / f"{name}.ply") for name in ("mode_2_plus", "mode_2_minus", "mean"))
    assert np.array_equal(plus.faces, bones.faces)
    assert np.allclose((plus.vertices + minus.vertices) / 2, mean.vertices, atol=1e-6)
    shift = np.linalg.norm(plus.vertices - mean.vertices)
    assert shift == pytest.approx(3 * arrays["standard_deviations"][1], rel=1e-4)
    assert len((out / "vertices.csv").read_text().splitlines()) == 601
    assert sorted(facts["files"]) == sorted(path.name for path in out.iterdir())
    # a second run with fewer modes replaces the result and leaves nothing behind
    code, facts, _ = run(capsys, folder, "--out", out, "--modes", 1)
    assert code == 0
    assert sorted(facts["files"]) == sorted(path.name for path in out.iterdir())
    assert not (out / "mode_2_plus.ply").exists()


def test_bad_files_are_listed_and_do_not_stop_the_rest(bones, folder, tmp_path, capsys):
    (folder / "bone_1.ply").write_text("nothing")
    turned = acnn.Mesh(bones.vertices[2], np.roll(bones.faces, 1, axis=0))
    acnn.save(turned, folder / "bone_2.ply")
    text = (folder / "bone_3.obj").read_text().splitlines()
    text[next(i for i, line in enumerate(text) if line.startswith("v "))] = "v nan 0 0"
    (folder / "bone_3.obj").write_text("\n".join(text))
    code, facts, error = run(capsys, folder, "--out", tmp_path / "out")
    assert code == 1
    assert facts["shapes"] == 5
    assert [failure["item"] for failure in facts["failed"]] == ["bone_1.ply", "bone_3.obj", "bone_2.ply"]
    assert "other faces" in error


def test_vertices_without_data(bones, folder, tmp_path, capsys):
    weights = np.ones((8, 600))
    for i in range(1, 4):
        weights[i, 100 * i : 100 * i + 80] = 0
    weights[:, 7] = 0  # no shape has data here
    np.savez(folder / "bone_1.npz", has_data=weights[1] > 0)
    for i in range(8):
        if i != 1:
            np.savetxt(folder / f"bone_{i}.weights.txt", weights[i])
    code, facts, _ = run(capsys, folder, "--out", tmp_path / "out", "--modes", 2)
    assert code == 0
    assert facts["missing"] == pytest.approx(240 / 4800)
    assert "1 vertices have data in fewer than two shapes" in facts["notices"][0]
    np.savetxt(folder / "bone_2.weights.txt", np.ones(5))
    code, facts, error = run(capsys, folder, "--out", tmp_path / "out")
    assert code == 1
    assert "600 numbers" in error


@pytest.mark.parametrize("separator", [";", "\t"])
def test_groups_of_a_spreadsheet(folder, tmp_path, capsys, separator):
    groups = tmp_path / "groups.csv"
    lines = ["shape,age", *(f"bone_{i},{'old' if i < 4 else 'young'}" for i in range(7)), "bone_7,"]
    groups.write_text("\n".join(lines).replace(",", separator))
    code, facts, error = run(capsys, folder, "--out", tmp_path / "out", "--groups", groups, "--permutations", 99)
    assert code == 0, error
    assert facts["groups"]["names"] == ["old", "young"]
    assert facts["groups"]["counts"] == [4, 3]


def test_unusable_input(bones, folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert "no such folder" in run(capsys, tmp_path / "none", "--out", out)[2]
    groups = tmp_path / "groups.csv"
    for text, message in (
        ("bone_0,a\nbone_1\n", "line 2"),
        ("bone_0,a\nbone_99,b\n", "bone_99"),
        ("bone_99,a\nbone_0,a\nbone_1,a\nbone_2,b\nbone_3,b\n", "line 1: there is no shape 'bone_99'"),
        ("bone_0,a\nbone_0.ply,b\n", "a group already"),
        ("bone_0,a\nbone_1,a\n", "1 groups"),
    ):
        groups.write_text(text)
        code, _, error = run(capsys, folder, "--out", out, "--groups", groups)
        assert code == 2
        assert message in error
    assert run(capsys, folder, "--out", folder)[0] == 2
    out.mkdir()
    (out / "mean.ply").write_text("mine")
    code, _, error = run(capsys, folder, "--out", out)
    assert code == 2
    assert "already exists" in error
    for i in range(2, 8):
        (folder / f"bone_{i}.{'obj' if i == 3 else 'ply'}").unlink()
    code, _, error = run(capsys, folder, "--out", tmp_path / "other")
    assert code == 2
    assert "at least 3" in error
