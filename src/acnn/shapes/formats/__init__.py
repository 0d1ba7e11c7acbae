"""Readers and writers of file formats, one module each; all readers return a `RawShape`."""
