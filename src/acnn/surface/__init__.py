"""Surface: curvature, Laplacians, spectra, heat kernels and geodesics on meshes and clouds."""
