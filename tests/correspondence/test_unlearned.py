"""Matching without a network."""

import numpy as np
import pytest

from acnn.correspondence.unlearned import match_without_network
from acnn.datasets import builtin_humans
from acnn.datasets.parts import cut_part
from acnn.datasets.remesh import remesh
from acnn.evaluation import ReferenceDistances, evaluate_map
from acnn.surface import surface_of


@pytest.fixture(scope="module")
def reference():
    return surface_of(builtin_humans().mesh(0))


def test_another_person_in_another_triangulation_is_matched(reference):
    mesh = builtin_humans().mesh(42)
    copy = remesh(mesh, seed=3)
    found = match_without_network(surface_of(copy.mesh), reference)
    result = evaluate_map(found.query_to_reference, copy.nearest_vertex(mesh.faces), ReferenceDistances(reference))
    assert result.mean_error_x100 < 3
    good = result.errors < 0.05
    assert found.confidence[good].mean() > found.confidence[~good].mean()
    assert found.facts["distortion"][found.facts["start"]] == min(found.facts["distortion"].values())


def test_a_part_is_matched_by_a_partial_map(reference):
    mesh = builtin_humans().mesh(0)
    part, kept = cut_part(mesh, "cuts", 0.4, seed=5)
    found = match_without_network(surface_of(part, reference.unit), reference)
    assert found.facts["method"] == "pfm"
    result = evaluate_map(found.query_to_reference, kept, ReferenceDistances(reference))
    assert result.mean_error_x100 < 3
    assert np.isfinite(found.confidence).all()
