"""GCNN: convolution on geodesic polar patches, maximum over rotations (Masci, Boscaini, Bronstein et al. 2015)."""

from acnn.methods.method import Method, Properties
from acnn.methods.network_methods import load_network, network_needs, train_network

GCNN = Method(
    name="gcnn",
    title="geodesic convolutional neural network (Masci et al. 2015)",
    properties=Properties("mesh", "any", True, "spatial", True, True, "any"),
    presets={"labels": "gcnn", "segmentation": "gcnn", "descriptor": "gcnn"},
    needs=network_needs,
    train=train_network,
    load=load_network,
)
