"""Put a template onto a shape: its vertex order and texture stay, its surface becomes that of the shape.

Before: acnn sample --out sample
"""

import acnn
from acnn.viewer import grid, save_png

template, shape = acnn.load("sample/shapes/human_00.ply"), acnn.load("sample/A.ply")
registered = acnn.register(template, shape)
fitted = acnn.Mesh(registered.fit.vertices, template.faces)
height = shape.vertices[:, 1].max() - shape.vertices[:, 1].min()
print(f"mean distance to the surface: {registered.fit.residuals.mean() / height:.2%} of the height")
images = [acnn.render(one, size=(300, 400)) for one in (template, shape, fitted)]
save_png(grid([images], [["template", "shape", "registered"]]), "09_registration.png")
