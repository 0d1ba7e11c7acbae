"""Pages of the site that are written elsewhere: commands by the program, results and experiments by their READMEs.

A hook of MkDocs (`mkdocs.yml`). Links are written as they lead in the repository, so that they work in both places;
here those to READMEs are turned to the pages made of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MADE = {
    "README.md": "results.md",
    "benchmarks/README.md": "benchmarks.md",
    "experiments/faust/README.md": "experiments/faust.md",
    "experiments/shrec16/README.md": "experiments/shrec16.md",
}
"""Pages of the site, by the file that they are made of. Of README.md it is the sections `RESULTS`."""

RESULTS = ("Results", "Limits")
COMMANDS = "<!-- commands: written by docs/pages_from_elsewhere.py -->"
LINK = re.compile(r"(\]\()([^)#\s]+)")


def on_config(config: Any) -> Any:
    """Leave experiments that have no README yet out of the contents."""
    config["nav"] = _there(config["nav"])
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages made of READMEs."""
    from mkdocs.structure.files import File

    for source, page in MADE.items():
        if (ROOT / source).is_file():
            text = (ROOT / source).read_text(encoding="utf-8")
            text = results(text) if page == "results.md" else text
            files.append(File.generated(config, page, content=relinked(text, source, page)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Write the commands where they belong, and turn links to READMEs."""
    path = page.file.src_uri
    if path in MADE.values():
        return markdown
    return relinked(markdown.replace(COMMANDS, commands_markdown()), f"docs/{path}", path)


def results(readme: str) -> str:
    """The sections `RESULTS` of the README as a page. Raises ValueError where one is missing."""
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", readme, flags=re.MULTILINE))
    missing = [name for name in RESULTS if name not in sections]
    if missing:
        raise ValueError(f"README.md has no section {' or '.join(missing)}: change RESULTS in {__file__}.")
    return "# Results and limits\n\n" + "\n".join(f"## {name}\n{sections[name]}" for name in RESULTS)


def relinked(markdown: str, source: str, page: str) -> str:
    """Markdown whose links lead from a page of the site to where they led from its file in the repository.

    - source: the file, below the repository; page: its place on the site
    """

    def turned(match: re.Match[str]) -> str:
        target = match[2]
        if re.match(r"[a-z]+:", target):
            return match[0]
        there = os.path.normpath(PurePosixPath(source).parent / target)
        if there in MADE:
            place = MADE[there]
        elif there.startswith("docs/"):
            place = there.removeprefix("docs/")
        else:
            return match[0]  # MkDocs will complain
        return match[1] + os.path.relpath(place, PurePosixPath(page).parent)

    return LINK.sub(turned, markdown)


def commands_markdown() -> str:
    """Every command with its arguments and options, as the program knows them."""
    import typer

    from acnn.cli.app import app

    program = typer.main.get_command(app)
    context = program.make_context("acnn", [], resilient_parsing=True)
    parts = []
    for name in program.list_commands(context):
        found = program.get_command(context, name)
        parts += [_command(f"acnn {name}", found)]
        for inner, command in getattr(found, "commands", {}).items():
            parts += [_command(f"acnn {name} {inner}", command)]
    return "\n".join(parts)


def _command(path: str, command: Any) -> str:
    group = bool(getattr(command, "commands", {}))
    own = [p for p in command.params if p.name not in SHARED and p.name != "help" and not p.hidden]
    arguments = [p for p in own if p.param_type_name == "argument"]
    options = [p for p in own if p.param_type_name == "option"]
    usage = [path, *(_argument(p) for p in arguments)]
    usage += [f"{p.opts[0]} {_value(p)}" for p in options if p.required]
    usage += ["COMMAND"] if group else ["[OPTIONS]"] if options else []
    lines = [f"## {path}", "", _plain(command.help or ""), "", "```text", " ".join(usage), "```", ""]
    rows = [(f"`{_argument(p)}`", p) for p in arguments]
    rows += [(f"`{', '.join(p.opts)}{' ' + _value(p) if not p.is_flag else ''}`", p) for p in options]
    if rows and not group:
        lines += ["| option | meaning |", "|---|---|", *(f"| {name} | {_about(p)} |" for name, p in rows), ""]
    return "\n".join(lines)


SHARED = ("as_json", "no_cache", "quiet")


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _value(parameter: Any) -> str:
    kinds = {int: "N", float: "X"}
    return str(parameter.metavar or kinds.get(type(parameter.default), "VALUE"))


def _about(parameter: Any) -> str:
    text = _plain(getattr(parameter, "help", "") or "").replace("\n", " ").replace("|", "\\|")
    default = parameter.default
    known = not (parameter.required or callable(default) or default is None or default is False or default == "")
    if known and "efault" not in text:
        text += f" Default: `{default}`."
    return text.strip()


def _plain(text: str) -> str:
    return text.strip().replace("\f", "")


def _there(entry: Any) -> Any:
    """A part of the contents without pages whose file does not exist."""
    if isinstance(entry, list):
        return [kept for item in entry if (kept := _there(item)) is not None]
    if isinstance(entry, dict):
        kept = {name: _there(item) for name, item in entry.items()}
        return {name: item for name, item in kept.items() if item is not None} or None
    source = next((file for file, page in MADE.items() if page == entry), None)
    return entry if source is None or (ROOT / source).is_file() else None
