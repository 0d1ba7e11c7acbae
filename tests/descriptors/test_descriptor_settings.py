"""Descriptors by settings: side by side, from the user's own files, and clear where they do not fit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from acnn.descriptors import shot
from acnn.descriptors.settings import DescriptorSettings, describe_surface, own_descriptors
from acnn.errors import InputError
from acnn.shapes import Mesh, Source
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


def test_own_array_follows_the_vertices_of_the_file(tmp_path: Path) -> None:
    source = Source(str(tmp_path / "a.ply"), np.array([-1, 0, 1], np.int32), np.array([1, 2, 2], np.int32))
    shape = Mesh(np.zeros((3, 3)), np.zeros((0, 3), np.int32), source=source)
    with pytest.raises(InputError, match=r"a\.npy: there is no such file.*3 rows"):
        own_descriptors(shape)
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(own_descriptors(shape), [[2, 3], [4, 5], [4, 5]])
    np.save(tmp_path / "a.npy", np.arange(8).reshape(4, 2))
    with pytest.raises(InputError, match=r"has 4 rows, but a\.ply has 3 vertices"):
        own_descriptors(shape)
    np.save(tmp_path / "a.npy", np.array([{}, {}, {}]), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        own_descriptors(shape)
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(InputError, match="shape"):
        own_descriptors(shape)
    with pytest.raises(InputError, match="read from files"):
        own_descriptors(replace(shape, source=None))
