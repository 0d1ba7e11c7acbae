"""`acnn cache`: size of the cache, its limit, and clearing it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, command


@command
def cache(
    out: Output,
    limit: Annotated[
        float | None, typer.Option(metavar="GB", help="Set the maximum size, and remove the oldest entries above it.")
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove all entries, but no other files of the folder.")
    ] = False,
) -> None:
    """Show the folder, size and limit of the cache of operators and descriptors, or clear it.

    Entries are recomputed when needed. Above the limit (10 GB by default) the least recently used entries are removed;
    those used within the last hour are kept.
    """
    from acnn import cache as store
    from acnn.errors import InputError

    if not out.cache:
        raise InputError("--no-cache has no meaning for this command. Leave it out.")
    folder = store.cache_folder()
    before = store.cache_summary(folder)
    removed = store.clear(folder) if clear else 0
    if limit is not None:
        removed += store.set_limit(folder, limit)
    after = store.cache_summary(folder)
    freed = round(before.megabytes - after.megabytes, 1)
    out.result(after | {"removed": removed, "freed_megabytes": freed}, human=_text)


def _text(facts: dict[str, Any]) -> str:
    lines = [
        facts["folder"],
        f"  entries  {facts['entries']}",
        f"  size     {facts['megabytes'] / 1e3:.2f} GB",
        f"  limit    {facts['limit_gb']:g} GB",
    ]
    if facts["removed"]:
        lines.append(f"{facts['removed']} entries removed, {facts['freed_megabytes'] / 1e3:.2f} GB")
    if facts["megabytes"] > 1e3 * facts["limit_gb"]:
        lines.append("above the limit: entries used within the last hour are kept")
    return "\n".join(lines)
