"""Maps from wrong starts, and the choice between maps, on humans whose correspondence is known."""

import numpy as np
import pytest

from acnn.correspondence.candidates import (
    Candidate,
    best_candidate,
    filtered,
    mirrored_candidate,
    sign_alternatives,
)
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.map_measures import MapMeter
from acnn.correspondence.zoomout import wavelet_mask
from acnn.datasets import builtin_humans
from acnn.datasets.parts import cut_part
from acnn.surface import surface_of
from acnn.surface.simplify import remesh

HUMANS = builtin_humans()
TRUTH = np.arange(2500, dtype=np.int32)


@pytest.fixture(scope="module")
def pair():
    """Two humans in one triangulation."""
    return surface_of(HUMANS.mesh(131)), surface_of(HUMANS.mesh(148))


@pytest.fixture(scope="module")
def meter(pair):
    return MapMeter(*pair)


def error(matched, b, truth=TRUTH):
    """Mean Euclidean error over the root of the area."""
    gaps = np.linalg.norm(b.vertices[matched] - b.vertices[truth], axis=1)
    return gaps.mean() / np.sqrt(b.vertex_areas.sum())


def test_the_mask_keeps_equal_frequencies_and_removes_distant_ones():
    values = np.linspace(0, 300, 100)
    mask = wavelet_mask(values, values)
    assert np.allclose(np.diag(mask), 1)
    assert (mask >= -1e-12).all()
    assert mask[5, 90] < 1e-12
    assert np.allclose(mask, mask.T)


def test_a_map_is_recovered_from_few_right_matches(pair):
    a, b = pair
    rng = np.random.default_rng(0)
    start = np.where(rng.random(2500) < 0.7, rng.integers(0, 2500, 2500), TRUTH)
    assert error(start, b) > 0.3
    assert error(filtered(start, a, b), b) < 0.03


def test_a_partial_map_is_recovered_too(pair):
    part, kept = cut_part(HUMANS.mesh(131), "holes", 0.4, seed=3)
    a, b = surface_of(part, pair[0].unit), pair[1]
    rng = np.random.default_rng(0)
    start = np.where(rng.random(len(kept)) < 0.5, rng.integers(0, 2500, len(kept)), kept)
    assert error(filtered(start, a, b), b, kept) < 0.04


def test_measures_notice_what_is_wrong_where_it_is_wrong(meter):
    right = meter(TRUTH)
    assert right.means["stretch"] < 0.07
    assert right.means["turned"] < 0.05
    arm = HUMANS.mesh(0).vertices[:, 0] > 0.3  # the left arm goes to the right one
    swapped = meter(np.where(arm, HUMANS.mirror, TRUTH).astype(np.int32))
    assert swapped.stretch[arm].mean() > 3 * right.stretch[arm].mean()
    assert swapped.turned[arm].mean() > 0.85
    assert swapped.turned[~arm].mean() < 0.1
    mirrored = meter(HUMANS.mirror.astype(np.int32))  # keeps lengths, not the orientation
    assert mirrored.means["stretch"] < 0.08
    assert mirrored.means["turned"] > 0.9


def test_the_right_map_is_the_cheapest_and_the_first_wins_a_draw(meter):
    arm = HUMANS.mesh(0).vertices[:, 0] > 0.3
    maps = {
        "mirrored": HUMANS.mirror.astype(np.int32),
        "swapped": np.where(arm, HUMANS.mirror, TRUTH).astype(np.int32),
        "right": TRUTH,
    }
    candidates = [Candidate(name, matched, meter(matched)) for name, matched in maps.items()]
    assert best_candidate(candidates).name == "right"
    same = Candidate("the same", TRUTH, meter(TRUTH))
    assert best_candidate([same, *candidates]) is same
    second = mirrored_candidate(candidates, candidates[2])
    assert second is not None
    assert second.name == "mirrored"


def test_other_signs_contain_the_mirrored_map():
    mesh = remesh(HUMANS.mesh(0), vertices=700, seed=1).mesh
    a = surface_of(mesh)
    basis, meter = basis_of(a, 60), MapMeter(a, a)
    maps = sign_alternatives(np.arange(700, dtype=np.int32), basis, basis)
    turned = [meter(matched).means["turned"] for matched in maps]
    assert min(turned) < 0.2
    assert max(turned) > 0.7
    assert sign_alternatives(np.arange(700, dtype=np.int32), basis_of(a, 10), basis_of(a, 10)) == []
