"""Live viewer: shapes side by side in a browser, with matches, kernels and filters of a picked vertex."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np

from acnn.errors import InputError
from acnn.types import FloatArray
from acnn.viewer.colors import position_colors, value_colors
from acnn.viewer.figures import first_filters, strongest_input
from acnn.viewer.live_controls import ColorScale, Controls
from acnn.viewer.live_guard import LOOPBACK, start_server, stop_server
from acnn.viewer.live_scene import (
    UPRIGHT,
    Panel,
    Scene,
    filter_row,
    kernel_row,
    normalised,
    spread_on_query,
    spread_on_reference,
    spread_onward,
)
from acnn.viewer.view_data import TRUTH, ViewData, ViewShape

MATCHES, SPREAD, KERNEL, FILTER = "matches", "probability of the pick", "kernel at the pick", "filter at the pick"
CONFIDENCE, ERROR, TEXTURE, PLAIN = "confidence", "error", "texture", "plain"
HOTTEST = 0.1
"""Error, divided by the length of the reference, at the upper end of the colour map."""

_PLAIN = (0.72, 0.75, 0.79)

SCALES = {
    SPREAD: ColorScale("square root of the probability, relative to the largest", "0", "1", "heat"),
    KERNEL: ColorScale("kernel, relative to its largest value", "0", "1", "heat"),
    FILTER: ColorScale("filter, relative to its largest value", "-1", "1", "diverging"),
    CONFIDENCE: ColorScale("confidence", "0", "1", "depth", reversed=True),
    ERROR: ColorScale("error over sqrt(area)", "0", f"{HOTTEST:g} or more", "heat"),
}
"""The colour bars of the quantities that are numbers."""


class LiveViewer:
    """A running viewer.

    Its methods `show`, `pick` and so on do what the controls of the page do. Close it with `stop`.

    Parameters
    ----------
    data : ViewData
        Shapes, maps and network to show.
    host : str
        Address to listen on, as for `start_server`.
    port : int or None
        As for `start_server`.
    up : str
        Up axis of the shapes: `x`, `y` or `z`.
    quantity : str or None
        The quantity shown first, one of `quantities`.

    Raises
    ------
    InputError
        For an unknown axis or quantity, or if the server cannot be started.
    """

    def __init__(
        self,
        data: ViewData,
        *,
        host: str = LOOPBACK,
        port: int | None = None,
        up: str = "y",
        quantity: str | None = None,
    ) -> None:
        if up not in UPRIGHT:
            raise InputError(f"--up {up}: use x, y or z.")
        self.data, self.host = data, host
        self.quantities = quantities(data)
        self.quantity = quantity or self.quantities[0]
        self._known(self.quantity, self.quantities, "quantity")
        usual = [name for name in data.map_names if name != TRUTH]
        self.map_name = usual[-1] if usual else ""
        self.compared: ViewShape | None = None
        self.filters = first_filters(data.run.model) if FILTER in self.quantities and data.run else None
        self.angle, self.scale, self.channel = 0, len(data.shapes[0].settings.scales) - 1, 0
        self.source = 0 if self.filters is None else strongest_input(self.filters, 0)
        self.directions = False
        self.picked: tuple[ViewShape, int] = (data.reference or data.shapes[0], 0)
        self._lock = threading.RLock()
        self._onward: dict[tuple[int, str], Any] = {}
        self.server = start_server(host, port, label=f"acnn: {data.title}")
        try:
            self.server.gui.configure_theme(show_logo=False, show_share_button=False, dark_mode=False)
            self.server.gui.main_panel.dock_right()
            self.scene = Scene(self.server, up)
            self.controls = Controls(self)
            self.picked = (self.picked[0], self._prominent(self.picked[0]))
            self.arrange()
        except BaseException:
            self.stop()
            raise

    @property
    def address(self) -> str:
        """URL of the page."""
        name = self.host if self.host not in ("0.0.0.0", "::") else "localhost"
        return f"http://{f'[{name}]' if ':' in name else name}:{self.server.get_port()}"

    def stop(self) -> None:
        """Stop serving."""
        stop_server(self.server)

    def show(self, quantity: str | None = None, map_name: str | None = None) -> None:
        """Choose the quantity that colours show, and the map."""
        with self._lock:
            if quantity is not None:
                self.quantity = self._known(quantity, self.quantities, "quantity")
            if map_name is not None:
                self.map_name = self._known(map_name, self.data.map_names, "map")
            self.arrange() if map_name is not None and self.compared is None else self.paint()

    def compare(self, name: str | None) -> None:
        """Show one shape with all its maps side by side, or with None all shapes again."""
        with self._lock:
            found = {shape.name: shape for shape in self.data.shapes}
            self.compared = None if name is None else found[self._known(name, tuple(found), "shape")]
            self.arrange()

    def patch(self, angle: int, scale: int) -> None:
        """Choose the kernel to show, by the indices of its angle and scale."""
        with self._lock:
            self.angle, self.scale = angle, scale
            self.paint()

    def filter(self, channel: int, source: int | None = None) -> None:
        """Choose the filter to show: an output channel, and an input channel (None: that of the largest filter)."""
        with self._lock:
            if self.filters is not None:
                _, _, sources, channels = self.filters.shape
                if not (0 <= channel < channels and (source is None or 0 <= source < sources)):
                    raise InputError(f"Filters have outputs 0 to {channels - 1} and inputs 0 to {sources - 1}.")
                self.channel = channel
                self.source = strongest_input(self.filters, channel) if source is None else source
                self.paint()

    def show_directions(self, shown: bool) -> None:
        """Show or hide principal directions."""
        with self._lock:
            self.directions = shown
            self.scene.show_directions(shown)
            self.controls.update()

    def pick(self, name: str, vertex: int) -> None:
        """Pick a vertex of the shape of that name."""
        with self._lock:
            every = self._every()
            shape = every[self._known(name, tuple(every), "shape")]
            n = len(shape.surface.vertices)
            if not 0 <= vertex < n:
                raise InputError(f"{name} has vertices 0 to {n - 1}, not {vertex}.")
            self.picked = (shape, vertex)
            self.paint()

    def arrange(self) -> None:
        """Rebuild the scene and colour the shapes."""
        with self._lock, self.server.atomic():
            wanted: list[tuple[ViewShape, str, str]] = []
            if self.compared is not None:
                wanted += [(self.compared, m, f"{self.compared.name}: {m}") for m in self.data.map_names]
            else:
                wanted += [(shape, self.map_name, shape.name) for shape in self.data.shapes]
            if self.data.reference is not None:
                position = len(wanted) if self.data.reference_last else 0
                wanted.insert(position, (self.data.reference, "", self.data.reference.name))
            self.scene.arrange(wanted, self._clicked)
            self.paint()
            self.scene.show_directions(self.directions)

    def paint(self) -> None:
        """Colour all panels, and mark the picked vertex and its matches."""
        with self._lock, self.server.atomic():
            for panel in self.scene.panels:
                texture = panel.shape.texture if self.quantity == TEXTURE else None
                self.scene.paint(panel, self.colors(panel), texture)
                vertex = self.vertex_of(panel)
                here = panel.shape is self.picked[0]
                # a marker on the match would hide the probability there
                self.scene.mark(panel, vertex if here or self.quantity != SPREAD else None, here)
            self.controls.update()

    @property
    def color_scale(self) -> ColorScale | None:
        """The colour bar of the quantity shown; None where colours stand for no numbers."""
        return SCALES.get(self.quantity)

    def colors(self, panel: Panel) -> FloatArray:
        """(n, 3) colours of a panel, in 0..1."""
        shape, n = panel.shape, len(panel.vertices)
        plain = np.tile(_PLAIN, (n, 1))
        here = shape is self.picked[0]
        if self.quantity == MATCHES and self.data.reference is not None:
            colors = position_colors(self.data.reference.surface.vertices)
            matched = np.arange(n) if shape is self.data.reference else shape.maps[panel.map_name]
            return np.where((matched >= 0)[:, None], colors[matched], plain)
        if self.quantity == SPREAD:
            # the square root, so that low probabilities are visible beside a confident match
            return value_colors(np.sqrt(normalised(self.spread(panel))), "heat", 0.0, 1.0) if not here else plain
        if self.quantity == KERNEL and here:
            row = kernel_row(shape.patches, self.picked[1], self.angle, self.scale)
            return value_colors(normalised(row), "heat", 0.0, 1.0)
        if self.quantity == FILTER and here and self.filters is not None:
            row = filter_row(shape.patches, self.picked[1], self.filters[:, :, self.source, self.channel])
            most = float(np.abs(row).max()) or 1.0
            return value_colors(row / most, "diverging", -1.0, 1.0)
        if self.quantity == CONFIDENCE and shape.confidence is not None:
            return value_colors(1 - shape.confidence, "depth", 0.0, 1.0)
        if self.quantity == ERROR and shape.maps:
            # the ground truth has no error
            return value_colors(shape.errors.get(panel.map_name, np.zeros(n)), "heat", 0.0, HOTTEST)
        return plain

    def spread(self, panel: Panel) -> FloatArray:
        """(n,) probability of each vertex of a panel to match the picked vertex."""
        shape, (source, vertex) = panel.shape, self.picked
        if self.data.reference is None:
            return np.zeros(len(panel.vertices))
        if source is self.data.reference:
            known = shape.soft_map
            return spread_on_query(known, vertex) if known is not None else np.zeros(len(panel.vertices))
        if source.soft_map is None:
            return np.zeros(len(panel.vertices))
        spread = spread_on_reference(source.soft_map, vertex)
        if shape is self.data.reference:
            return spread
        return spread_onward(spread, self._to(shape, panel.map_name), len(panel.vertices))

    def vertex_of(self, panel: Panel) -> int | None:
        """The picked vertex on its own panel, its match on others; None if unknown."""
        source, vertex = self.picked
        if panel.shape is source:
            return vertex
        if self.data.reference is None:
            return None
        on_reference = vertex if source is self.data.reference else int(source.maps[self.map_name][vertex])
        if on_reference < 0:
            return None
        return (
            on_reference
            if panel.shape is self.data.reference
            else int(self._to(panel.shape, panel.map_name)[on_reference])
        )

    def _to(self, shape: ViewShape, map_name: str) -> Any:
        key = (id(shape), map_name)
        if key not in self._onward:
            self._onward[key] = self.data.onward(shape, map_name)
        return self._onward[key]

    def _clicked(self, panel: Panel, origin: Any, direction: Any) -> None:
        vertex = self.scene.vertex_at(panel, origin, direction)
        if vertex is not None:
            self.pick(panel.shape.name, vertex)

    def _every(self) -> dict[str, ViewShape]:
        first = () if self.data.reference is None else (self.data.reference,)
        return {shape.name: shape for shape in (*first, *self.data.shapes)}

    def _prominent(self, shape: ViewShape) -> int:
        """A vertex at the front of the shape, picked before the first click."""
        points = shape.surface.vertices @ self.scene.turn.T
        middle = np.abs(points[:, 0] - np.median(points[:, 0])) < 0.1 * np.ptp(points[:, 0])
        return int(np.where(middle, points[:, 2], -np.inf).argmax())

    @staticmethod
    def _known(name: str, names: tuple[str, ...], what: str) -> str:
        if name not in names:
            raise InputError(f"Unknown {what} '{name}': use one of {', '.join(names) or 'none'}.")
        return name


def quantities(data: ViewData) -> tuple[str, ...]:
    """Return the quantities that can be shown for these shapes."""
    found = []
    if data.map_names:
        found.append(MATCHES)
    if data.map_names and all(shape.soft_map is not None for shape in data.shapes):
        found.append(SPREAD)
    found.append(KERNEL)
    if data.run is not None:
        with contextlib.suppress(InputError):
            first_filters(data.run.model)
            found.append(FILTER)
    if data.map_names:
        found.append(CONFIDENCE)
    if data.shapes and all(shape.errors for shape in data.shapes):
        found.append(ERROR)
    if data.shapes and all(shape.texture is not None for shape in data.shapes):
        found.append(TEXTURE)
    return (*found, PLAIN)
