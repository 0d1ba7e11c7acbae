"""Train a network that labels the parts of shapes, and label one.

Before: acnn sample --out sample
"""

import numpy as np

import acnn
from acnn.viewer import grid, save_png, value_colors

config = acnn.preset_config("segmentation").with_changes({"steps": 60, "remeshed": 0})
acnn.train_run("sample/shapes", "07_run", config, train_list="0-6", resume=True)  # a minute; real trainings take longer
run = acnn.open_run("07_run")
mesh = acnn.load("sample/shapes/human_07.ply")  # not trained on
labelled = acnn.segment_shape(mesh, run)
truth = np.loadtxt("sample/shapes/classes.txt", dtype=int)
print(f"{(labelled.classes == truth).mean():.0%} of the vertices of an unseen shape are right")
images = [acnn.render(mesh, colors=value_colors(classes, "tab20", 0, 19)) for classes in (labelled.classes, truth)]
save_png(grid([images], [["network", "ground truth"]]), "07_segmentation.png")
