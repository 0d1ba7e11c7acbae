"""`Report`: the base of reports, frozen dataclasses whose `as_dict()` is what `--json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any


class Report(Mapping[str, Any]):
    """Base of frozen dataclasses that report results: attributes in code, a dictionary for `--json`.

    A field without a default is always in the report; one with a default only where it is not None. Fields can be read
    like the entries of a dictionary as well, `report["verdict"]`, which is how reports were read in earlier versions.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Fit(Report):
    ...     error: float
    ...     model: str | None
    ...     seconds: float | None = None
    >>> fit = Fit(0.5, None)
    >>> fit.error, fit["error"], fit.as_dict()
    (0.5, 0.5, {'error': 0.5, 'model': None})
    """

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold."""
        return {name: _plain(self[name]) for name in self}

    def __iter__(self) -> Iterator[str]:
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            if field.default is MISSING or getattr(self, field.name) is not None:
                yield field.name

    def __getitem__(self, name: str) -> Any:
        if name not in list(self):
            raise KeyError(name)
        return getattr(self, name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __or__(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The report as plain values, and more of them."""
        return self.as_dict() | {name: _plain(value) for name, value in more.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value
