"""Train a network on descriptors of one's own: files beside the shapes, one row for every vertex.

Before: acnn sample --out sample
"""

import shutil
from pathlib import Path

import numpy as np

import acnn
from acnn.descriptors import wks_of
from acnn.viewer import grid, position_colors, save_png

folder = Path("04_shapes")
shutil.copytree("sample/shapes", folder, dirs_exist_ok=True)
for path in sorted(folder.glob("*.ply")):
    mesh = acnn.load(path)
    curvatures = acnn.principal_curvatures(mesh.vertices, mesh.faces)
    shot = acnn.shot_descriptors(mesh.vertices, mesh.faces, radius=0.2)
    np.save(path.with_suffix(".npy"), np.hstack([shot, wks_of(mesh, 20), curvatures]).astype(np.float32))

config = acnn.preset_config("quick").with_changes({"kinds": "file", "angles": 4, "epochs": 12})
acnn.train_run(folder, "04_run", config, train_list="0-6", resume=True)
run = acnn.open_run("04_run")
mesh = acnn.load(folder / "human_07.ply")  # not trained on
found = acnn.match_shape(mesh, run)
print(f"{found.verdict}, mean confidence {found.confidence.mean():.2f}")
colors = position_colors(run.reference.vertices)
images = [acnn.render(run.reference, colors=colors), acnn.render(mesh, colors=colors[found.query_to_reference])]
save_png(grid([images], [["reference", "unseen shape, matched to it"]]), "04_own_descriptor.png")
