"""Meshes of surfaces whose geometry is known in closed form."""

from pathlib import Path

import numpy as np

from acnn.shapes import Mesh, save


def sphere(subdivisions: int) -> Mesh:
    """Unit sphere from an icosahedron: 10 * 4^subdivisions + 2 vertices."""
    golden = (1 + 5**0.5) / 2
    corners = [(-1, golden, 0), (1, golden, 0), (-1, -golden, 0), (1, -golden, 0)]
    vertices = np.array(corners + [(c, a, b) for a, b, c in corners] + [(b, c, a) for a, b, c in corners], dtype=float)
    from scipy.spatial import ConvexHull

    faces = ConvexHull(vertices).simplices
    for _ in range(subdivisions):
        finer = subdivided(Mesh(vertices, faces))
        vertices, faces = finer.vertices, finer.faces
    vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
    inward = np.einsum("ij,ij->i", _normals(vertices, faces), vertices[faces].mean(axis=1)) < 0
    faces[inward] = faces[inward][:, [0, 2, 1]]
    return Mesh(vertices, faces.astype(np.int32))


def subdivided(mesh: Mesh) -> Mesh:
    """Each triangle cut into four at the middles of its sides."""
    edges = np.sort(mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    unique, inverse = np.unique(edges, axis=0, return_inverse=True)
    ab, bc, ca = (inverse.reshape(-1, 3) + len(mesh.vertices)).T
    a, b, c = mesh.faces.T
    faces = np.concatenate([np.stack(t, 1) for t in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))])
    return Mesh(np.vstack([mesh.vertices, mesh.vertices[unique].mean(axis=1)]), faces.astype(np.int32))


def grid(side: int, jitter: float = 0.0, seed: int = 0) -> Mesh:
    """Flat square of side x side vertices one apart, normals along z, inner vertices moved by up to `jitter`.

    All diagonals run the same way, so that without jitter every inner vertex has the same six triangles and second
    moments of heat kernels come out exactly.
    """
    x, y = np.meshgrid(np.arange(side, dtype=float), np.arange(side, dtype=float), indexing="ij")
    inner = (x > 0) & (x < side - 1) & (y > 0) & (y < side - 1)
    rng = np.random.default_rng(seed)
    x, y = (c + jitter * rng.uniform(-1, 1, c.shape) * inner for c in (x, y))
    vertices = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    a, b, c, d = corner, corner + side, corner + side + 1, corner + 1
    return Mesh(vertices, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32))


def cylinder(around: int = 48, along: int = 60) -> Mesh:
    """Open cylinder of radius 1 about the z axis, outward normals."""
    height = 2 * np.pi / around * along * 3**0.5 / 2
    k, i = np.meshgrid(np.arange(along), np.arange(around), indexing="ij")
    angle = (i + 0.5 * (k % 2)) * 2 * np.pi / around
    vertices = np.stack([np.cos(angle), np.sin(angle), k * height / (along - 1)], axis=-1).reshape(-1, 3)
    here, right = k[:-1] * around + i[:-1], k[:-1] * around + (i[:-1] + 1) % around
    above, above_right = here + around, right + around
    even = (k[:-1] % 2 == 0)[..., None]
    first = np.where(even, np.stack([here, right, above], -1), np.stack([here, above_right, above], -1))
    second = np.where(even, np.stack([right, above_right, above], -1), np.stack([here, right, above_right], -1))
    return Mesh(vertices, np.concatenate([first.reshape(-1, 3), second.reshape(-1, 3)]).astype(np.int32))


def torus(around: int = 100, across: int = 42, tube: float = 0.4, jitter: float = 0.3) -> tuple[Mesh, np.ndarray]:
    """Torus of radius 1 and its meridian directions (n, 3), along which it curves most (signed)."""
    rng = np.random.default_rng(0)
    i, j = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    u = (i + jitter * rng.uniform(-0.5, 0.5, i.shape)) * 2 * np.pi / around
    v = (j + jitter * rng.uniform(-0.5, 0.5, i.shape)) * 2 * np.pi / across
    ring = 1 + tube * np.cos(v)
    vertices = np.stack([ring * np.cos(u), ring * np.sin(u), tube * np.sin(v)], -1).reshape(-1, 3)
    meridians = np.stack([-np.sin(v) * np.cos(u), -np.sin(v) * np.sin(u), np.cos(v)], -1).reshape(-1, 3)

    def at(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a % around) * across + b % across

    a, b = i.ravel(), j.ravel()
    corners = at(a, b), at(a + 1, b), at(a + 1, b + 1), at(a, b + 1)
    faces = np.concatenate([np.stack(corners[:3], 1), np.stack([corners[0], corners[2], corners[3]], 1)])
    return Mesh(vertices, faces.astype(np.int32)), meridians


def bumpy(subdivisions: int = 3) -> Mesh:
    """A closed shape without symmetry, whose curvatures differ nearly everywhere."""
    mesh = sphere(subdivisions)
    x, y, z = mesh.vertices.T
    radius = 1 + 0.25 * np.sin(2 * x + 1) * np.cos(3 * y) + 0.2 * z * y + 0.1 * np.sin(4 * z + x)
    return Mesh(mesh.vertices * radius[:, None] * [1.0, 0.7, 1.4], mesh.faces)


def random_sphere(n: int, seed: int) -> Mesh:
    """Unit sphere over random points: a closed mesh of irregular valences."""
    from scipy.spatial import ConvexHull

    vertices = np.random.default_rng(seed).normal(size=(n, 3))
    vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
    faces = ConvexHull(vertices).simplices
    inward = np.einsum("ij,ij->i", _normals(vertices, faces), vertices[faces].mean(axis=1)) < 0
    faces[inward] = faces[inward][:, ::-1]
    return Mesh(vertices, faces.astype(np.int32))


def write_bumps(folder: Path, count: int) -> Path:
    """A folder with shapes of one triangulation, stretched and turned: bump_0.ply, bump_1.ply, ..."""
    folder.mkdir()
    mesh = bumpy(2)
    for i in range(count):
        save(Mesh(mesh.vertices * [1, 1 + 0.1 * i, 1] @ rotation(i).T, mesh.faces), folder / f"bump_{i}.ply")
    return folder


def rotation(seed: int) -> np.ndarray:
    """A random rotation matrix."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def permuted(mesh: Mesh, seed: int) -> tuple[Mesh, np.ndarray]:
    """The mesh with vertices and faces in another order; vertex i became vertex place[i]."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(mesh.vertices))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    faces = place[mesh.faces][rng.permutation(len(mesh.faces))]
    return Mesh(mesh.vertices[order], faces.astype(np.int32)), place


def _normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)
