"""Training without labels, and adapting a model: on small shapes, stopped and resumed, and blind to every label."""

import json

import numpy as np
import pytest
from analytic import bumpy, permuted, rotation

from acnn.cli import main
from acnn.runs import unlabelled as module
from acnn.runs.match import match
from acnn.shapes import Mesh, load, save

SETTINGS = ["angles=2", "scales=6,24", "architecture=FC16+IC16+Softmax", "shared_outputs=20", "steps=120", "rounds=2"]
SETTINGS += ["learning_rate=0.01", "shot_radii=40"]
WORDS = ["--quiet", "--json", *(word for change in SETTINGS for word in ("--set", change))]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """Five stretched and turned bumpy spheres, each with its vertices in another order, and where vertex i went."""
    folder = tmp_path_factory.mktemp("bumps")
    places = {}
    for seed in range(5):
        mesh, places[f"bump_{seed}"] = permuted(bumpy(2), seed)
        save(Mesh(mesh.vertices * [1, 1 + 0.03 * seed, 1] @ rotation(seed).T, mesh.faces), folder / f"bump_{seed}.ply")
    return folder, places


def train(shapes, run, *words):
    return main(["train", str(shapes), "--labels", "none", "--out", str(run), *WORDS, *words])


@pytest.fixture(scope="module")
def trained(shapes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        assert train(shapes[0], folder / "run") == 0
        yield folder


def test_a_network_learns_from_maps_that_agree(shapes, trained):
    facts = json.loads((trained / "run" / "run.json").read_text())
    assert facts["labels"] == "none"
    assert facts["reference"] in facts["train"]
    assert facts["step"] == 120
    assert [maps["maps_by"] for maps in facts["rounds"]] == ["descriptors", "network", "network"]
    assert facts["rounds"][-1]["consistent"] == 1
    assert facts["rounds"][-1]["cycle_error_x100"] < 5
    a, b = (load(shapes[0] / f"bump_{i}.ply") for i in (3, 4))
    found = match(a, b, model=trained / "run")
    truth = np.empty(len(a.vertices), int)
    truth[shapes[1]["bump_3"]] = shapes[1]["bump_4"]
    size = np.linalg.norm(np.ptp(b.vertices, axis=0))
    assert np.linalg.norm(b.vertices[found.a_to_b] - b.vertices[truth], axis=1).mean() < 0.02 * size


def test_no_label_is_read(shapes, trained, tmp_path, capsys):
    """Labels that contradict everything change nothing, not even the last bit."""
    other = tmp_path / "bumps"
    other.mkdir()
    for number, file in enumerate(sorted(shapes[0].glob("*.ply"))):
        (other / file.name).write_bytes(file.read_bytes())
        count = len(load(file).vertices)
        (other / f"{file.stem}.labels.txt").write_text("\n".join(map(str, (np.arange(count) * number) % count)))
        (other / f"{file.stem}.vts").write_text("no label at all")
    save(bumpy(1), other / "reference.ply")
    assert train(other, tmp_path / "run") == 0
    for name in ("reference.safetensors", "maps.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (trained / "run" / name).read_bytes()


def test_an_interrupted_training_goes_on_where_it_was(shapes, trained, tmp_path, monkeypatch, capsys):
    whole = (trained / "run" / "maps.safetensors").read_bytes()
    begun = tmp_path / "run"
    calls = []

    def stop_in_the_second_round(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    original = module._match_all
    monkeypatch.setattr(module, "_match_all", stop_in_the_second_round)
    assert train(shapes[0], begun) == 130
    assert train(shapes[0], begun) == 2
    assert "--resume" in capsys.readouterr().err
    assert train(shapes[0], begun, "--resume") == 0
    assert len(calls) == 4  # the maps of the first round were kept
    assert (begun / "maps.safetensors").read_bytes() == whole


def test_maps_are_made_again_where_the_training_goes_on_for_longer(shapes, trained, tmp_path, capsys):
    run = tmp_path / "run"
    assert train(shapes[0], run, "--set", "steps=4") == 0
    first, _, last = json.loads(capsys.readouterr().out)["rounds"]
    assert last["consistent"] < 1
    assert train(shapes[0], run, "--resume") == 0  # 120 steps
    again, _, last = json.loads(capsys.readouterr().out)["rounds"]
    assert again == first
    assert last["consistent"] == 1
    assert last["cycle_error_x100"] < 5


def test_adapting_goes_on_from_a_model_and_leaves_it_as_it_is(shapes, trained, tmp_path, capsys):
    before = (trained / "run" / "model.safetensors").read_bytes()
    run = tmp_path / "adapted"
    words = ["adapt", str(trained / "run"), str(shapes[0]), "--train", "0-3", "--out", str(run), "--set", "steps=4"]
    assert main([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["adapted"] == str(trained / "run")
    assert facts["train"] == ["bump_0", "bump_1", "bump_2", "bump_3"]
    assert [maps["maps_by"] for maps in facts["rounds"]] == ["network"] * 3
    assert facts["rounds"][-1]["consistent"] == 1
    assert facts["accuracy"] > 0.2  # a new network knows nothing after four steps
    assert (run / "reference.safetensors").read_bytes() == (trained / "run" / "reference.safetensors").read_bytes()
    assert (trained / "run" / "model.safetensors").read_bytes() == before


def test_what_contradicts_is_refused(shapes, tmp_path, capsys):
    run = tmp_path / "run"
    for words, told in [
        (["--labels", "some"], "use 'none'"),
        (["--reference", "bump_1"], "--labels none"),
        (["--labels", "none", "--val", "1"], "neither --val"),
        (["--labels", "none", "--method", "osd"], "networks that label"),
        (["--labels", "none", "--set", "remeshed=1"], "augmentation"),
        (["--labels", "none", "--train", "0-1"], "at least three"),
        (["--labels", "none", "--reference", "nowhere.ply"], "nowhere.ply"),
    ]:
        assert main(["train", str(shapes[0]), "--out", str(run), "--quiet", *words]) == 2
        assert told in capsys.readouterr().err
        assert not run.exists()
