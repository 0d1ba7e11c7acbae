from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from network_samples import ellipsoid

from acnn.patches.build import build_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings


@pytest.fixture(scope="session")
def operator() -> PatchOperator:
    """Patches of a real surface, with narrow scales on both sides of a wide one."""
    return build_patches(ellipsoid(), PatchSettings(angles=4, scales=(30.0, 200.0, 90.0), eigenpairs=40), threads=1)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Shapes here are tiny: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
