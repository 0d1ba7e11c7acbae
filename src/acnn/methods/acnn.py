"""ACNN: intrinsic convolutions on anisotropic heat kernels (Boscaini, Masci, Rodola, Bronstein 2016)."""

from acnn.methods.method import Method, Properties
from acnn.methods.network_methods import load_network, network_needs, train_network

ACNN = Method(
    name="acnn",
    title="anisotropic convolutional neural network (Boscaini et al. 2016)",
    properties=Properties("any", "any", True, "spatial", True, True, "any"),
    presets={"labels": "quick", "segmentation": "segmentation", "descriptor": "descriptor"},
    needs=network_needs,
    train=train_network,
    load=load_network,
)
