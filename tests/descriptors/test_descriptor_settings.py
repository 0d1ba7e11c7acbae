"""Descriptors by settings: several kinds side by side, and errors that name what does not fit."""

from dataclasses import replace

import numpy as np
import pytest

from acnn.descriptors import shot, valence_descriptors
from acnn.descriptors.settings import DescriptorSettings, describe_surface
from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.surface.surface import Surface, surface_of


@pytest.fixture(scope="module")
def surface() -> Surface:
    n = 9
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n)))
    a = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate([np.stack([a, a + 1, a + n + 1], 1), np.stack([a, a + n + 1, a + n], 1)])
    return surface_of(Mesh(np.stack([x, y, 0.3 * np.sin(3 * x) * y], 1), faces.astype(np.int32)))


def test_kinds_stand_side_by_side_in_order(surface: Surface) -> None:
    settings = DescriptorSettings(
        kinds=("wks", "shot", "hks"), shot_radii=(40, 60), wks_count=7, hks_count=5, eigenpairs=20
    )
    values = describe_surface(surface, settings)
    assert values.shape == (81, 7 + 2 * 544 + 5)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values[:, 7:551], shot(surface, 40.0))
    np.testing.assert_array_equal(values[:, 551:1095], shot(surface, 60.0))
    np.testing.assert_array_equal(describe_surface(surface, replace(settings, kinds=("hks",))), values[:, -5:])


def test_settings_round_trip() -> None:
    settings = DescriptorSettings(kinds="wks", shot_radii=(8, 16), signs="majority")
    assert DescriptorSettings(**settings.as_dict()) == settings
    assert settings.kinds == ("wks",)


@pytest.mark.parametrize(
    "wrong",
    [{"kinds": ("shot", "sift")}, {"kinds": ()}, {"kinds": ("shot", "shot")}, {"shot_radii": ()},
     {"shot_radii": (0.0,)}, {"shot_radii": (3, 3)}, {"signs": "x"}, {"wks_count": 0}, {"eigenpairs": 1}],
)  # fmt: skip
def test_wrong_settings_are_rejected(wrong: dict) -> None:
    with pytest.raises(InputError):
        DescriptorSettings(**wrong)


def test_own_descriptors_stand_beside_computed_ones(surface: Surface) -> None:
    own = np.arange(162.0).reshape(81, 2)
    settings = DescriptorSettings(kinds=("file", "shot"), shot_radii=(40,))
    descriptors = describe_surface(surface, settings, own=own)
    np.testing.assert_array_equal(descriptors[:, :2], own)
    np.testing.assert_array_equal(descriptors[:, 2:], shot(surface, 40.0))
    with pytest.raises(InputError, match="read from files"):
        describe_surface(surface, settings)
    with pytest.raises(InputError, match=r"\(80, 2\).*\(81, p\)"):
        describe_surface(surface, settings, own=own[:-1])


def test_the_earlier_name_of_the_valence_descriptor_is_accepted(surface: Surface) -> None:
    old = DescriptorSettings(kinds=("shot", "rings"), shot_radii=(40,))
    assert old == DescriptorSettings(kinds=("shot", "valences"), shot_radii=(40,))
    assert old.as_dict()["kinds"] == ["shot", "valences"]
    assert DescriptorSettings(kinds="rings").kinds == ("valences",)
    np.testing.assert_array_equal(describe_surface(surface, old)[:, 544:], valence_descriptors(surface))
    with pytest.raises(InputError, match="each once"):
        DescriptorSettings(kinds=("rings", "valences"))
