"""Methods: what is trained or fitted, saved, and used to match shapes."""
