"""Architectures as the paper writes them, `FC64+IC64+IC128+IC256+FC1024+FC512+Softmax`, and spectral settings.

Both are read without loading torch.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, NoReturn

from acnn.errors import InputError

Kind = Literal["FC", "IC", "GC", "SC", "WC", "BN", "DO", "RES"]
CHANNELS: tuple[Kind, ...] = ("FC", "IC", "GC", "SC", "WC")
"""Layers that end with a number of channels of their own."""

_KNOWN = (
    "FC<channels>, IC<channels>, GC<channels>, SC<channels>, WC<channels>, BN, DO(<probability>), RES(<layers>), and "
    "Softmax at the end, which only networks that give descriptors leave out"
)


@dataclass(frozen=True)
class LayerSpec:
    """One layer of an architecture.

    Attributes
    ----------
    kind : Kind
        FC, IC, GC, SC, WC, BN, DO (dropout) or RES (residual block).
    size : int
        Output channels of FC, IC, GC, SC and WC.
    relu : bool
        Whether a ReLU follows them.
    rate : float
        Probability with which DO drops.
    body : tuple[LayerSpec, ...]
        Layers inside RES.
    """

    kind: Kind
    size: int = 0
    relu: bool = True
    rate: float = 0.0
    body: tuple[LayerSpec, ...] = ()

    def __str__(self) -> str:
        if self.kind in CHANNELS:
            return f"{self.kind}{self.size}" + ("" if self.relu else ":linear")
        if self.kind == "DO":
            return f"DO({self.rate!r})"
        return f"RES({'+'.join(map(str, self.body))})" if self.kind == "RES" else self.kind


@dataclass(frozen=True)
class Architecture:
    """Layers from the descriptors to the output layer; `str()` gives the string back.

    - `FC64`: fully connected to 64 channels, then ReLU; `FC64:linear` without it
    - `IC64`: intrinsic convolution to 64 channels, then ReLU; `IC64:linear` without it
    - `GC64`: the same with the maximum over rotations of the filters, as in GCNN on geodesic patches
    - `SC64`, `WC64`: spectral convolution (SCNN) and windowed Fourier transform (LSCNN), see `acnn.network.spectral`
    - `BN`: batch normalisation of what the layer before gives, after its ReLU
    - `DO(0.5)`: dropout
    - `RES(IC64)`: residual block x + BN(IC64(x)); any layers but RES and Softmax may stand inside
    - `Softmax`: the output layer, linear from the last channels to the m vertices of the reference, or to the classes
      of a segmentation. Always the last; without it the last channels are a descriptor. The network returns logits;
      the loss, or whoever wants probabilities, applies (log-)softmax.

    The network of the authors' program for FAUST is
    `FC64+IC64+BN+IC128+BN+IC256+BN+FC1024:linear+BN+FC512+BN+Softmax`. A linear layer right before BN has no bias: BN
    would take it away.
    """

    layers: tuple[LayerSpec, ...]
    softmax: bool = True

    @classmethod
    def parse(cls, text: str, *, softmax: bool = True) -> Architecture:
        """Read an architecture; case and spaces do not matter.

        Parameters
        ----------
        text : str
            The architecture.
        softmax : bool
            Whether it must end with Softmax, or must not.

        Raises
        ------
        InputError
            With the position of what is wrong.
        """
        return _Parser(text).architecture(softmax)

    def __str__(self) -> str:
        return "+".join([*map(str, self.layers), *(["Softmax"] if self.softmax else [])])


def with_head(text: str, *, softmax: bool, channels: int = 32) -> str:
    """The architecture with the output that a task needs.

    Parameters
    ----------
    text : str
        An architecture.
    softmax : bool
        True ends it with Softmax; False puts a linear layer in its place, whose channels are a descriptor.
    channels : int
        Of that layer.

    Examples
    --------
    >>> with_head("FC64+IC64+Softmax", softmax=False)
    'FC64+IC64+FC32:linear'
    """
    layers = re.sub(r"\+?\s*softmax\s*$", "", text, flags=re.IGNORECASE)
    if softmax:
        return f"{layers}+Softmax"
    return text if layers == text else f"{layers}+FC{channels}:linear"


@dataclass(frozen=True)
class SpectralSettings:
    """How the spectral layers of a network see the spectrum.

    Attributes
    ----------
    eigenpairs : int
        How many eigenpairs the layers use.
    splines : int
        Number of cubic B-splines that responses are made of; 0 learns one free coefficient for each eigenpair.
    over : {"index", "eigenvalue"}
        What responses are functions of. The index is the paper's choice; eigenvalues can be compared between shapes.
    upper : float
        Largest eigenvalue that the splines cover, in normalised units; 0 takes the 99th percentile of the training
        shapes.
    skip : bool
        Add a pointwise linear map of the input to every SC layer: a smooth filter alone cannot tell neighbours apart.
    """

    eigenpairs: int = 100
    splines: int = 20
    over: Literal["index", "eigenvalue"] = "index"
    upper: float = 0.0
    skip: bool = False

    def __post_init__(self) -> None:
        if self.over not in ("index", "eigenvalue"):
            raise InputError(f"Spectral filters over '{self.over}': use 'index' or 'eigenvalue'.")
        if self.eigenpairs < 2 or self.splines < 0 or not self.upper >= 0:
            raise InputError(f"{self}: at least 2 eigenpairs are needed, and splines and upper cannot be negative.")
        if self.splines == 0 and self.over == "eigenvalue":
            raise InputError("Free coefficients belong to the index of an eigenpair: set splines, or over = 'index'.")

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @property
    def size(self) -> int:
        """Numbers that describe one response."""
        return self.splines or self.eigenpairs


class _Parser:
    """Recursive descent over the text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def architecture(self, softmax: bool) -> Architecture:
        layers: list[LayerSpec] = []
        while not (ended := self.take(r"softmax(?![a-z0-9])")):
            layers.append(self.layer(inside=False))
            if not self.take(r"\+"):
                break
        if softmax and not ended:
            self.fail("expected '+' and another layer; the last one must be Softmax")
        if ended and not softmax:
            self.fail("a network that gives descriptors has no Softmax: leave it out", self.at - len(ended))
        if self.text[self.at :].strip():
            self.fail("nothing may follow Softmax" if softmax else "expected '+' and another layer")
        return Architecture(tuple(layers), softmax)

    def layer(self, inside: bool) -> LayerSpec:
        begin = self.at
        name = (self.take(r"(?:fc|ic|gc|sc|wc|bn|do|res|softmax)(?![a-z])") or "").upper()
        channels = next((kind for kind in CHANNELS if kind == name), None)
        if channels is not None:
            size = self.expect(r"[0-9]+", f"{name} needs its number of output channels, such as {name}64")
            if len(size) > 5 or int(size) < 1:
                self.fail(f"{name}{size}: between 1 and 99999 channels make sense", begin)
            return LayerSpec(channels, size=int(size), relu=not self.linear())
        if name == "BN":
            return LayerSpec("BN")
        if name == "DO":
            self.expect(r"\(", "DO needs its probability, such as DO(0.5)")
            rate = self.expect(r"[0-9]*\.?[0-9]+", "DO needs its probability, such as DO(0.5)")
            self.expect(r"\)", "DO( is never closed: expected ')'")
            if not float(rate) < 1:
                self.fail(f"DO({rate}): the probability must be below 1", begin)
            return LayerSpec("DO", rate=float(rate))
        if name == "RES" and not inside:
            self.expect(r"\(", "RES needs layers in brackets, such as RES(IC64)")
            body = [self.layer(inside=True)]
            while self.take(r"\+"):
                body.append(self.layer(inside=True))
            self.expect(r"\)", "RES( is never closed: expected '+' or ')'")
            if not any(layer.kind in CHANNELS for layer in body):
                self.fail("RES needs a layer with channels inside, such as FC64 or IC64", begin)
            return LayerSpec("RES", body=tuple(body))
        if name:
            self.fail(f"{'Softmax' if name == 'SOFTMAX' else name} may not stand inside RES", begin)
        self.fail(f"expected a layer: {_KNOWN}", begin)

    def linear(self) -> bool:
        if not self.take(":"):
            return False
        self.expect(r"linear(?![a-z0-9])", "the only option is ':linear', which leaves the ReLU out")
        return True

    def take(self, pattern: str) -> str | None:
        """What matches here, after spaces, and go on behind it; None where nothing does."""
        found = re.compile(rf"\s*({pattern})", re.IGNORECASE | re.ASCII).match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def expect(self, pattern: str, otherwise: str) -> str:
        found = self.take(pattern)
        if found is None:
            self.fail(otherwise)
        return found

    def fail(self, why: str, at: int | None = None) -> NoReturn:
        rest = self.text[self.at if at is None else at :].lstrip()
        where = f"at position {len(self.text) - len(rest) + 1} ('{rest[:12]}')" if rest else "at its end"
        raise InputError(f"Architecture '{self.text}', {where}: {why}.")
