"""Older names work for one release, with a warning that names the new one."""

import pytest
from analytic import bumpy

import acnn


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AcnnModel", "acnn.nn.ShapeNetwork"),
        ("IntrinsicConv", "acnn.nn.IntrinsicConv"),
        ("Patches", "acnn.nn.Patches"),
        ("carry_shape", "acnn.transfer_shape"),
        ("carry_texture", "acnn.transfer_texture"),
        ("match_pair", "acnn.match"),
    ],
)
def test_an_older_name_warns_and_gives_the_present_object(old, new):
    with pytest.warns(DeprecationWarning, match=f"acnn.{old} is deprecated: use {new}"):
        value = getattr(acnn, old)
    if old != "match_pair":  # whose third argument means something else
        present = acnn
        for name in new.split(".")[1:]:
            present = getattr(present, name)
        assert value is present


def test_the_older_form_of_a_match_takes_none_for_descriptors():
    mesh = bumpy(2)
    with pytest.warns(DeprecationWarning, match="match_pair"):
        match_pair = acnn.match_pair
    found = match_pair(mesh, mesh, None, refinement="none", cache=False)
    assert found.report.route == found.report["route"] == "descriptors"
    with pytest.warns(DeprecationWarning, match="use match.report"):
        assert found.facts == found.report.as_dict()
    with pytest.warns(DeprecationWarning, match="use match.points"):
        assert found.places is found.points


def test_facts_of_operators_and_runs_warn():
    operator = acnn.build_patches(bumpy(1), angles=1, scales=(4,))
    with pytest.warns(DeprecationWarning, match="use operator.report"):
        assert operator.facts == operator.report.as_dict()
    run = acnn.open_run("humans")
    with pytest.warns(DeprecationWarning, match="use run.record"):
        assert run.facts["train"] == run.record.train
