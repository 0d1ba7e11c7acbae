"""SCNN: spectral convolutions in the Laplacian eigenbasis (Bruna, Zaremba, Szlam, LeCun 2014)."""

from acnn.methods.method import Method, Properties
from acnn.methods.network_methods import load_network, network_needs, train_network

SCNN = Method(
    name="scnn",
    title="spectral networks (Bruna et al. 2014)",
    properties=Properties("any", "any", False, "spectral", True, False, "any"),
    presets={"labels": "paper-scnn", "segmentation": "scnn-eigenvalue", "descriptor": "scnn-eigenvalue"},
    needs=network_needs,
    train=train_network,
    load=load_network,
)
