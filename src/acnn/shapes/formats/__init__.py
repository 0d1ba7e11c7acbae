"""File formats: one module reads or writes one of them; `RawShape` is what they have in common."""
