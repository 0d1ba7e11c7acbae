"""`acnn methods`: the table of methods, and what each needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from acnn.cli._commands import Output, command


@command
def methods(out: Output) -> None:
    """List the methods: those that are trained, with the properties of the paper's table, and those for two shapes."""
    from acnn.methods.registry import METHODS, PAIR_METHODS

    trained = [{"name": m.name, "title": m.title, "preset": m.preset, **asdict(m.properties)} for m in METHODS.values()]
    pairs = [{"name": m.name, "title": m.title} for m in PAIR_METHODS.values()]
    out.result({"trained": trained, "pairs": pairs}, human=_text)


def _text(facts: dict[str, Any]) -> str:
    columns = ("name", "representation", "input", "generalisable", "filters", "context", "directional", "task")
    rows = [columns, *(tuple(_cell(method[column]) for column in columns) for method in facts["trained"])]
    widths = [max(len(row[k]) for row in rows) for k in range(len(columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    listed = [f"{method['name']}: {method['title']}" for method in (*facts["trained"], *facts["pairs"])]
    names = ", ".join(method["name"] for method in facts["pairs"])
    return "\n".join([*lines, "", f"without training, for two shapes (acnn match --method): {names}", "", *listed])


def _cell(value: Any) -> str:
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"
