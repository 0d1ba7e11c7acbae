"""Collections of shapes: a template fitted to shapes, and statistics of shapes in one topology."""
