"""Control panel of the live viewer."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acnn.shapes.formats.raw import encode_png
from acnn.viewer.figures import polar_image
from acnn.viewer.live_guard import dropping
from acnn.viewer.pages import scale_stops

if TYPE_CHECKING:
    from acnn.viewer.live import LiveViewer

_ALL = "all shapes"


@dataclass(frozen=True)
class ColorScale:
    """What the colours of a quantity stand for.

    Attributes
    ----------
    name : str
        The quantity.
    low, high : str
        Labels of both ends.
    colors : str
        Colour map of `value_colors`.
    reversed : bool
        Whether the first colour stands for the high end.
    """

    name: str
    low: str
    high: str
    colors: str
    reversed: bool = False


class Controls:
    """Controls of a viewer, which call its methods, and the texts that `update` refreshes."""

    def __init__(self, viewer: LiveViewer) -> None:
        self.viewer = viewer
        gui, data = viewer.server.gui, viewer.data
        gui.add_markdown("Click a shape to pick a vertex. Drag to rotate, scroll to zoom.")
        self.quantity = gui.add_dropdown("Show", viewer.quantities, initial_value=viewer.quantity)
        self._on_update(self.quantity, lambda: viewer.show(self.quantity.value))
        self.bar = gui.add_html("")
        if data.map_names:
            self.map = gui.add_dropdown("Map", data.map_names, initial_value=viewer.map_name)
            self._on_update(self.map, lambda: viewer.show(map_name=self.map.value))
            self.compare = gui.add_dropdown("Compare maps of", (_ALL, *(s.name for s in data.shapes)))
            self._on_update(
                self.compare, lambda: viewer.compare(None if self.compare.value == _ALL else self.compare.value)
            )
        self.directions = gui.add_checkbox("Principal directions", False)
        self._on_update(self.directions, lambda: viewer.show_directions(self.directions.value))
        with gui.add_folder("Picked"):
            self.description = gui.add_markdown("")
        settings = data.shapes[0].settings
        self._degrees = degrees = [f"{angle:g}°" for angle in np.round(np.degrees(settings.thetas), 1)]
        self._scales = scales = [f"t = {t:g}" for t in settings.scales]
        with gui.add_folder("Kernel"):
            self.angle = gui.add_dropdown("Angle", degrees, initial_value=degrees[viewer.angle])
            self.scale = gui.add_dropdown("Scale", scales, initial_value=scales[viewer.scale])

        for control in (self.angle, self.scale):
            self._on_update(
                control, lambda: viewer.patch(degrees.index(self.angle.value), scales.index(self.scale.value))
            )
        self.image: Any = None
        if viewer.filters is not None:
            self._add_filter(viewer)

    def update(self) -> None:
        """Describe the picked vertex, and show the chosen filter."""
        viewer = self.viewer
        shape, vertex = viewer.picked
        lines = [f"vertex {vertex} of **{_plain(shape.name)}**"]
        for panel in viewer.scene.panels:
            match = viewer.vertex_of(panel)
            if panel.shape is not shape and match is not None:
                lines.append(f"{_plain(panel.label)}: vertex {match}")
        if shape.confidence is not None:
            lines.append(f"confidence {float(shape.confidence[vertex]):.1%}")
            errors = {name: float(values[vertex]) for name, values in shape.errors.items()}
            known = [f"{name} {100 * e:.2f}" for name, e in errors.items() if np.isfinite(e)]
            if known:
                lines.append(f"error x 100: {', '.join(known)}")
        self._follow()
        bar = _bar(viewer.color_scale)
        if self.bar.content != bar:
            self.bar.content = bar
        self.description.content = "\n".join(f"- {line}" for line in lines)
        if self.image is not None and viewer.filters is not None:
            content = self._disc(viewer)
            if self.image.content != content:
                self.image.content = content

    def _follow(self) -> None:
        """Set the controls to the state of the viewer, where it was changed by other means."""
        viewer = self.viewer
        wanted: list[tuple[Any, Any]] = [(self.quantity, viewer.quantity), (self.directions, viewer.directions)]
        wanted += [(self.angle, self._degrees[viewer.angle]), (self.scale, self._scales[viewer.scale])]
        if viewer.filters is not None and self.image is not None:
            wanted += [(self.channel, viewer.channel), (self.source, viewer.source)]
        if viewer.data.map_names:
            wanted += [
                (self.map, viewer.map_name),
                (self.compare, _ALL if viewer.compared is None else viewer.compared.name),
            ]
        for control, value in wanted:
            if control.value != value:
                control.value = value

    def _add_filter(self, viewer: LiveViewer) -> None:
        gui = viewer.server.gui
        assert viewer.filters is not None
        _, _, sources, channels = viewer.filters.shape
        with gui.add_folder("Filter of the first IC layer"):
            self.channel = gui.add_slider("Output", 0, channels - 1, 1, viewer.channel)
            self.source = gui.add_slider("Input", 0, sources - 1, 1, viewer.source)
            self.strongest = gui.add_button("Strongest input of this output")
            self.image = gui.add_html(self._disc(viewer))
        for control in (self.channel, self.source):
            self._on_update(control, lambda: viewer.filter(int(self.channel.value), int(self.source.value)))
        self.strongest.on_click(dropping(viewer.server, lambda _: viewer.filter(int(self.channel.value)), self._follow))

    def _on_update(self, control: Any, action: Callable[[], None]) -> None:
        control.on_update(dropping(self.viewer.server, lambda _: action(), self._follow))

    @staticmethod
    def _disc(viewer: LiveViewer) -> str:
        """The chosen filter in polar coordinates, as HTML with the embedded image."""
        assert viewer.filters is not None
        image = polar_image(viewer.filters[:, :, viewer.source, viewer.channel], 140)
        data = base64.b64encode(encode_png(image)).decode()
        text = "Direction: angle from the larger curvature. Radius: scale. Red is positive, blue negative."
        style = "font-size:0.8em;padding:0.5em 1em"
        return f'<div style="{style}"><img alt="filter" src="data:image/png;base64,{data}"><br>{text}</div>'


def _bar(scale: ColorScale | None) -> str:
    """The colour bar as HTML; empty where colours stand for no numbers."""
    if scale is None:
        return ""
    stops = scale_stops(scale.colors, 9)[:: -1 if scale.reversed else 1]
    gradient = ",".join(f"rgb({r},{g},{b})" for r, g, b in stops)
    strip = f'<div style="height:10px;border-radius:5px;background:linear-gradient(to right,{gradient})"></div>'
    ends = f"<span>{scale.low}</span><span>{scale.high}</span>"
    ends = f'<div style="display:flex;justify-content:space-between">{ends}</div>'
    style = "font-size:0.8em;padding:0.2em 1em"
    return f'<div role="img" aria-label="colour bar: {scale.name}" style="{style}">{strip}{ends}{scale.name}</div>'


def _plain(name: str) -> str:
    """Escape a name, so that it is not read as markup."""
    return "".join(c if c.isalnum() or c in " .-:,()" else f"\\{c}" if c in "_*[]<>`#!|~\\" else c for c in name)
