"""PFM: partial functional maps from descriptors (Rodola, Cosmo, Bronstein, Torsello, Cremers 2017)."""

from acnn.correspondence.refine import RefineMethod
from acnn.methods import descriptors
from acnn.methods.method import PairMap, PairMethod
from acnn.progress import Progress
from acnn.surface.surface import Surface


def match(a: Surface, b: Surface, refinement: RefineMethod, progress: Progress | None = None) -> PairMap:
    """Map a partial shape A to the full shape B; the refinement is always that of partial functional maps."""
    return descriptors.match(a, b, "pfm", progress)


PFM = PairMethod("pfm", "partial functional maps from SHOT (Rodola et al. 2017)", match)
