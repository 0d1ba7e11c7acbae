"""PFM: partial functional maps from descriptors (Rodola, Cosmo, Bronstein, Torsello, Cremers 2017)."""

from acnn.correspondence.descriptor_matching import match_by_descriptors
from acnn.correspondence.refine import RefineMethod
from acnn.methods.method import PairMap, PairMethod
from acnn.progress import Progress
from acnn.surface.surface import Surface


def match(a: Surface, b: Surface, refinement: RefineMethod, progress: Progress | None = None) -> PairMap:
    """Map a partial shape A to the full shape B; the refinement is always that of partial functional maps."""
    found = match_by_descriptors(a, b, "pfm", progress=progress)
    why = f"from {found.report.start}; {found.report.chosen_because}"
    report = {"why": why, **found.report.as_dict()}
    return PairMap(found.query_to_reference, 1.0 - float(found.confidence.mean()), report)


PFM = PairMethod("pfm", "partial functional maps from SHOT (Rodola et al. 2017)", match)
