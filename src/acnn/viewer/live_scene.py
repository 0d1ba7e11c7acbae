"""Scene of the live viewer: shapes side by side, their colours, markers, lines and picking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.correspondence.soft_map import SoftMap
from acnn.patches.operator import PatchOperator
from acnn.shapes.formats.gltf import write_glb
from acnn.shapes.mesh import Mesh, Texture
from acnn.surface.surface import REFERENCE_LENGTH, Surface
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import to_linear
from acnn.viewer.live_guard import dropping
from acnn.viewer.view_data import ViewShape

HEIGHT = 2.0
"""Length of the geodesic diameter of the reference in the scene."""

GAP = 0.18
UPRIGHT = {
    "y": np.eye(3),
    "z": np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "x": np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]]),
}
"""Rotations that map the up axis of the shapes to y."""

LARGER, SMALLER = (214, 84, 44), (44, 108, 176)
MARK, MATCH = (20, 20, 24), (235, 60, 160)
_FIELD_OF_VIEW = 0.6


@dataclass(eq=False)
class Panel:
    """One shape in the scene.

    Attributes
    ----------
    shape : ViewShape
        The shape.
    map_name : str
        Name of the map shown.
    label : str
        Caption below it.
    vertices : (n, 3) array
        In coordinates of the scene.
    colors : (n, 3) array or None
        Current colours, in 0..1.
    texture : Texture or None
        The texture that is shown instead of them.
    node : Any
        Mesh of the scene, once painted.
    extras : dict[str, Any]
        Further nodes of the scene and the click handler, by name.
    """

    shape: ViewShape
    map_name: str
    label: str
    vertices: FloatArray
    colors: FloatArray | None = None
    texture: Texture | None = None
    node: Any = None
    extras: dict[str, Any] = field(default_factory=dict)


class Scene:
    """Panels of a viser server. `arrange` builds them, `paint` colours one, `mark` marks a vertex."""

    def __init__(self, server: Any, up: str = "y") -> None:
        self.server, self.turn = server, UPRIGHT[up]
        self.panels: list[Panel] = []
        server.scene.set_up_direction("+y")
        server.scene.world_axes.visible = False
        # The lights and environment of viser wash colours out; these add up to full light (pi) on the brighter side.
        server.scene.configure_environment_map(None)
        server.scene.configure_default_lights(False)
        server.scene.add_light_ambient("/lights/sky", intensity=1.3)
        server.scene.add_light_directional("/lights/key", intensity=1.6, position=(-2.0, 3.0, 4.0))
        server.scene.add_light_directional("/lights/fill", intensity=0.6, position=(4.0, 1.0, 1.0))
        server.scene.add_light_directional("/lights/back", intensity=1.4, position=(1.0, 2.0, -4.0))
        server.on_client_connect(self._fit_narrow)

    def arrange(
        self, wanted: Sequence[tuple[ViewShape, str, str]], on_click: Callable[[Panel, Any, Any], None]
    ) -> None:
        """Place shapes side by side, replacing the previous ones.

        Parameters
        ----------
        wanted : Sequence[tuple[ViewShape, str, str]]
            Shape, name of its map, and label.
        on_click : callable
            Called with the panel, and the origin and direction of the ray.
        """
        for panel in self.panels:
            self._remove(panel)
        placed = [(s.surface.vertices @ self.turn.T) * (HEIGHT / REFERENCE_LENGTH) for s, _, _ in wanted]
        sizes = [np.ptp(points, axis=0) for points in placed]
        left = -(sum(size[0] for size in sizes) + GAP * (len(sizes) - 1)) / 2
        self.panels = []
        for number, ((shape, map_name, label), points, size) in enumerate(zip(wanted, placed, sizes, strict=True)):
            low = points.min(axis=0)
            # standing on one floor, each centred in its strip
            points = points + [left - low[0], -low[1], -(low[2] + size[2] / 2)]
            panel = Panel(shape, map_name, label, points)
            panel.extras["caption"] = self.server.scene.add_label(
                f"/panel_{number}/caption", label, position=(left + size[0] / 2, -0.12, 0.0)
            )
            panel.extras["number"], panel.extras["on_click"] = number, on_click
            self.panels.append(panel)
            left += size[0] + GAP
        self._aim(sizes)

    def paint(self, panel: Panel, colors: FloatArray, texture: Texture | None = None) -> bool:
        """Set the colours of a panel, (n, 3) in 0..1, or its texture; return False if both are unchanged."""
        if panel.colors is not None and np.array_equal(panel.colors, colors) and panel.texture is texture:
            return False
        panel.colors, panel.texture = np.array(colors), texture
        data = _glb(panel, self.turn)
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
        """Mark a vertex with a sphere, dark if it was picked, else pink; None removes the marker."""
        old = panel.extras.pop("marker", None)
        if old is not None:
            old.remove()
        if vertex is not None:
            panel.extras["marker"] = self.server.scene.add_icosphere(
                f"/panel_{panel.extras['number']}/marker",
                radius=0.012,
                color=MARK if picked else MATCH,
                position=tuple(panel.vertices[vertex]),
                cast_shadow=False,
                receive_shadow=False,
            )

    def show_directions(self, shown: bool) -> None:
        """Show principal directions on every panel, red for the larger curvature, or remove them."""
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
        """Return the vertex of a panel nearest to the first hit of a ray, or None."""
        hit = vertex_on_ray(panel.vertices, panel.shape.surface.faces, origin, direction)
        return None if hit is None else hit[0]

    def _aim(self, sizes: Sequence[NDArray[Any]]) -> None:
        width = sum(size[0] for size in sizes) + GAP * (len(sizes) - 1)
        height = max(size[1] for size in sizes)
        # fits a window about as wide as high beside the control panel
        distance = 0.58 * max(height, 0.8 * width) / np.tan(_FIELD_OF_VIEW / 2) + max(size[2] for size in sizes) / 2
        camera = self.server.initial_camera
        camera.fov = _FIELD_OF_VIEW
        camera.look_at = (0.0, height / 2, 0.0)
        camera.position = (0.0, height / 2 + 0.1 * distance, distance)

    def _fit_narrow(self, client: Any) -> None:
        """Step back from a window that is higher than wide, and show the shapes above the controls at its bottom."""
        aspect = client.camera.aspect
        if aspect >= 1:
            return
        camera = self.server.initial_camera
        back = np.subtract(camera.position, camera.look_at) / aspect
        below = np.array([0.0, 0.25 * 2 * np.tan(camera.fov / 2) * back[2], 0.0])
        client.camera.position = camera.look_at - below + back
        client.camera.look_at = camera.look_at - below

    def _remove(self, panel: Panel) -> None:
        for name in ("caption", "marker", "larger", "smaller"):
            old = panel.extras.pop(name, None)
            if old is not None:
                old.remove()
        if panel.node is not None:
            panel.node.remove()


def spread_on_reference(soft_map: SoftMap, vertex: int) -> FloatArray:
    """(m,) probability f(x, .) of every reference vertex for one query vertex; 0 beyond the stored top k."""
    spread = np.zeros(soft_map.reference_size)
    np.add.at(spread, soft_map.vertices[vertex], soft_map.probabilities[vertex])
    return spread


def spread_on_query(soft_map: SoftMap, reference_vertex: int) -> FloatArray:
    """(n,) probability f(., y) that each query vertex assigns to one reference vertex."""
    return np.where(soft_map.vertices == reference_vertex, soft_map.probabilities, 0.0).sum(axis=1)


def spread_onward(spread: FloatArray, reference_to_target: IntArray, target_size: int) -> FloatArray:
    """(target vertices,) distribution over the reference, transferred to another shape; probabilities are summed."""
    return np.bincount(reference_to_target, weights=spread, minlength=target_size).astype(float)


def kernel_row(patches: PatchOperator, vertex: int, angle: int, scale: int) -> FloatArray:
    """(n,) density of the kernel of one vertex: weights over vertex areas, for the indices of an angle and a scale."""
    s = patches.settings
    if scale in patches.narrow:
        block = angle * len(patches.narrow) + patches.narrow.index(scale)
        part = slice(*patches.start[block * patches.n + vertex : block * patches.n + vertex + 2])
        row = np.zeros(patches.n)
        row[patches.vertices[part].astype(np.int64)] = patches.values[part]
        return row / patches.vertex_areas
    basis = patches.eigenfunctions[angle]
    return (np.exp(-s.scales[scale] * patches.eigenvalues[angle]) * basis[vertex]) @ basis.T


def filter_row(patches: PatchOperator, vertex: int, weights: ArrayLike) -> FloatArray:
    """Density of a filter on the surface, centred at one vertex: sum over theta, t of a(theta, t) w(theta, t).

    Parameters
    ----------
    patches : PatchOperator
        Kernels w(theta, t).
    vertex : int
        Centre of the filter.
    weights : (angles, scales) array
        a(theta, t).

    Returns
    -------
    (n,) array
    """
    table = np.asarray(weights)
    row = np.zeros(patches.n)
    for angle, scale in np.ndindex(*table.shape):
        row += table[angle, scale] * kernel_row(patches, vertex, angle, scale)
    return row


def direction_ribbons(surface: Surface, frames: FloatArray, count: int = 3000) -> tuple[FloatArray, FloatArray]:
    """Narrow quads along both principal directions of some faces, slightly above the surface.

    Parameters
    ----------
    surface : Surface
        A surface.
    frames : (faces, 2, 3) array
        Principal directions, as of `principal_frames`.
    count : int
        Largest number of faces.

    Returns
    -------
    tuple[(k, 4, 3) array, (k, 4, 3) array]
        Corners in coordinates of the surface, in order around each quad: along the larger curvature, and along the
        smaller.
    """
    chosen = np.arange(0, len(surface.faces), max(1, -(-len(surface.faces) // count)))
    above = 0.15 * surface.mean_edge * surface.face_normals[chosen]
    middle = surface.vertices[surface.faces[chosen]].mean(axis=1) + above
    spacing = surface.mean_edge * np.sqrt(len(surface.faces) / len(chosen))
    larger, smaller = (_quads(middle, spacing * frames[chosen, i], spacing * frames[chosen, 1 - i]) for i in (0, 1))
    return larger, smaller


def vertex_on_ray(
    vertices: FloatArray, faces: IntArray, origin: ArrayLike, direction: ArrayLike
) -> tuple[int, float] | None:
    """Intersect a ray with a mesh (Moller and Trumbore 1997).

    Parameters
    ----------
    vertices : (n, 3) array
        Vertex positions.
    faces : (m, 3) array
        Vertex indices.
    origin, direction : (3,) array
        The ray, in the same coordinates.

    Returns
    -------
    tuple[int, float] or None
        The vertex nearest to the first intersection, and its distance in lengths of `direction`; None if there is none.
    """
    start, along = np.asarray(origin, np.float64), np.asarray(direction, np.float64)
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    ab, ac = b - a, c - a
    cross = np.cross(along, ac)
    volume = np.einsum("ij,ij->i", ab, cross)
    safe = np.where(np.abs(volume) > 1e-300, volume, np.inf)  # faces seen edge-on are ignored
    offset = start - a
    u = np.einsum("ij,ij->i", offset, cross) / safe
    turned = np.cross(offset, ab)
    v = turned @ along / safe
    distance = np.einsum("ij,ij->i", ac, turned) / safe
    slack = 1e-9
    hit = np.isfinite(safe) & (u >= -slack) & (v >= -slack) & (u + v <= 1 + slack) & (distance > 0)
    if not hit.any():
        return None
    face = int(np.where(hit, distance, np.inf).argmin())
    point = start + distance[face] * along
    corner = np.linalg.norm(vertices[faces[face]] - point, axis=1).argmin()
    return int(faces[face, corner]), float(distance[face])


def normalised(values: FloatArray) -> NDArray[np.float64]:
    """Divide values by the largest one and clip to 0..1; all 0 if none is positive."""
    most = float(values.max(initial=0.0))
    return np.clip(values / most, 0.0, 1.0) if most > 0 else np.zeros(len(values))


def _glb(panel: Panel, turn: NDArray[Any]) -> bytes:
    """Encode a coloured or textured mesh with smooth normals as GLB, whose colours are linear RGB."""
    surface, colors = panel.shape.surface, None
    if panel.texture is None:
        assert panel.colors is not None
        light = np.concatenate([to_linear(panel.colors), np.ones((len(panel.colors), 1))], axis=1)
        colors = np.rint(255 * light).astype(np.uint8)
    mesh = Mesh(panel.vertices, surface.faces, colors=colors, texture=panel.texture)
    return write_glb(mesh, normals=surface.normals @ turn.T)


def _quads(middle: FloatArray, along: FloatArray, across: FloatArray) -> FloatArray:
    long, wide = 0.38 * along, 0.035 * across
    return np.stack([middle - long - wide, middle + long - wide, middle + long + wide, middle - long + wide], axis=1)
