"""ADD: anisotropic diffusion descriptors, learned filters of anisotropic spectra (Boscaini et al. 2016)."""

from acnn.methods.method import Method, Properties
from acnn.methods.spectral_methods import fit_descriptor, learned_needs, load_descriptor

ADD = Method(
    name="add",
    title="anisotropic diffusion descriptors (Boscaini et al. 2016)",
    properties=Properties("any", "geometry", True, "spectral", False, True, "any"),
    presets={"descriptor": "add"},
    needs=learned_needs,
    train=fit_descriptor,
    load=load_descriptor,
)
