"""Matching without a network."""

import numpy as np
import pytest
from analytic import bumpy, permuted

from acnn.correspondence.descriptor_matching import STARTS, _described, match_by_descriptors
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.partial_map import soft_map_from_descriptors
from acnn.datasets import builtin_humans
from acnn.evaluation import ReferenceDistances, evaluate_map
from acnn.surface import surface_of
from acnn.surface.simplify import remesh


@pytest.fixture(scope="module")
def reference():
    return surface_of(builtin_humans().mesh(0))


def test_another_person_in_another_triangulation_is_matched(reference):
    mesh = builtin_humans().mesh(42)
    copy = remesh(mesh, seed=3)
    found = match_by_descriptors(surface_of(copy.mesh), reference)
    result = evaluate_map(
        found.query_to_reference, copy.truth.nearest_vertex(mesh.vertices, mesh.faces), ReferenceDistances(reference)
    )
    assert result.mean_error_x100 < 3
    good = result.errors < 0.05
    assert found.confidence[good].mean() > found.confidence[~good].mean()
    assert found.report.distortion[found.report.start] == min(found.report.distortion.values())


def test_the_refinement_is_the_one_asked_for():
    query, reference = surface_of(permuted(bumpy(2), 1)[0]), surface_of(bumpy(2))
    plain = match_by_descriptors(query, reference, "none")
    assert (plain.report.method, plain.report.used) == ("none", "none")
    left, right = (basis_of(s, 161) for s in (query, reference))
    radii, with_wks = STARTS[plain.report.start]
    here, there = (_described(s, basis, radii, with_wks, {}) for s, basis in ((query, left), (reference, right)))
    nearest = soft_map_from_descriptors(here, there).query_to_reference
    np.testing.assert_array_equal(plain.query_to_reference, nearest)
    assert "asked for" in plain.report.chosen_because
    assert match_by_descriptors(query, reference, "fm").report.method == "fm"
