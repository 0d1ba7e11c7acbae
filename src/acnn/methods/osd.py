"""OSD: optimal spectral descriptors, learned filters of the isotropic spectrum (Litman and Bronstein 2014)."""

from acnn.methods.method import Method, Properties
from acnn.methods.spectral_methods import fit_descriptor, learned_needs, load_descriptor

OSD = Method(
    name="osd",
    title="optimal spectral descriptors (Litman, Bronstein 2014)",
    properties=Properties("any", "geometry", True, "spectral", False, False, "descriptor"),
    presets={"descriptor": "osd"},
    needs=learned_needs,
    train=fit_descriptor,
    load=load_descriptor,
)
