"""The registry of methods, and what the command line makes of it."""

import json

import pytest
from analytic import bumpy

from acnn.cli import main
from acnn.errors import InputError
from acnn.methods.registry import METHODS, PAIR_METHODS, pair_method, trained_method
from acnn.runs.train import config_of_method
from acnn.shapes import save
from acnn.training.config import preset_config, presets


def test_the_table_of_properties_is_that_of_the_paper(capsys):
    assert main(["methods", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["trained"]}
    columns = ("representation", "input", "generalisable", "filters", "context", "directional", "task")
    expected = {
        "osd": ("any", "geometry", True, "spectral", False, False, "descriptor"),
        "add": ("any", "geometry", True, "spectral", False, True, "any"),
        "rf": ("any", "any", True, "spectral", False, False, "correspondence"),
        "gcnn": ("mesh", "any", True, "spatial", True, True, "any"),
        "scnn": ("any", "any", False, "spectral", True, False, "any"),
        "lscnn": ("any", "any", True, "spectral", True, False, "any"),
        "acnn": ("any", "any", True, "spatial", True, True, "any"),
    }
    for name, cells in expected.items():
        assert tuple(rows[name][column] for column in columns) == cells


@pytest.mark.parametrize("name", list(METHODS))
def test_the_preset_of_a_method_is_one_of_it(name):
    method = METHODS[name]
    assert method.preset in presets()
    assert preset_config(method.preset).method == name
    assert config_of_method(name, None).preset == method.preset
    method.needs(preset_config(method.preset))


def test_unknown_and_contradictory_methods_are_refused(tmp_path, capsys):
    with pytest.raises(InputError, match="There is no method 'abc' to train"):
        trained_method("abc")
    with pytest.raises(InputError, match=r"'pfm' to train.*acnn match"):
        trained_method("pfm")
    with pytest.raises(InputError, match="descriptors, pfm, bim"):
        pair_method("abc")
    with pytest.raises(InputError, match="is one of the method 'acnn', not of 'scnn'"):
        config_of_method("scnn", "quick")
    save(bumpy(1), tmp_path / "a.ply")
    shape, out = str(tmp_path / "a.ply"), str(tmp_path / "out")
    for options, words in [
        (["--method", "scnn"], "of 'acnn train --method scnn' with --model."),
        (["--method", "acnn"], "or the name of a pretrained one (humans, humans-1)"),
        (["--method", "lscnn", "--model", "humans"], "is a run of the method 'acnn', not of 'lscnn'"),
        (["--method", "descriptors", "--model", "humans"], "takes no model"),
        (["--method", "abc"], "There is no method 'abc'"),
    ]:
        assert main(["match", shape, shape, *options, "--out", out]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", list(PAIR_METHODS))
def test_pair_methods_have_a_title(name):
    assert PAIR_METHODS[name].title
