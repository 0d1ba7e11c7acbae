"""Pipeline: prepare a dataset, match a file, run the demo."""
