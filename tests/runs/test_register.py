"""A template registered to shapes: files, failures that stop nothing, and results that are kept."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from analytic import bumpy, permuted, rotation

from acnn import InputError, register
from acnn.cli import main
from acnn.runs import register as module
from acnn.runs.register import RegisteredShape, register_files
from acnn.shapes import Mesh, PointCloud, describe, load, save
from acnn.shapes.mesh import BarycentricPoints


@pytest.fixture
def folder(tmp_path):
    """A template, two shapes that are it in another place, vertex order and size, and a broken file."""
    template = bumpy(3)
    save(template, tmp_path / "template.ply")
    shapes = tmp_path / "shapes"
    shapes.mkdir()
    for seed in (1, 2):
        other, _ = permuted(template, seed)
        save(Mesh(other.vertices @ (seed * rotation(seed)).T + seed, other.faces), shapes / f"shape{seed}.ply")
    (shapes / "broken.ply").write_text("ply\nnothing")
    (tmp_path / "marks.txt").write_text("top 7\n12\n")
    return tmp_path


def run(folder, out=None, **options):
    return register_files(
        folder / "template.ply",
        [folder / "shapes"],
        out or folder / "out",
        landmarks=folder / "marks.txt",
        method="descriptors",
        **options,
    )


def test_shapes_are_written_in_the_topology_of_the_template_and_kept(folder, monkeypatch):
    template = load(folder / "template.ply")
    facts, failures = run(folder)
    assert [shape["name"] for shape in facts["shapes"]] == ["shape1", "shape2"]
    assert len(failures) == 1
    assert "broken.ply" in failures[0][0]
    for seed, shape in zip((1, 2), facts["shapes"], strict=True):
        moved = load(folder / "out" / f"{shape['name']}.ply")
        np.testing.assert_array_equal(moved.faces, template.faces)
        fields = np.load(folder / "out" / f"{shape['name']}.npz")
        assert fields["residual"].shape == fields["confidence"].shape == (len(template.vertices),)
        assert fields["has_data"].mean() > 0.95
        assert fields["residual"].mean() < 0.02 * seed
        assert shape["scale"] == pytest.approx(seed, rel=0.1)
        np.testing.assert_allclose(shape["landmarks"]["top"], moved.vertices[7], atol=1e-5)
        assert (shape["inverted_faces"], shape["collapsed_faces"]) == (0, 0)
        least = 0.005 * describe(moved)["area"] ** 0.5  # a close fit is pale
        assert shape["largest_shown"] == pytest.approx(max(np.quantile(fields["residual"], 0.98), least), rel=1e-3)
    # in a folder that was renamed, results are kept, too
    (folder / "out").rename(folder / "moved")
    moved, _ = run(folder, out=folder / "moved")
    assert moved["kept"] == 2
    assert [shape["out"] for shape in moved["shapes"]] == [str(folder / "moved" / f"shape{i}.ply") for i in (1, 2)]
    (folder / "moved").rename(folder / "out")
    # again: only what is missing is done
    (folder / "out" / "shape2.json").unlink()
    done = []
    monkeypatch.setattr(module, "register_task", lambda task: done.append(task.name) or "stopped")
    again, failures = run(folder)
    assert done == ["broken", "shape2"]
    assert again["kept"] == 1
    assert again["shapes"] == facts["shapes"][:1]
    # a file with other entries is no result
    path = folder / "out" / "shape1.json"
    path.write_text(json.dumps({"key": json.loads(path.read_text())["key"]}))
    assert run(folder)[0]["kept"] == 0


def test_shapes_are_registered_again_by_a_network_that_was_trained_further(folder, monkeypatch):
    tasks = []
    monkeypatch.setattr(module, "register_task", lambda task: tasks.append(task) or "stopped")
    (folder / "run").mkdir()
    for text in (b"before", b"before", b"trained further"):
        for name in ("model.safetensors", "reference.safetensors"):
            (folder / "run" / name).write_bytes(text)
        one = [folder / "shapes" / "shape1.ply"]
        register_files(folder / "template.ply", one, folder / "out", model=folder / "run")
    keys = [task.key for task in tasks]  # by which results are known again
    assert keys[0] == keys[1] != keys[2]


def test_the_command_reports_failures_and_writes_a_page(folder, monkeypatch, capsys):
    result = RegisteredShape(
        **{"name": "shape1", "shape": "shape1.ply", "key": "", "out": str(folder / "out" / "shape1.ply")},
        **{"verdict": "good", "route": "descriptors", "model": None, "mean_confidence": 0.9, "landmarks": {}},
        **{"scale": 1.0, "mean_residual": 0.01, "with_data": 1.0, "repaired_vertices": 0},
        **{"collapsed_faces": 0, "inverted_faces": 0, "largest_stretch": 1.0},
    )
    monkeypatch.setattr(module, "register_task", lambda task: result if task.name == "shape1" else "<b> is wrong")
    words = ["register", str(folder / "template.ply"), str(folder / "shapes"), "--out", str(folder / "out"), "--json"]
    assert main(words) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [failure["why"] for failure in printed["failed"]] == ["<b> is wrong"] * 2
    assert printed["shapes"] == [result.as_dict()]
    assert printed["page"] == str(folder / "out" / "register.html")
    page = (folder / "out" / "register.html").read_text()
    assert "1 shape registered, 2 failed" in page
    assert "&lt;b&gt; is wrong" in page
    assert main([*words, "--force"]) == 1


def test_what_cannot_be_done_is_refused_before_the_work(folder):
    save(PointCloud(bumpy(1).vertices), folder / "cloud.ply")
    with pytest.raises(InputError, match="must be a mesh"):
        register_files(folder / "cloud.ply", [folder / "shapes"], folder / "out")
    with pytest.raises(InputError, match="must be a mesh"):
        register(load(folder / "cloud.ply"), load(folder / "template.ply"))
    twice = [folder / "shapes" / "shape1.ply", folder / "shapes"]
    with pytest.raises(InputError, match="would both be written"):
        register_files(folder / "template.ply", twice, folder / "out")
    with pytest.raises(InputError, match="never overwritten"):
        register_files(folder / "template.ply", [folder / "shapes"], folder / "shapes")
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="no shapes"):
        register_files(folder / "template.ply", [folder / "empty"], folder / "out")


def test_an_uncertain_cloud_whose_matches_show_another_size_is_matched_again_with_that_size(monkeypatch):
    template = bumpy(3)
    shape = PointCloud(2.0 * template.vertices)
    exact = BarycentricPoints.at_vertices(template.faces, np.arange(len(template.vertices)))
    asked = []

    def outcome(unit, confidence, verdict="good"):
        return SimpleNamespace(
            **{"a": SimpleNamespace(unit=unit), "b": SimpleNamespace(unit=0.01), "points": exact, "verdict": verdict},
            **{"confidence": np.full(len(template.vertices), confidence), "a_to_b": np.arange(len(template.vertices))},
        )

    def registered(*outcomes):
        left = list(outcomes)
        asked.clear()

        def pretended(a, b, *, unit=None, **options):
            asked.append(unit)
            return left.pop(0)

        monkeypatch.setattr(module, "match", pretended)
        return register(template, shape).match

    monkeypatch.setattr(module, "fit", lambda *arguments, **options: None)
    unsure, sure = outcome(0.015, 0.6), outcome(0.02, 0.95)
    assert registered(unsure, sure) is sure
    assert asked[0] is None
    assert asked[1] == pytest.approx(0.02, rel=1e-6)
    assert registered(unsure, outcome(0.02, 0.62)) is unsure  # hardly more confident
    assert registered(unsure, outcome(0.02, 0.95, "doubtful")) is unsure
    for first in (outcome(0.015, 0.95), outcome(0.019, 0.6), outcome(0.009, 0.6)):
        assert registered(first) is first  # confident, of that size, or of an impossible one
    shape = template
    assert registered(unsure) is unsure  # nothing is missing
