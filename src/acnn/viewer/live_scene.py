"""The live viewer's scene: shapes side by side, painted, with markers and lines on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.pipeline.view_data import ViewShape
from acnn.shapes.shape import FloatArray
from acnn.surface import REFERENCE_LENGTH
from acnn.viewer.colors import to_linear
from acnn.viewer.live_guard import dropping
from acnn.viewer.live_quantities import direction_ribbons, vertex_on_ray

HEIGHT = 2.0
"""Length of the reference's geodesic diameter in the scene."""

GAP = 0.18
UPRIGHT = {
    "y": np.eye(3),
    "z": np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "x": np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]]),
}
"""Turns that bring the shapes' axis up onto y."""

LARGER, SMALLER = (214, 84, 44), (44, 108, 176)
MARK, MATCH = (20, 20, 24), (235, 60, 160)
_OPENING = 0.6


@dataclass(eq=False)
class Panel:
    """One shape in the scene.

    - shape: what is shown; map_name: the map it is seen through; label: below it
    - vertices: (n, 3) in the scene's coordinates
    - colors: (n, 3) in 0..1, as painted last
    """

    shape: ViewShape
    map_name: str
    label: str
    vertices: FloatArray
    colors: FloatArray | None = None
    node: Any = None
    extras: dict[str, Any] = field(default_factory=dict)


class Scene:
    """Panels of a viser server. `arrange` sets shapes up, `paint` colours one, `mark` puts balls on vertices."""

    def __init__(self, server: Any, up: str = "y") -> None:
        self.server, self.turn = server, UPRIGHT[up]
        self.panels: list[Panel] = []
        server.scene.set_up_direction("+y")
        server.scene.world_axes.visible = False
        # viser's own lights and surroundings together wash colours out; these add up to full light and no more.
        server.scene.configure_environment_map(None)
        server.scene.configure_default_lights(False)
        server.scene.add_light_ambient("/lights/sky", intensity=1.5)
        server.scene.add_light_directional("/lights/key", intensity=2.6, position=(-2.0, 3.0, 4.0))
        server.scene.add_light_directional("/lights/fill", intensity=0.9, position=(4.0, 1.0, 1.0))

    def arrange(
        self, wanted: Sequence[tuple[ViewShape, str, str]], on_click: Callable[[Panel, Any, Any], None]
    ) -> None:
        """Set shapes side by side, as (shape, name of its map, label); what was there before goes.

        - on_click: called with the panel, and the origin and direction of the ray
        """
        for panel in self.panels:
            self._remove(panel)
        placed = [(s.surface.vertices @ self.turn.T) * (HEIGHT / REFERENCE_LENGTH) for s, _, _ in wanted]
        sizes = [np.ptp(points, axis=0) for points in placed]
        left = -(sum(size[0] for size in sizes) + GAP * (len(sizes) - 1)) / 2
        self.panels = []
        for number, ((shape, map_name, label), points, size) in enumerate(zip(wanted, placed, sizes, strict=True)):
            low = points.min(axis=0)
            # feet on one floor, each in the middle of its strip
            points = points + [left - low[0], -low[1], -(low[2] + size[2] / 2)]
            panel = Panel(shape, map_name, label, points)
            panel.extras["caption"] = self.server.scene.add_label(
                f"/panel_{number}/caption", label, position=(left + size[0] / 2, -0.12, 0.0)
            )
            panel.extras["number"], panel.extras["on_click"] = number, on_click
            self.panels.append(panel)
            left += size[0] + GAP
        self._aim(sizes)

    def paint(self, panel: Panel, colors: FloatArray) -> bool:
        """Give a panel colours (n, 3) in 0..1; False where they are those it has."""
        if panel.colors is not None and np.array_equal(panel.colors, colors):
            return False
        panel.colors = np.array(colors)
        data = _glb(panel.vertices, panel.shape.surface, colors, self.turn)
        if panel.node is not None:
            panel.node.glb_data = data
            return True
        panel.node = self.server.scene.add_glb(
            f"/panel_{panel.extras['number']}/shape", data, cast_shadow=False, receive_shadow=False
        )

        def clicked(event: Any) -> None:
            panel.extras["on_click"](panel, event.ray_origin, event.ray_direction)

        panel.node.on_click(dropping(self.server, clicked))
        return True

    def mark(self, panel: Panel, vertex: int | None, picked: bool) -> None:
        """Put a ball on a vertex: dark where it was picked, else pink; None takes it away."""
        old = panel.extras.pop("ball", None)
        if old is not None:
            old.remove()
        if vertex is not None:
            panel.extras["ball"] = self.server.scene.add_icosphere(
                f"/panel_{panel.extras['number']}/ball",
                radius=0.012,
                color=MARK if picked else MATCH,
                position=tuple(panel.vertices[vertex]),
                cast_shadow=False,
                receive_shadow=False,
            )

    def show_directions(self, shown: bool) -> None:
        """Draw principal directions on every panel, or take them away: red for the larger curvature."""
        for panel in self.panels:
            for name in ("larger", "smaller"):
                old = panel.extras.pop(name, None)
                if old is not None:
                    old.remove()
            if not shown:
                continue
            surface = panel.shape.surface
            ribbons = direction_ribbons(surface, panel.shape.directions)
            shift = panel.vertices[0] - (surface.vertices[0] @ self.turn.T) * (HEIGHT / REFERENCE_LENGTH)
            for name, corners, color in zip(("larger", "smaller"), ribbons, (LARGER, SMALLER), strict=True):
                first = 4 * np.arange(len(corners))[:, None]
                panel.extras[name] = self.server.scene.add_mesh_simple(
                    f"/panel_{panel.extras['number']}/{name}",
                    ((corners.reshape(-1, 3) @ self.turn.T) * (HEIGHT / REFERENCE_LENGTH) + shift),
                    np.concatenate([first + [0, 1, 2], first + [0, 2, 3]]),
                    color=color,
                    side="double",
                    cast_shadow=False,
                    receive_shadow=False,
                )

    def vertex_at(self, panel: Panel, origin: Any, direction: Any) -> int | None:
        """The vertex of a panel that a ray meets first, or None."""
        hit = vertex_on_ray(panel.vertices, panel.shape.surface.faces, origin, direction)
        return None if hit is None else hit[0]

    def _aim(self, sizes: Sequence[NDArray[Any]]) -> None:
        width = sum(size[0] for size in sizes) + GAP * (len(sizes) - 1)
        height = max(size[1] for size in sizes)
        # as for a window about as wide as high beside the panel of controls
        distance = 0.58 * max(height, 0.8 * width) / np.tan(_OPENING / 2) + max(size[2] for size in sizes) / 2
        camera = self.server.initial_camera
        camera.fov = _OPENING
        camera.look_at = (0.0, height / 2, 0.0)
        camera.position = (0.0, height / 2 + 0.1 * distance, distance)

    def _remove(self, panel: Panel) -> None:
        for name in ("caption", "ball", "larger", "smaller"):
            old = panel.extras.pop(name, None)
            if old is not None:
                old.remove()
        if panel.node is not None:
            panel.node.remove()


def _glb(vertices: FloatArray, surface: Any, colors: FloatArray, turn: NDArray[Any]) -> bytes:
    """A painted mesh with smooth normals as GLB, whose colours are amounts of light."""
    import trimesh

    light = np.concatenate([to_linear(colors), np.ones((len(colors), 1))], axis=1)
    mesh = trimesh.Trimesh(
        vertices,
        surface.faces,
        vertex_normals=surface.normals @ turn.T,
        vertex_colors=np.rint(255 * light).astype(np.uint8),
        process=False,
    )
    data: bytes = trimesh.Scene([mesh]).export(file_type="glb", include_normals=True)
    return data
