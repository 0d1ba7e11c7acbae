"""`acnn match` leaves a page that agrees with its other files."""

import json

import numpy as np
from analytic import bumpy, permuted
from page_content import content, unpacked

from acnn.cli import main
from acnn.shapes import PointCloud, load, save
from acnn.surface import vertex_normals


def test_page_and_files_agree(tmp_path, capsys):
    mesh = bumpy(2)
    other, _ = permuted(mesh, 3)
    save(PointCloud(other.vertices, vertex_normals(other.vertices, other.faces)), tmp_path / "b.ply")
    save(mesh, tmp_path / "whole.obj")
    # a vertex that no face uses comes first, so that numbers in the file and in memory differ
    lines = (tmp_path / "whole.obj").read_text().splitlines()
    faces = [" ".join(["f", *(str(int(v) + 1) for v in line.split()[1:])]) for line in lines if line.startswith("f ")]
    corners = [line for line in lines if line.startswith("v ")]
    (tmp_path / "a.obj").write_text("\n".join(["v 0 0 0", *corners, *faces]) + "\n")
    arguments = [str(tmp_path / "a.obj"), str(tmp_path / "b.ply"), "--model", "none", "--out", str(tmp_path / "r")]
    assert main(["match", *arguments, "--no-cache", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["page"] == str(tmp_path / "r" / "match.html")
    found = content((tmp_path / "r" / "match.html").read_text())

    in_files = np.loadtxt(tmp_path / "r" / "a_to_b.txt", dtype=int)
    assert in_files[0] == -1
    matched, numbers = unpacked(found["matched"]), unpacked(found["a"]["numbers"])
    np.testing.assert_array_equal(in_files[numbers], matched)
    colors = unpacked(found["b"]["colors"]).reshape(-1, 3)
    np.testing.assert_array_equal(load(tmp_path / "r" / "b_colored.ply").colors[:, :3], colors)
    np.testing.assert_array_equal(load(tmp_path / "r" / "a_colored.ply").colors[:, :3], colors[matched])
    assert (found["a"]["cloud"], found["b"]["cloud"]) == (False, True)
    assert (found["a"]["file"], found["b"]["file"]) == ("a.obj", "b.ply")
    assert found["notices"] == facts["notices"] != []

    # the shapes are known again where something is carried along the map
    (tmp_path / "marks.txt").write_text("7\n")
    carried = ["--landmarks", str(tmp_path / "marks.txt"), "--out", str(tmp_path / "o.txt"), "--force"]
    save(PointCloud(other.vertices * [1, 2, 1]), tmp_path / "longer.ply")
    for name, odd in (("b.ply", False), ("longer.ply", True)):
        for form in ("r", "r/map.npz", "r/a_to_b.txt", "r/a_to_b.vts"):
            shapes = [str(tmp_path / form), "--from", str(tmp_path / name), "--to", str(tmp_path / "a.obj")]
            assert main(["transfer", *shapes, *carried]) == 0
            assert ("note: longer.ply, given as B" in capsys.readouterr().out) == odd
