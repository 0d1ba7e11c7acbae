"""How a population varies: mean, principal modes, and whether two groups differ."""

import numpy as np

import acnn
from acnn.viewer import grid, save_png

bones = acnn.make_family("bone", count=24, vertices=600, seed=0)  # vertex i is the same point on every shape
thick = bones.vertices.copy()
thick[12:, :, :2] *= 1.08  # the second half is thicker
statistics = acnn.shape_statistics(thick, groups=["thin"] * 12 + ["thick"] * 12, modes=3, permutations=499)
print(f"the modes explain {np.round(100 * statistics.explained_variance).astype(int)} % of the variance")
print(f"groups differ: p = {statistics.groups.p_value:.3f}")
shapes = [acnn.Mesh(statistics.shape([sd]), bones.faces) for sd in (-3.0, 0.0, 3.0)]
images = [acnn.render(shape, size=(200, 400)) for shape in shapes]
save_png(grid([images], [["-3 sd", "mean", "+3 sd"]]), "10_statistics.png")
