"""Curves as files, and the published figures beside them."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from acnn.errors import InputError
from acnn.evaluation.curves import report_curves, write_curves_csv, write_curves_json, write_curves_png
from acnn.evaluation.princeton import THRESHOLDS
from acnn.evaluation.published import FAUST_EXACT, PUBLISHED

CURVES = {"network": np.linspace(0.5, 0.9, 100), "network symmetric": np.linspace(0.6, 1.0, 100)}


def test_csv_holds_thresholds_and_curves(tmp_path):
    path = tmp_path / "curves.csv"
    write_curves_csv(path, CURVES | {'a, "b"': np.ones(100)})
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["threshold", "network", "network symmetric", 'a, "b"']
    table = np.array(rows[1:], dtype=float)
    np.testing.assert_allclose(table[:, 0], THRESHOLDS, rtol=1e-5)
    np.testing.assert_allclose(table[:, 2], CURVES["network symmetric"], rtol=1e-5)
    assert list(tmp_path.iterdir()) == [path]


def test_json_holds_curves_normalisation_and_published_figures(tmp_path):
    path = tmp_path / "curves.json"
    write_curves_json(path, CURVES, "sqrt_area", published=FAUST_EXACT)
    content = json.loads(path.read_text())
    assert content["normalisation"] == "sqrt_area"
    np.testing.assert_allclose(content["curves"]["network"], CURVES["network"])
    assert {"method": "MoNet", "value": 88.2, "source": "Monti et al., CVPR 2017"} in content["published"]["entries"]


def test_png_is_a_picture_that_shows_the_curves(tmp_path):
    write_curves_png(tmp_path / "a.png", CURVES, "sqrt_area", published=FAUST_EXACT, title="test")
    write_curves_png(tmp_path / "b.png", CURVES, "sqrt_area", published=FAUST_EXACT, title="test")
    other = {"network": np.zeros(100), "network symmetric": CURVES["network symmetric"]}
    write_curves_png(tmp_path / "c.png", other, "sqrt_area", published=FAUST_EXACT, title="test")
    with Image.open(tmp_path / "a.png") as picture:
        assert min(picture.size) > 400
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "c.png").read_bytes()


def test_curves_of_a_report_are_named_for_what_they_are():
    part = {"curve": [1.0]}
    report = {**part, "symmetric": part, "refined": {**part, "symmetric": part}}
    assert list(report_curves(report)) == ["network", "network symmetric", "refined", "refined symmetric"]
    assert list(report_curves(part)) == ["network"]


@pytest.mark.parametrize("curve", [np.ones(99), np.full(100, np.nan)])
def test_a_curve_that_does_not_fit_is_refused_and_nothing_is_written(tmp_path, curve):
    with pytest.raises(InputError, match="'short'"):
        write_curves_csv(tmp_path / "x.csv", {"short": curve})
    assert not list(tmp_path.iterdir())


def test_every_published_figure_has_a_source():
    for name, table in PUBLISHED.items():
        assert name == table.name
        for entry in table.entries:
            assert entry.source
            assert 0 < entry.value < 100


def test_a_curve_below_another_can_be_seen(tmp_path):
    curve = np.linspace(0.2, 0.9, 100)
    path = tmp_path / "equal.png"
    write_curves_png(path, {"network": curve, "refined": curve}, "sqrt_area")
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)[:, :800]  # without the legend
    for color in ((31, 119, 180), (255, 127, 14)):
        assert (np.abs(image - color).max(axis=2) < 30).sum() > 500
