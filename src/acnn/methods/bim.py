"""BIM: blended intrinsic maps, from Moebius maps of the flattened surfaces (Kim, Lipman, Funkhouser 2011)."""

from acnn.correspondence.blended import blended_map
from acnn.correspondence.point_maps import vertex_distortions
from acnn.correspondence.refine import RefineMethod
from acnn.methods.method import PairMap, PairMethod
from acnn.progress import Progress
from acnn.surface.surface import Surface


def match(a: Surface, b: Surface, refinement: RefineMethod, progress: Progress | None = None) -> PairMap:
    """Map A to B, both closed meshes of genus 0; the map is not refined, as published."""
    blended = blended_map(a, b, progress=progress)
    report = {"method": "none", "used": "none", "why": "blended maps are kept as they are", **blended.report.as_dict()}
    return PairMap(blended.a_to_b, float(vertex_distortions(blended.a_to_b, a, b).mean()), report)


BIM = PairMethod("bim", "blended intrinsic maps (Kim, Lipman, Funkhouser 2011)", match)
