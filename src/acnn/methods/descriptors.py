"""Descriptor matching: SHOT and WKS of two shapes compared, then refined; nothing is trained."""

from functools import partial

from acnn.correspondence.descriptor_matching import match_by_descriptors
from acnn.correspondence.refine import RefineMethod
from acnn.methods.method import PairMap, PairMethod
from acnn.progress import Progress
from acnn.surface.surface import Surface


def match(
    a: Surface, b: Surface, refinement: RefineMethod, progress: Progress | None = None, candidates: bool = True
) -> PairMap:
    """Map A to B by their descriptors."""
    found = match_by_descriptors(a, b, refinement, candidates=candidates, progress=progress)
    why = f"from {found.report.start}; {found.report.chosen_because}"
    report = {"why": why, **found.report.as_dict()}
    distortion = 1.0 - float(found.confidence.mean())
    return PairMap(found.query_to_reference, distortion, report, mirrored=found.mirrored)


UNJUDGED = PairMethod("descriptors", "as `descriptors`, without candidates", partial(match, candidates=False))
DESCRIPTORS = PairMethod("descriptors", "SHOT and WKS compared, then ZoomOut", match)
