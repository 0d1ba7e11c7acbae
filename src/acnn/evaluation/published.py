"""Published figures for comparison, as data.

Every entry names its source. Figures of one table are only comparable within it: triangulation, split and normalisation
differ between tables.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One published figure.

    Attributes
    ----------
    method : str
        Name of the method.
    value : float
        In the unit of `quantity`.
    source : str
        Where it was published.
    note : str
        What sets it apart from the other entries of its table.
    """

    method: str
    value: float
    source: str
    note: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """Figures measured in one way.

    Attributes
    ----------
    name : str
        Short key.
    quantity : str
        What is measured, with its unit.
    data : str
        Shapes and split.
    entries : tuple[Published, ...]
        As published.
    """

    name: str
    quantity: str
    data: str
    entries: tuple[Published, ...]


FAUST_EXACT = PublishedTable(
    "faust-exact",
    "fraction of exact matches in %, asymmetric, no refinement",
    "FAUST registrations, shared connectivity, trained on 0-79, tested on 80-99",
    (
        Published(
            "ACNN, released small net",
            61.82,
            "log in github.com/davideboscaini/acnn",
            "48.1 to 67.0 per shape; 2500 steps",
        ),
        Published("ACNN", 60.0, "Boscaini et al., NIPS 2016", "'over 60'"),
        Published("GCNN", 65.5, "Masci et al., ICCV workshops 2015, as tabulated in later papers"),
        Published("MoNet", 88.2, "Monti et al., CVPR 2017"),
        Published("SpiralNet", 93.1, "Lim et al., ECCV workshops 2018"),
        Published("FeaStNet multi-scale", 98.6, "Verma et al., CVPR 2018"),
        Published("SplineCNN", 99.2, "Fey et al., CVPR 2018"),
        Published("ACSCNN", 99.6, "Li et al., CVPR 2020"),
        Published("SpiralNet++", 99.8, "Gong et al., ICCV workshops 2019"),
    ),
)

FAUST_REMESHED_ERROR = PublishedTable(
    "faust-remeshed-error",
    "mean geodesic error x 100 over sqrt(area)",
    "FAUST, each shape remeshed, trained on 0-79, tested on 80-99",
    (
        Published("ZoomOut", 6.1, "Melzi et al., SIGGRAPH Asia 2019", "axiomatic"),
        Published("GeomFMaps", 2.6, "Donati et al., CVPR 2020"),
        Published("DiffusionNet + FM", 2.7, "Sharp et al., TOG 2022"),
        Published("ULRSSM", 1.6, "Cao et al., SIGGRAPH 2023"),
        Published("Hybrid ULRSSM", 1.5, "Bastian et al., CVPR 2024"),
    ),
)

SCAPE_REMESHED_ERROR = PublishedTable(
    "scape-remeshed-error",
    "mean geodesic error x 100 over sqrt(area)",
    "SCAPE, each shape remeshed",
    (
        Published("ZoomOut", 7.5, "Melzi et al., SIGGRAPH Asia 2019", "axiomatic"),
        Published("GeomFMaps", 3.0, "Donati et al., CVPR 2020"),
        Published("DiffusionNet + FM", 3.0, "Sharp et al., TOG 2022"),
        Published("ULRSSM", 1.9, "Cao et al., SIGGRAPH 2023"),
        Published("Hybrid ULRSSM", 1.8, "Bastian et al., CVPR 2024"),
    ),
)

SHREC16_CUTS_ERROR = PublishedTable(
    "shrec16-cuts-error",
    "mean geodesic error x 100 over sqrt(area), asymmetric",
    "SHREC'16 Partial, cuts, the benchmark's test set",
    (
        Published("PFM", 9.7, "Rodola et al., CGF 2017", "axiomatic"),
        Published("DPFM", 3.2, "Attaiki et al., 3DV 2021"),
        Published("ULRSSM", 3.3, "Cao et al., SIGGRAPH 2023"),
        Published("best known", 2.3, "collected figures; original source not recorded"),
    ),
)

SHREC16_HOLES_ERROR = PublishedTable(
    "shrec16-holes-error",
    "mean geodesic error x 100 over sqrt(area), asymmetric",
    "SHREC'16 Partial, holes, the benchmark's test set",
    (
        Published("PFM", 23.2, "Rodola et al., CGF 2017", "axiomatic"),
        Published("DPFM", 13.1, "Attaiki et al., 3DV 2021"),
        Published("ULRSSM", 9.1, "Cao et al., SIGGRAPH 2023"),
        Published("best known", 6.9, "collected figures; original source not recorded"),
    ),
)

PUBLISHED: dict[str, PublishedTable] = {
    table.name: table
    for table in (
        FAUST_EXACT,
        FAUST_REMESHED_ERROR,
        SCAPE_REMESHED_ERROR,
        SHREC16_CUTS_ERROR,
        SHREC16_HOLES_ERROR,
    )
}
"""Every table under its name."""
