"""`acnn transfer` from the outside."""

import json

import numpy as np
from analytic import sphere

from acnn.cli import main
from acnn.runs.transfer import ShapeTransferReport
from acnn.shapes import save


def test_it_writes_what_was_asked_for_and_says_so(tmp_path, capsys):
    mesh = sphere(1)
    save(mesh, tmp_path / "a.ply")
    np.savetxt(tmp_path / "map.txt", np.arange(len(mesh.vertices)), fmt="%d")
    np.savetxt(tmp_path / "labels.txt", np.arange(len(mesh.vertices)) % 5, fmt="%d")
    shapes = [str(tmp_path / "map.txt"), "--from", str(tmp_path / "a.ply"), "--to", str(tmp_path / "a.ply")]
    asked = ["transfer", *shapes, "--out", str(tmp_path / "o.txt"), "--labels", str(tmp_path / "labels.txt"), "--json"]
    assert main(asked) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == len(mesh.vertices)
    assert (tmp_path / "o.txt").read_text() == (tmp_path / "labels.txt").read_text()
    assert main(["transfer", *shapes, "--out", str(tmp_path / "o.ply"), "--shape"]) == 0
    said = capsys.readouterr().out
    assert "42 vertices" in said
    assert "no face is collapsed or inverted" in said


def test_a_map_that_folds_the_surface_gives_a_shape_without_damaged_faces(tmp_path, capsys):
    mesh = sphere(2)
    save(mesh, tmp_path / "a.ply")
    # all of the right half is matched to the left one: half of the triangles have no room
    folded = np.where(mesh.vertices[:, 0] > 0, mirrored(mesh), np.arange(len(mesh.vertices)))
    np.savetxt(tmp_path / "map.txt", folded, fmt="%d")
    shapes = [str(tmp_path / "map.txt"), "--from", str(tmp_path / "a.ply"), "--to", str(tmp_path / "a.ply")]
    assert main(["transfer", *shapes, "--out", str(tmp_path / "o.ply"), "--shape", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["collapsed_faces"], facts["inverted_faces"]) == (0, 0)
    assert (tmp_path / "o.ply").exists()


def test_a_shape_with_damaged_faces_exits_with_1(monkeypatch, capsys):
    fit = {"scale": 1.0, "mean_residual": None, "with_data": 0.0, "repaired_vertices": 0}
    fit |= {"collapsed_faces": 0, "inverted_faces": 2, "largest_stretch": 3.0}
    report = ShapeTransferReport(what="shape", out="o.ply", vertices=42, unmatched=0, notes=[], **fit)
    monkeypatch.setattr("acnn.runs.transfer.transfer_files", lambda *_, **__: report)
    asked = ["transfer", "map.txt", "--from", "b.ply", "--to", "a.ply", "--out", "o.ply", "--shape"]
    assert main([*asked, "--json"]) == 1
    said = capsys.readouterr()
    printed = json.loads(said.out)
    assert printed["failed"][0]["item"] == "o.ply"
    assert {name: printed[name] for name in fit} == fit
    assert "2 faces are inverted" in said.err
    assert main(asked) == 1
    assert "largest edge stretch" in capsys.readouterr().out


def mirrored(mesh):
    """For each vertex the one nearest to its mirror image in x."""
    flipped = mesh.vertices * [-1, 1, 1]
    return np.linalg.norm(flipped[:, None] - mesh.vertices, axis=2).argmin(axis=1)


def test_landmarks_are_counted_and_the_folder_is_made(tmp_path, capsys):
    mesh = sphere(1)
    save(mesh, tmp_path / "a.ply")
    np.savetxt(tmp_path / "map.txt", np.arange(len(mesh.vertices)), fmt="%d")
    (tmp_path / "marks.txt").write_text("nose 3\n7\nhand 9\n")
    shapes = [str(tmp_path / "map.txt"), "--from", str(tmp_path / "a.ply"), "--to", str(tmp_path / "a.ply")]
    out = tmp_path / "new" / "deep" / "o.txt"
    assert main(["transfer", *shapes, "--out", str(out), "--landmarks", str(tmp_path / "marks.txt")]) == 0
    assert "o.txt: 3 landmarks\n" in capsys.readouterr().out
    assert out.read_text() == "nose 3\n7\nhand 9\n"
    assert main(["transfer", *shapes, "--out", str(tmp_path / "other" / "o.obj"), "--shape"]) == 0
    assert (tmp_path / "other" / "o.obj").is_file()


def test_what_a_format_cannot_hold_is_refused_before_anything_is_written(tmp_path, capsys):
    mesh = sphere(1)
    save(mesh, tmp_path / "a.ply")
    np.savetxt(tmp_path / "map.txt", np.arange(len(mesh.vertices)), fmt="%d")
    shapes = [str(tmp_path / "map.txt"), "--from", str(tmp_path / "a.ply"), "--to", str(tmp_path / "a.ply")]
    for what, name in (("texture", "o.stl"), ("texture", "o.off"), ("colors", "o.stl"), ("shape", "o.npy")):
        assert main(["transfer", *shapes, "--out", str(tmp_path / "new" / name), f"--{what}"]) == 2
        assert f"error: {name}: " in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_exactly_one_thing_is_carried(tmp_path, capsys):
    shapes = ["map.txt", "--from", "b.ply", "--to", "a.ply", "--out", str(tmp_path / "o.ply")]
    assert main(["transfer", *shapes]) == 2
    assert main(["transfer", *shapes, "--texture", "--colors"]) == 2
    assert "--texture and --colors are given" in capsys.readouterr().err
    assert main(["transfer", *shapes, "--texture"]) == 2
    assert "b.ply" in capsys.readouterr().err


def test_a_skin_and_a_map_are_written(tmp_path, capsys):
    import scipy.sparse as sp

    from acnn.shapes import Skin
    from acnn.shapes.formats.gltf import write_glb

    mesh = sphere(1)
    save(mesh, tmp_path / "a.ply")
    skin = Skin(("root",), np.array([-1], np.int32), np.eye(4)[None], sp.csr_array(np.ones((len(mesh.vertices), 1))))
    (tmp_path / "b.glb").write_bytes(write_glb(mesh, skin))
    np.savetxt(tmp_path / "one.map", np.arange(len(mesh.vertices)) + 1, fmt="%d")
    shapes = [str(tmp_path / "one.map"), "--from", str(tmp_path / "b.glb"), "--to", str(tmp_path / "a.ply")]
    assert main(["info", str(tmp_path / "b.glb")]) == 0
    assert "1 skin: not part of the shape, but 'acnn transfer --skin' transfers it" in capsys.readouterr().out
    assert main(["transfer", *shapes, "--out", str(tmp_path / "o.glb"), "--skin"]) == 0
    assert "skin for 42 vertices\n1 joints" in capsys.readouterr().out
    assert main(["transfer", *shapes, "--out", str(tmp_path / "o.txt"), "--map", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 42
    assert (tmp_path / "o.txt").read_text().split() == [str(i) for i in range(42)]
    assert main(["transfer", *shapes, "--out", str(tmp_path / "o.ply"), "--skin"]) == 2
    assert "PLY cannot store skins" in capsys.readouterr().err
