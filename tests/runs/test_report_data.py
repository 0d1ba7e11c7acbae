"""What a report gathers: errors of vertices, missing regions, and shapes that were not trained on."""

from types import SimpleNamespace

import numpy as np
from analytic import bumpy

from acnn.datasets.dataset import Dataset, Example, Sample
from acnn.evaluation import ReferenceDistances, evaluate_map
from acnn.evaluation.published import FAUST_EXACT, FAUST_REMESHED_ERROR, SHREC16_CUTS_ERROR
from acnn.evaluation.results import errors_of_vertices
from acnn.runs.evaluate import unseen_shapes
from acnn.surface import surface_of
from acnn.viewer.report import _missing, _published_for, _training_log


def test_errors_stand_at_their_vertices():
    mesh = bumpy(1)
    distances = ReferenceDistances(surface_of(mesh))
    labels = np.arange(len(mesh.vertices), dtype=np.int32)
    labels[5] = -1
    found = np.arange(len(labels), dtype=np.int32)
    found[7] = 0
    matched = SimpleNamespace(example=Example(mesh, labels))
    errors = errors_of_vertices(matched, evaluate_map(found, labels, distances))
    assert np.isnan(errors[5])
    assert np.flatnonzero(errors > 0).tolist() == [7]
    # a list of pairs, in which vertex 7 occurs twice and vertex 6 not at all
    pairs = np.array([[7, 7], [7, 0], [3, 3]], np.int32)
    matched = SimpleNamespace(example=Example(mesh, labels, pairs=pairs))
    listed = errors_of_vertices(matched, evaluate_map(found, pairs[:, 1], distances, rows=pairs[:, 0]))
    np.testing.assert_allclose(listed[[3, 7]], [0, errors[7] / 2])
    assert np.isnan(listed[6])


def test_a_whole_shape_misses_nothing_and_a_part_what_was_cut_off():
    mesh = bumpy(3)
    every = np.arange(len(mesh.vertices))
    assert _missing(every[::2], mesh) is None
    low = mesh.vertices[:, 2] < 0
    missing = _missing(np.where(low, -1, every), mesh)
    assert (missing <= low).all()
    assert missing.sum() > 0.95 * low.sum()


def test_shown_shapes_were_not_trained_on_and_half_of_them_are_copies():
    names = [f"human_{i}{suffix}" for i in range(8) for suffix in ("", "_remeshed")]
    dataset = Dataset("d", bumpy(1), tuple(Sample(name, lambda: None, "test", None, 0) for name in names))
    run = SimpleNamespace(record=SimpleNamespace(train=names[:4], validation=names[4:6]))
    chosen = unseen_shapes(dataset, [run], 5)
    assert len(set(chosen)) == 5
    assert not set(chosen) & set(names[:6])
    assert sum("_remeshed" in name for name in chosen) == 2


def test_published_figures_go_with_their_data():
    assert _published_for("faust") == (FAUST_EXACT, True)
    assert _published_for("faust_r") == (FAUST_REMESHED_ERROR, True)
    assert _published_for("shrec16_partial/cuts/cat") == (SHREC16_CUTS_ERROR, True)
    assert _published_for("my/cuts/cat") == (SHREC16_CUTS_ERROR, False)
    assert not _published_for("humans")[1]


def test_a_long_log_is_thinned_out_and_a_broken_one_left_out(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"seconds": {i}, "loss": {i % 2}}}\n' for i in range(2400)))
    log = _training_log(path)
    assert log.shape == (240, 2)
    np.testing.assert_allclose(log[:, 1], 0.5)
    path.write_text("not json\n")
    assert len(_training_log(path)) == 0
    assert len(_training_log(tmp_path / "none")) == 0
