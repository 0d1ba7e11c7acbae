"""`acnn transfer` from the outside."""

import json

import numpy as np
from analytic import sphere

from acnn.cli import main
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
    assert "42 vertices" in capsys.readouterr().out


def test_exactly_one_thing_is_carried(tmp_path, capsys):
    shapes = ["map.txt", "--from", "b.ply", "--to", "a.ply", "--out", str(tmp_path / "o.ply")]
    assert main(["transfer", *shapes]) == 2
    assert main(["transfer", *shapes, "--texture", "--colors"]) == 2
    assert "--texture and --colors is given" in capsys.readouterr().err
    assert main(["transfer", *shapes, "--texture"]) == 2
    assert "b.ply" in capsys.readouterr().err
