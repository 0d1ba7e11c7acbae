"""Match a partial shape, in the units of the full one, by a partial functional map.

Before: acnn sample --out sample
"""

import acnn
from acnn.viewer import grid, position_colors, save_png

part, full = acnn.load("sample/A_part.ply"), acnn.load("sample/B.obj")
match = acnn.match(part, full)
print(f"{match.verdict}; refined by {match.report['refinement']['used']}")

colors = position_colors(full.vertices)
images = [acnn.render(part, colors=colors[match.a_to_b]), acnn.render(full, colors=colors)]
save_png(grid([images], [["partial shape", "full shape"]]), "06_partial_shapes.png")
