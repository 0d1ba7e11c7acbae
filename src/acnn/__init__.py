"""Dense correspondence between deformable 3D shapes with anisotropic convolutional neural networks."""
