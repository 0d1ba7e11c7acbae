"""Laplacians, kernels, geodesics and eigenfunctions of plain arrays, in the coordinates that they are given.

Before: acnn sample --out sample
"""

import numpy as np

import acnn
from acnn.viewer import grid, save_png

mesh = acnn.load("sample/shapes/human_00.ply")
v, f = mesh.vertices, mesh.faces  # any (n, 3) and (m, 3) arrays

L, M = acnn.anisotropic_laplacian(v, f, alpha=100, theta=0.3)
print(f"stiffness {L.shape}, {L.nnz} entries; rows sum to {abs(L.sum(axis=1)).max():.1e}")

height = np.ptp(v[:, 1])
chest = int(np.argmin(np.abs(v[:, 1] - v[:, 1].min() - 0.72 * height) + np.abs(v[:, 0]) - 2 * v[:, 2]))
kernel = acnn.heat_kernel_rows(v, f, t=0.02, rows=[chest], alpha=100, theta=0.0)[0]
distances = acnn.geodesic_distances(v, f, sources=[chest])[0]
eigenvalues, eigenfunctions = acnn.eigenpairs(v, f, k=4)
values = {"anisotropic kernel": kernel.clip(0), "distance": distances, "third eigenfunction": eigenfunctions[:, 2]}
images = [acnn.render(mesh, values=value, size=(300, 400)) for value in values.values()]
save_png(grid([images], [list(values)]), "02_operators_on_arrays.png")
