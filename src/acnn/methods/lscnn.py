"""LSCNN: windowed Fourier transforms with learned windows (Boscaini, Masci, Melzi, Bronstein et al. 2015)."""

from acnn.methods.method import Method, Properties
from acnn.methods.network_methods import load_network, network_needs, train_network

LSCNN = Method(
    name="lscnn",
    title="localised spectral convolutional network (Boscaini et al. 2015)",
    properties=Properties("any", "any", True, "spectral", True, False, "any"),
    presets={"descriptor": "paper-lscnn", "labels": "lscnn-labels", "segmentation": "lscnn-labels"},
    needs=network_needs,
    train=train_network,
    load=load_network,
)
