"""Human bodies generated from the anny body model: body, poses, and whole datasets."""
