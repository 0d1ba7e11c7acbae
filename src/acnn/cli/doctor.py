"""`acnn doctor`: versions, cores, memory, cache and a self-test, for bug reports."""

from __future__ import annotations

from typing import Any

from acnn.cli._commands import Output, command


@command
def doctor(out: Output) -> None:
    """Show versions, hardware and cache, and run a self-test: include this in bug reports."""
    from acnn.runs.machine import examine

    out.message("collecting versions and testing one kernel and one layer (compiled at the first run)")
    facts = examine()
    out.result(facts, human=_text)
    for problem in facts["problems"]:
        out.failed("doctor", problem)


def _text(facts: dict[str, Any]) -> str:
    cache, data, test, memory = facts["cache"], facts["data"], facts["self_test"], facts["memory_mb"]
    extras = {name: version or "not installed" for name, version in facts["extras"].items()}
    found = ", ".join(data["found"]) or "nothing"
    threads = ", ".join(f"{name} {count}" for name, count in facts["threads"].items() if count)
    size = f"{cache['megabytes']:.0f} MB, limit {cache['limit_gb']:g} GB"
    lines = [
        ("acnn", facts["versions"]["acnn"]),
        ("python", f"{facts['python']}, {facts['platform']}"),
        *((name, version or "MISSING") for name, version in facts["versions"].items() if name != "acnn"),
        *((f"extra [{name}]", version) for name, version in extras.items()),
        ("cores", f"{facts['cores']}; threads: {threads or 'unknown'}"),
        ("memory", ", ".join(f"{name} {value:.0f} MB" for name, value in memory.items())),
        ("cache", f"{cache['folder']}: {cache['entries']} entries, {size}"),
        ("ACNN_DATA", f"{data['folder']}: {found}" if data["set"] else "not set"),
        ("self-test", f"{'passed' if test['passed'] else 'FAILED'} in {test['seconds']:.1f} s"),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:{width}}  {value}" for name, value in lines)
