from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from network_samples import ellipsoid

from acnn.patches.anisotropic import build_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings


@pytest.fixture(scope="session")
def operator() -> PatchOperator:
    """Patches of a real surface, with narrow scales on both sides of a wide one."""
    settings = PatchSettings(angles=4, scales=(30.0, 5000.0, 90.0), eigenpairs=40)
    found = build_patches(ellipsoid(), settings, threads=1)
    assert found.wide == (1,)
    return found


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Shapes here are tiny: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
