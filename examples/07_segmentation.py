"""Train a network that labels the parts of shapes, and label one.

Before: acnn sample --out sample
"""

import numpy as np

import acnn
from acnn.viewer import grid, save_png

config = acnn.preset_config("segmentation").with_changes({"steps": 60, "remeshed": 0})
acnn.train_run("sample/shapes", "07_run", config, resume=True)  # a minute; real trainings take longer
run = acnn.open_run("07_run")
mesh = acnn.load("sample/shapes/human_00.ply")
labelled = acnn.segment_shape(mesh, run)
truth = np.loadtxt("sample/shapes/classes.txt", dtype=int)
print(f"{(labelled.classes == truth).mean():.0%} of the vertices of a training shape are right")
images = [acnn.render(mesh, values=values, cmap="tab20") for values in (labelled.classes, truth)]
save_png(grid([images], [["network", "ground truth"]]), "07_segmentation.png")
