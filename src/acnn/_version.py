"""The version of the package, apart from `acnn` itself, which loads every subpackage on demand."""

__version__ = "0.1.0"
