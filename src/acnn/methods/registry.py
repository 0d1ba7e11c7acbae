"""All methods by name: those that are trained (`METHODS`) and those for two shapes as they are (`PAIR_METHODS`)."""

from __future__ import annotations

from acnn.errors import InputError
from acnn.methods.acnn import ACNN
from acnn.methods.add import ADD
from acnn.methods.bim import BIM
from acnn.methods.descriptors import DESCRIPTORS
from acnn.methods.gcnn import GCNN
from acnn.methods.lscnn import LSCNN
from acnn.methods.method import Method, PairMethod
from acnn.methods.osd import OSD
from acnn.methods.pfm import PFM
from acnn.methods.rf import RF
from acnn.methods.scnn import SCNN

METHODS: dict[str, Method] = {method.name: method for method in (OSD, ADD, RF, GCNN, SCNN, LSCNN, ACNN)}
PAIR_METHODS: dict[str, PairMethod] = {method.name: method for method in (DESCRIPTORS, PFM, BIM)}

AUTO = "auto"
"""The pretrained model where it fits, else descriptors."""


def trained_method(name: str) -> Method:
    """The trained method of a name.

    Raises
    ------
    InputError
        Where there is none, with the names that there are.
    """
    if name not in METHODS:
        hint = " It matches two shapes as they are: use it with 'acnn match'." if name in PAIR_METHODS else ""
        raise InputError(f"There is no method '{name}' to train; there are {', '.join(METHODS)}.{hint}")
    return METHODS[name]


def pair_method(name: str) -> PairMethod:
    """The pair method of a name.

    Raises
    ------
    InputError
        Where there is none, with the names that there are.
    """
    if name not in PAIR_METHODS:
        raise InputError(
            f"There is no method '{name}'; for two shapes as they are, there are {', '.join(PAIR_METHODS)}, and to be "
            f"trained, {', '.join(METHODS)}."
        )
    return PAIR_METHODS[name]
