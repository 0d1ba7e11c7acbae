"""`acnn cache`: what the cache holds, how large it may become, and emptying it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acnn.cli.app import Output, command


@command
def cache(
    out: Output,
    limit: Annotated[
        float | None, typer.Option(metavar="GB", help="Set how large it may become, and remove what is above that.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all entries; nothing else in the folder.")] = False,
) -> None:
    """Show the folder, size and limit of the cache of operators and descriptors; all of them can be computed again.

    Above the limit, 10 GB by default, the entries not used for the longest time are removed; those of the last hour
    stay.
    """
    from acnn import cache as store
    from acnn.errors import InputError

    if not out.cache:
        raise InputError("--no-cache: this command is about the cache. Leave it out.")
    folder = store.cache_folder()
    before = store.cache_summary(folder)
    removed = store.clear(folder) if clear else 0
    if limit is not None:
        removed += store.set_limit(folder, limit)
    facts = store.cache_summary(folder)
    freed = round(before["megabytes"] - facts["megabytes"], 1)
    out.result(facts | {"removed": removed, "freed_megabytes": freed}, human=_text)


def _text(facts: dict[str, Any]) -> str:
    lines = [
        facts["folder"],
        f"  entries  {facts['entries']}",
        f"  size     {facts['megabytes'] / 1e3:.2f} GB",
        f"  limit    {facts['limit_gb']:g} GB",
    ]
    if facts["removed"]:
        lines.append(f"{facts['removed']} entries were removed, {facts['freed_megabytes'] / 1e3:.2f} GB")
    if facts["megabytes"] > 1e3 * facts["limit_gb"]:
        lines.append("above its limit: entries used within the last hour stay")
    return "\n".join(lines)
