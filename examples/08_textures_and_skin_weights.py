"""Transfer what an animated character has to another one: its texture, and its skin weights.

Before: acnn sample --out sample
"""

from dataclasses import replace

import numpy as np

import acnn
from acnn.runs.demo import render_textured
from acnn.viewer import grid, save_png

a, b = acnn.load("sample/A.ply"), acnn.load("sample/B.obj")
match = acnn.match(a, b)
texture, _ = acnn.transfer_texture(a, b, match.points)
painted = replace(a, texture=texture)
acnn.save(painted, "08_A_painted.glb")  # opens in any glTF viewer

# Skin weights: one column for each bone, here the body parts of B, softened. Rows stay convex combinations.
parts = np.loadtxt("sample/B_labels.txt", dtype=int)
weights = np.eye(parts.max() + 1)[parts]
weights_of_a = match.points.interpolate(weights[b.faces])  # (n, bones), between the vertices of B
print(f"weights of A: {weights_of_a.shape}, rows sum to {weights_of_a.sum(axis=1).min():.6f} and more")
size = (300, 400)
images = [render_textured(b, size=size), render_textured(painted, size=size)]
images.append(acnn.render(a, values=weights_of_a[:, 3], vmin=0, vmax=1, size=size))
labels = ["B with its texture", "on A", "weights of a forearm"]
save_png(grid([images], [labels]), "08_textures_and_skin_weights.png")
