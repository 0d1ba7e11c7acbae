"""Match a point cloud, which has no triangles, to a mesh.

Before: acnn sample --out sample
"""

import acnn
from acnn.viewer import grid, position_colors, save_png

cloud, mesh = acnn.load("sample/cloud.xyz"), acnn.load("sample/B.obj")
print(cloud)  # from arrays: acnn.from_arrays(points)
match = acnn.match(cloud, mesh)
print(f"{match.verdict}, mean confidence {match.confidence.mean():.2f}")

colors = position_colors(mesh.vertices)
images = [acnn.render(cloud, colors=colors[match.a_to_b]), acnn.render(mesh, colors=colors)]
save_png(grid([images], [["point cloud", "mesh"]]), "05_point_clouds.png")
