"""Match two meshes and look at the map: corresponding points have the same colour.

Before: acnn sample --out sample
"""

import acnn
from acnn.viewer import grid, position_colors, save_png

a, b = acnn.load("sample/A.ply"), acnn.load("sample/B.obj")
match = acnn.match(a, b)
print(f"{match.verdict}: vertex 0 of A is vertex {match.a_to_b[0]} of B, confidence {match.confidence[0]:.2f}")

colors = position_colors(b.vertices)
images = [acnn.render(a, colors=colors[match.a_to_b]), acnn.render(b, colors=colors)]
save_png(grid([images], [["A", "B"]]), "01_match_two_meshes.png")
