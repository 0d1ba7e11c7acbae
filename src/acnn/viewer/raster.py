"""Compiled loops of the renderer: rasterisation, interpolation, occlusion and shading.

Pixel (row, column) has its centre at x = column + 0.5, y = row + 0.5; x grows to the right, y downwards and depth away
from the camera. Import this module only for rendering: it loads numba.
Loops run on one thread: an image takes tenths of a second, and loops on several take seconds longer to compile.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled

Array = NDArray[np.float64]
_EMPTY = -1


@compiled()
def draw_triangles(screen: Array, faces: NDArray[np.int32], height: int, width: int):  # type: ignore[no-untyped-def]
    """Find the nearest triangle of every pixel and the barycentric weights there.

    Parameters
    ----------
    screen : Array
        (n, 4) x, y in pixels, depth, and w (distance from the camera plane; 1 for a parallel projection).
    faces : (m, 3) array
        Vertex indices.
    height, width : int
        Size of the image.

    Returns
    -------
    tuple
        Face (height, width) int32, -1 for background; bary (height, width, 2) float32, perspective-correct weights of
        the second and third corner; depth (height, width) float64, infinite for background.
    """
    face = np.full((height, width), _EMPTY, np.int32)
    bary = np.zeros((height, width, 2), np.float32)
    depth = np.full((height, width), np.inf)
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        ax, ay, bx, by, cx, cy = screen[a, 0], screen[a, 1], screen[b, 0], screen[b, 1], screen[c, 0], screen[c, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0.0 or not math.isfinite(area):
            continue
        first_column = max(0, math.ceil(min(ax, bx, cx) - 0.5))
        last_column = min(width - 1, math.floor(max(ax, bx, cx) - 0.5))
        first_row = max(0, math.ceil(min(ay, by, cy) - 0.5))
        last_row = min(height - 1, math.floor(max(ay, by, cy) - 0.5))
        for row in range(first_row, last_row + 1):
            y = row + 0.5
            for column in range(first_column, last_column + 1):
                x = column + 0.5
                u = ((x - ax) * (cy - ay) - (y - ay) * (cx - ax)) / area
                v = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / area
                if u < 0.0 or v < 0.0 or u + v > 1.0:
                    continue
                # 1/w is linear on the screen, so the weights are divided by w before use
                wa, wb, wc = (1.0 - u - v) / screen[a, 3], u / screen[b, 3], v / screen[c, 3]
                total = wa + wb + wc
                z = (wa * screen[a, 2] + wb * screen[b, 2] + wc * screen[c, 2]) / total
                if z < depth[row, column]:
                    depth[row, column] = z
                    face[row, column] = f
                    bary[row, column, 0] = wb / total
                    bary[row, column, 1] = wc / total
    return face, bary, depth


@compiled()
def draw_discs(screen: Array, radii: Array, bulge: Array, height: int, width: int):  # type: ignore[no-untyped-def]
    """Find the nearest sphere of every pixel; each is drawn as a disc with the depth of the sphere.

    Parameters
    ----------
    screen : Array
        (n, 4) as for `draw_triangles`.
    radii : Array
        (n,) in pixels.
    bulge : Array
        (n,) radius in units of depth.
    height, width : int
        Size of the image.

    Returns
    -------
    tuple
        Point (height, width) int32, -1 for background; normal (height, width, 3) float32 (x right, y up, z to the
        camera); depth (height, width) float64.
    """
    point = np.full((height, width), _EMPTY, np.int32)
    normal = np.zeros((height, width, 3), np.float32)
    depth = np.full((height, width), np.inf)
    for p in range(len(screen)):
        x, y, r = screen[p, 0], screen[p, 1], radii[p]
        for row in range(max(0, math.ceil(y - r - 0.5)), min(height - 1, math.floor(y + r - 0.5)) + 1):
            for column in range(max(0, math.ceil(x - r - 0.5)), min(width - 1, math.floor(x + r - 0.5)) + 1):
                dx, dy = (column + 0.5 - x) / r, (row + 0.5 - y) / r
                inside = 1.0 - dx * dx - dy * dy
                if inside < 0.0:
                    continue
                z = screen[p, 2] - bulge[p] * math.sqrt(inside)
                if z < depth[row, column]:
                    depth[row, column] = z
                    point[row, column] = p
                    normal[row, column, 0] = dx
                    normal[row, column, 1] = -dy
                    normal[row, column, 2] = math.sqrt(inside)
    return point, normal, depth


@compiled()
def interpolate(face, bary, faces, attribute):  # type: ignore[no-untyped-def]
    """Interpolate a vertex attribute (n, c) at the pixels: (height, width, c) float32, 0 for background."""
    height, width = face.shape
    channels = attribute.shape[1]
    out = np.zeros((height, width, channels), np.float32)
    for row in range(height):
        for column in range(width):
            f = face[row, column]
            if f == _EMPTY:
                continue
            v, w = bary[row, column, 0], bary[row, column, 1]
            for k in range(channels):
                out[row, column, k] = (
                    (1.0 - v - w) * attribute[faces[f, 0], k]
                    + v * attribute[faces[f, 1], k]
                    + w * attribute[faces[f, 2], k]
                )
    return out


@compiled()
def occlusion(depth, normal, pixel, reach, directions):  # type: ignore[no-untyped-def]
    """Ambient occlusion: fraction of the ambient light that reaches each pixel, from the depths near it.

    Parameters
    ----------
    depth : (height, width) array
        Infinite for background.
    normal : (height, width, 3) array
        Unit normals, z to the camera.
    pixel : float
        Size of a pixel in units of depth.
    reach : float
        Radius in pixels.
    directions : (16, k, 2) array
        Offsets within the unit disc, one set for each position in a 4 x 4 tile of pixels: the pattern differs between
        neighbouring pixels and vanishes when the image is averaged.

    Returns
    -------
    (height, width) array
        float32 in 0..1.
    """
    height, width = depth.shape
    light = np.ones((height, width), np.float32)
    count = directions.shape[1]
    for row in range(height):
        for column in range(width):
            z = depth[row, column]
            if not math.isfinite(z):
                continue
            nx, ny, nz = normal[row, column, 0], normal[row, column, 1], normal[row, column, 2]
            tile = (row % 4) * 4 + column % 4
            blocked = 0.0
            for k in range(count):
                dx = round(directions[tile, k, 0] * reach)
                dy = round(directions[tile, k, 1] * reach)
                i, j = row + dy, column + dx
                if i < 0 or j < 0 or i >= height or j >= width or not math.isfinite(depth[i, j]):
                    continue
                vx, vy, vz = dx * pixel, -dy * pixel, z - depth[i, j]
                length = math.sqrt(vx * vx + vy * vy + vz * vz) + 1e-12
                cosine = (vx * nx + vy * ny + vz * nz) / length
                # occluders beyond the radius belong to another region of the shape and fade out
                ratio = length / (reach * pixel)
                blocked += max(0.0, cosine - 0.12) / (1.0 + ratio**4)
            light[row, column] = max(0.0, 1.0 - 1.7 * blocked / count)
    return light


@compiled()
def shade(base, normal, reaching, lights, ambient, gloss):  # type: ignore[no-untyped-def]
    """Shade each pixel: ambient light that is brighter above, soft lights, and a faint highlight of the first one.

    Parameters
    ----------
    base : (height, width, 3) array
        Linear RGB.
    normal : (height, width, 3) array
        Unit normals.
    reaching : (height, width) array
        Of `occlusion`.
    lights : (k, 5) array
        Unit direction, strength, wrap (0: hard light, 1: light reaches the far side).
    ambient : (2,) array
        Strength from below and from above.
    gloss : float
        Strength of the highlight.

    Returns
    -------
    (height, width, 3) array
        Linear RGB, float32.
    """
    height, width = reaching.shape
    out = np.empty((height, width, 3), np.float32)
    hx, hy, hz = lights[0, 0], lights[0, 1], lights[0, 2] + 1.0
    norm = math.sqrt(hx * hx + hy * hy + hz * hz)
    for row in range(height):
        for column in range(width):
            nx, ny, nz = normal[row, column, 0], normal[row, column, 1], normal[row, column, 2]
            open_sky = reaching[row, column]
            total = (ambient[0] + (ambient[1] - ambient[0]) * 0.5 * (1.0 + ny)) * open_sky
            for k in range(len(lights)):
                cosine = nx * lights[k, 0] + ny * lights[k, 1] + nz * lights[k, 2]
                wrapped = max(0.0, (cosine + lights[k, 4]) / (1.0 + lights[k, 4]))
                total += lights[k, 3] * wrapped * (0.4 + 0.6 * open_sky)
            shine = gloss * max(0.0, (nx * hx + ny * hy + nz * hz) / norm) ** 40 * open_sky
            for c in range(3):
                out[row, column, c] = base[row, column, c] * total + shine
    return out
