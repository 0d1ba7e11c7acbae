import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest
import torch
from analytic import bumpy

from acnn.errors import InputError, TrainingError
from acnn.files import read_arrays
from acnn.network import Patches, load_model
from acnn.patches import PatchSettings, build_patches
from acnn.shapes import Mesh
from acnn.shapes.mesh import BarycentricPoints
from acnn.training import RunConfig, TrainSettings, loop
from acnn.training.loop import learning_rate
from acnn.training.tasks import LabelTask, soft_cross_entropy

PATCHES = PatchSettings(angles=2, scales=(6.0, 24.0))
SETTINGS = TrainSettings(
    architecture="FC8+IC8+BN+DO(0.2)+Softmax", epochs=3, learning_rate=5e-3, loss_vertices=100, schedule="one-cycle"
)


@dataclass(frozen=True)
class Shape:
    name: str
    operator: object
    features: np.ndarray
    labels: np.ndarray
    truth: BarycentricPoints | None = None
    weights: np.ndarray | None = None

    def patches(self):
        return self.operator

    def descriptors(self):
        return self.features


def shapes(count=4):
    mesh = bumpy(2)
    found = []
    for i in range(count):
        bent = Mesh(mesh.vertices * [1, 1 + 0.1 * i, 1], mesh.faces)
        features = np.random.default_rng(i).normal(bent.vertices, 0.05).astype(np.float32)
        found.append(Shape(f"s{i}", build_patches(bent, PATCHES), features, np.arange(162, dtype=np.int32)))
    return found


@pytest.fixture(scope="module")
def some():
    return shapes()


def train(shapes, classes, settings, folder, **options):
    """Train a network to label vertices with those of a reference."""
    return loop.train(shapes, LabelTask(settings, classes, options.get("reference")), settings, folder, **options)


def config(**changes):
    return RunConfig(patches=PATCHES, train=TrainSettings(**{**SETTINGS.__dict__, **changes}))


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


class Killed(Exception):
    pass


def test_training_learns(some, tmp_path):
    wide = config(architecture="FC32+IC64+BN+Softmax", epochs=80, loss_vertices=0, learning_rate=2e-2)
    model = train(some[:3], 162, wide, tmp_path)
    assert LabelTask(wide, 162).score(model, some[:3]) > 0.3


def test_the_best_by_validation_is_kept(some, tmp_path, monkeypatch):
    scores, validated, steps = iter([0.2, 0.6, 0.4]), [], []

    def score(task, model, shapes):
        validated.append(weights(model))
        assert shapes == some[3:]
        return next(scores)

    monkeypatch.setattr("acnn.training.tasks.LabelTask.score", score)
    train(some[:3], 162, config(), tmp_path, validation=some[3:], report=steps.append)
    kept, about = load_model(tmp_path / "model.safetensors")
    assert same(weights(kept), validated[1])
    assert not same(validated[1], validated[2])
    assert [step["validation_exact"] for step in steps if "validation_exact" in step] == [0.2, 0.6, 0.4]
    assert steps[-1]["best_exact"] == 0.6
    assert about["progress"]["best_step"] == steps[-1]["best_step"] == 6
    files = {p.name for p in tmp_path.iterdir()} - {"tensorboard"}
    assert files == {"model.safetensors", "checkpoint.safetensors", "log.jsonl"}


def test_killed_at_five_steps_and_resumed_each_time_the_weights_are_the_same(some, tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = weights(train(some, 162, config(), tmp_path / "whole"))
    for last in (1, 3, 6, 7, 11):

        def stop(step, last=last):
            if step["step"] >= last:
                raise Killed

        with pytest.raises(Killed):
            train(some, 162, config(), tmp_path / "parts", resume=True, report=stop)
    parts = weights(train(some, 162, config(), tmp_path / "parts", resume=True))
    assert same(whole, parts)
    lines = [(tmp_path / run / "log.jsonl").read_text().count("\n") for run in ("whole", "parts")]
    assert lines == [12, 12]


def test_another_seed_gives_other_weights(some, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = weights(train(some, 162, config(epochs=1), tmp_path / "a"))
    assert not same(first, weights(train(some, 162, config(epochs=1, seed=1), tmp_path / "b")))


def test_a_checkpoint_is_written_from_time_to_time_between_validations(some, tmp_path, monkeypatch):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    seldom = config(validate_every=1000)
    whole = weights(train(some, 162, seldom, tmp_path / "whole"))
    monkeypatch.setattr("acnn.training.loop.CHECKPOINT_SECONDS", 0.0)

    def stop(step):
        if step["step"] == 7:
            raise Killed

    with pytest.raises(Killed):
        train(some, 162, seldom, tmp_path / "parts", report=stop)
    steps = []
    parts = weights(train(some, 162, seldom, tmp_path / "parts", resume=True, report=steps.append))
    assert steps[0]["step"] == 8
    assert same(whole, parts)


def test_shapes_must_have_as_many_descriptors_as_each_other(some, tmp_path):
    thin = Shape("thin", some[0].operator, some[0].features[:, :2], some[0].labels)
    with pytest.raises(InputError, match="thin has 2 descriptors a vertex, s0 has 3"):
        train([*some, thin], 162, config(), tmp_path)


def test_a_run_by_minutes_ends_and_resumes(some, tmp_path):
    train(some, 162, config(minutes=0.01), tmp_path)
    train(some, 162, config(minutes=0.01), tmp_path, resume=True)
    assert (tmp_path / "model.safetensors").exists()


def test_a_run_goes_on_for_longer_as_if_it_had_been_meant_to(some, tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = weights(train(some, 162, config(epochs=3, schedule="constant"), tmp_path / "whole"))
    train(some, 162, config(epochs=1, schedule="constant"), tmp_path / "parts")
    parts = weights(train(some, 162, config(epochs=3, schedule="constant"), tmp_path / "parts", resume=True))
    assert same(whole, parts)
    shorter = weights(train(some, 162, config(epochs=2, schedule="constant"), tmp_path / "parts", resume=True))
    assert same(whole, shorter)


def test_a_checkpoint_of_other_settings_is_refused(some, tmp_path):
    train(some, 162, config(epochs=1), tmp_path)
    with pytest.raises(InputError, match=r"learning_rate was .* and is 0\.0001"):
        train(some, 162, config(epochs=1, learning_rate=1e-4), tmp_path, resume=True)
    data = bytearray((tmp_path / "checkpoint.safetensors").read_bytes())
    data[-100] ^= 1
    (tmp_path / "checkpoint.safetensors").write_bytes(data)
    with pytest.raises(InputError):
        train(some, 162, config(epochs=1), tmp_path, resume=True)


def test_vertices_without_a_label_do_not_count(some, tmp_path):
    blind = [Shape(s.name, s.operator, s.features, np.where(np.arange(162) < 5, s.labels, -1)) for s in some]
    model = train(blind, 162, config(epochs=40), tmp_path)
    logits = model.classifier.bias.detach()
    assert logits[:5].mean() > logits[5:].mean()


def test_schedules():
    cycle = TrainSettings(schedule="one-cycle", learning_rate=1.0)
    rates = [learning_rate(cycle, share) for share in (0.0, 0.15, 0.3, 0.65, 1.0)]
    assert rates[0] < rates[1] < rates[2] == pytest.approx(1.0, abs=1e-3)
    assert rates[2] > rates[3] > rates[4]
    assert rates[4] < 1e-3
    assert learning_rate(TrainSettings(learning_rate=0.5), 0.7) == 0.5


def test_two_processes_equal_one_that_takes_the_same_two_shapes_a_step(some, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    quiet = config(architecture="FC8+IC8+Softmax", shapes_per_step=2)
    losses = []
    train(some, 162, quiet, tmp_path / "one", report=lambda step: losses.append(step["loss"]))
    (tmp_path / "timed").mkdir()
    program = (
        "from pathlib import Path\n"
        "import os, time\n"
        "from dataclasses import replace\n"
        "from test_loop import InputError, config, shapes, train\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "quiet = config(architecture='FC8+IC8+Softmax', shapes_per_step=2)\n"
        "some = shapes()\n"
        "train(some, 162, quiet, folder / 'two')\n"
        # clocks that differ end together
        "timed = replace(quiet, train=replace(quiet.train, minutes=0.01))\n"
        "def wait(step):\n"
        "    time.sleep(0.02 * int(os.environ['RANK']))\n"
        "train(some, 162, timed, folder / 'timed', report=wait)\n"
        "try:\n"
        "    train(some, 162, replace(quiet, train=replace(quiet.train, shapes_per_step=1)), folder)\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    done = in_two_processes(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "timed" / "model.safetensors").is_file()
    assert "--set shapes_per_step=2" in done.stdout
    found = [json.loads(line)["loss"] for line in (tmp_path / "two" / "log.jsonl").read_text().splitlines()]
    assert len(found) == len(losses)
    assert np.abs(np.array(found) - losses).max() < 1e-4


def in_two_processes(program, folder):
    """Run a program twice at once, as `torchrun` does."""
    tests = os.path.dirname(os.path.abspath(__file__))
    script = folder / "worker.py"
    script.write_text(program)
    paths = os.pathsep.join([tests, os.path.dirname(tests), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    return subprocess.run(command, check=False, env=environment, timeout=240, capture_output=True, text=True)


def test_tensorboard_gets_the_curve_where_it_is_installed(some, tmp_path):
    pytest.importorskip("tensorboard")
    train(some, 162, config(epochs=1), tmp_path)
    assert list((tmp_path / "tensorboard").glob("events*"))


def test_training_leaves_the_process_as_it_was(some, tmp_path):
    def ours():
        return {thread for thread in threading.enumerate() if not thread.name.startswith("acnn-")}  # but for the pool

    before = ours()
    inside = []
    train(some, 162, config(epochs=1), tmp_path, report=lambda _: inside.append(torch.get_deterministic_debug_mode()))
    assert ours() == before
    assert set(inside) == {1}
    assert torch.get_deterministic_debug_mode() == 0


def test_soft_labels_share_the_target_between_the_corners_of_a_face():
    faces = np.array([[0, 1, 2], [2, 3, 4]])
    truth = BarycentricPoints(np.array([0, 1, 1], np.int32), np.array([[1, 0, 0], [0.5, 0.25, 0.25], [0, 0, 1.0]]))
    logits = torch.randn(2, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = soft_cross_entropy(logits, truth, faces, np.array([0, 1])).mean()
    targets = torch.tensor([[1, 0, 0, 0, 0], [0, 0, 0.5, 0.25, 0.25]], dtype=torch.float64)
    torch.testing.assert_close(found, torch.nn.functional.cross_entropy(logits, targets))
    smoothed = soft_cross_entropy(logits, truth, faces, np.array([0, 1]), label_smoothing=0.3).mean()
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.3).mean()
    torch.testing.assert_close(smoothed, expected)


def test_at_the_corners_soft_labels_train_as_plain_ones(some, tmp_path):
    faces = bumpy(2).faces
    face = np.array([np.flatnonzero((faces == v).any(axis=1))[0] for v in range(162)], np.int32)
    truth = BarycentricPoints(face, (faces[face] == np.arange(162)[:, None]).astype(float))
    soft = [Shape(s.name, s.operator, s.features, s.labels, truth) for s in some]
    for name in ("plain", "soft"):
        (tmp_path / name).mkdir()
    plain = weights(train(some, 162, config(), tmp_path / "plain"))
    found = weights(train(soft, 162, config(soft_labels=True), tmp_path / "soft", reference=bumpy(2)))
    for name, tensor in plain.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=1e-4)


def test_shared_outputs_are_resumed_and_saved_as_a_plain_network(some, tmp_path):
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    shared = config(shared_outputs=20)
    whole = train(some, 162, shared, tmp_path / "whole", reference=bumpy(2))

    def stop(step):
        if step["step"] == 8:
            raise Killed

    with pytest.raises(Killed):
        train(some, 162, shared, tmp_path / "parts", reference=bumpy(2), report=stop)
    parts = train(some, 162, shared, tmp_path / "parts", reference=bumpy(2), resume=True)
    assert same(weights(whole), weights(parts))
    plain, _ = load_model(tmp_path / "whole" / "model.safetensors")
    assert plain.classifier.coefficients is None
    whole.eval()
    inputs = torch.from_numpy(some[0].features), Patches.of(some[0].operator)
    torch.testing.assert_close(plain(*inputs), whole(*inputs))
    with pytest.raises(InputError, match="reference"):
        train(some, 162, shared, tmp_path / "none")


def test_a_number_of_steps_is_kept_however_long_they_take(some, tmp_path, monkeypatch):
    reports = {1.0: [], 1e6: []}
    for pace, steps in reports.items():
        clock = count(step=pace)
        monkeypatch.setattr("time.perf_counter", lambda clock=clock: next(clock))
        train(some, 162, config(steps=6), tmp_path / str(pace), report=steps.append)
    slow, fast = reports.values()
    assert [step["step"] for step in slow] == [1, 2, 3, 4, 5, 6]  # of four shapes: an epoch and a half
    assert {step["steps"] for step in slow} == {6}
    for name in ("step", "loss", "accuracy", "learning_rate"):
        assert [step[name] for step in slow] == [step[name] for step in fast]
    assert [step["learning_rate"] for step in slow] == [learning_rate(SETTINGS, k / 6) for k in range(6)]


def test_core_minutes_end_a_training_after_that_much_processor_time(some, tmp_path):
    steps = []
    train(some, 162, config(core_minutes=0.02), tmp_path, report=steps.append)
    assert steps[-1]["core_seconds"] >= 1.2 > steps[-2]["core_seconds"]
    with pytest.raises(InputError, match="not more than one"):
        config(minutes=1, core_minutes=1)


def test_weight_decay_leaves_biases_and_normalisation_alone(some, tmp_path):
    """After one step, what does not decay is as it would be without any decay."""
    found = {}
    for decay in (0.0, 20.0):
        (tmp_path / str(decay)).mkdir()
        once = config(weight_decay=decay, epochs=1, schedule="constant")
        found[decay] = dict(train(some[:1], 162, once, tmp_path / str(decay)).named_parameters())
    for name, parameter in found[0.0].items():
        kept = bool(torch.equal(parameter, found[20.0][name]))
        assert kept == (parameter.ndim == 1), name
    assert {parameter.ndim for parameter in found[0.0].values()} >= {1, 2}


def test_a_checkpoint_numbers_the_optimisers_state_as_the_models_parameters(some, tmp_path):
    """As those of earlier versions did, which had no parameter groups, so that they can be gone on with."""
    model = train(some, 162, config(weight_decay=1e-2, epochs=1), tmp_path)
    arrays, _ = read_arrays(tmp_path / "checkpoint.safetensors")
    for index, parameter in enumerate(model.parameters()):
        assert arrays[f"optimiser.{index}.exp_avg"].shape == parameter.shape


@dataclass(frozen=True)
class Contradictory(Shape):
    """A shape whose labels are others each time."""

    random: np.random.Generator | None = None

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        return super().__getattribute__("random").permutation(value) if name == "labels" else value


def contradictory(some):
    return [Contradictory(s.name, s.operator, s.features, s.labels, random=np.random.default_rng(0)) for s in some]


def test_a_training_that_is_worse_than_chance_and_no_longer_improves_is_stopped(some, tmp_path):
    steps = []
    with pytest.raises(TrainingError, match=r"worse than guessing at random \(5\.09\)"):
        train(contradictory(some), 162, config(epochs=1000, learning_rate=1e-2), tmp_path, report=steps.append)
    assert 200 <= len(steps) < 1000


def test_a_short_training_that_ends_worse_than_chance_says_so(some, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    steps = []
    train(contradictory(some), 162, config(epochs=10), tmp_path / "a", report=steps.append)
    assert "worse than guessing" in steps[-1]["notice"]
    assert not any("notice" in step for step in steps[:-1])
    train(some, 162, config(epochs=40), tmp_path / "b", report=steps.append)
    assert "notice" not in steps[-1]


def test_a_training_that_diverges_is_no_fault_of_the_input_and_keeps_the_last_good_checkpoint(some, tmp_path):
    train(some, 162, config(), tmp_path)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    bad = [Shape(s.name, s.operator, np.full_like(s.features, np.nan), s.labels) for s in some]
    with pytest.raises(TrainingError, match=r"loss is nan at step 13.*lower rate.*checkpoint.*stays in"):
        train(bad, 162, config(epochs=6), tmp_path, resume=True)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


def test_weights_that_are_not_finite_never_replace_a_checkpoint(some, tmp_path, monkeypatch):
    """The loss of a step is that before its change of the weights."""
    train(some, 162, config(), tmp_path)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    step = torch.optim.AdamW.step

    def last_step_diverges(self, *arguments):
        step(self, *arguments)
        if next(iter(self.state.values()))["step"] == 16:
            with torch.no_grad():
                self.param_groups[0]["params"][0][0] = np.nan

    monkeypatch.setattr(torch.optim.AdamW, "step", last_step_diverges)
    with pytest.raises(TrainingError, match="not finite at step 16"):
        train(some, 162, config(epochs=4), tmp_path, resume=True)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
