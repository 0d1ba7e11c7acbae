"""The gallery: a hook of MkDocs that makes a page of every example script and notebook, and an index with thumbnails.

A page has the docstring of its script as text, then the image (`python docs/make_images.py gallery` renders them all),
the code, and a link to download it.
"""

from __future__ import annotations

import ast
import html
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("[0-9][0-9]_*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
INDEX = "gallery/index.md"
PAGES = {f"examples/{path.name}": f"gallery/{path.stem}.md" for path in (*SCRIPTS, *NOTEBOOKS)}
"""Pages of the site by source file."""


def on_files(files: Any, config: Any) -> Any:
    """Add the index, the pages, and the scripts and notebooks for download."""
    from mkdocs.structure.files import File, InclusionLevel

    files.append(File.generated(config, INDEX, content=index_page()))
    for path in (*SCRIPTS, *NOTEBOOKS):
        make = script_page if path in SCRIPTS else notebook_page
        files.append(File.generated(config, PAGES[f"examples/{path.name}"], content=make(path)))
        download = File.generated(config, f"gallery/{path.name}", abs_src_path=str(path))
        download.inclusion = InclusionLevel.INCLUDED  # Python files of docs/ itself are left out of the site
        files.append(download)
    return files


def index_page() -> str:
    """Markdown of the index: a thumbnail and a title for every script, linked to its page."""
    cards = []
    for path in SCRIPTS:
        title = html.escape(title_of(path))
        image = f'<img src="../images/gallery/{path.stem}.png" alt="" loading="lazy">'
        cards.append(f'<a class="card" href="{path.stem}.html">{image}<span>{title}</span></a>')
    links = "".join(f"- [{notebook_title(path)}]({path.stem}.md), a notebook\n" for path in NOTEBOOKS)
    return (
        "# Gallery\n\nShort scripts, each with one subject and one image. They use the files of"
        " `acnn sample --out sample`; nothing else has to be downloaded.\n\n"
        f'<div class="gallery">\n{chr(10).join(cards)}\n</div>\n\n{links}'
    )


def script_page(path: Path) -> str:
    """Markdown of one script."""
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    sentences, _, rest = docstring.partition("\n\n")
    code = text.split('"""', 2)[2].strip()
    about = rest.replace(
        "Before: acnn sample --out sample", "First write the files to try it on: `acnn sample --out sample`."
    )
    return (
        f"# {title_of(path)}\n\n{sentences}\n\n{about}\n\n"
        f"![{summary_of(path)}](../images/gallery/{path.stem}.png)\n\n"
        f"```python\n{code}\n```\n\n[Download {path.name}]({path.name}) · [Gallery](index.md)\n"
    )


def notebook_page(path: Path) -> str:
    """Markdown of a notebook: its texts and its code."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join([*parts, f"[Download {path.name}]({path.name}) · [Gallery](index.md)\n"])


def title_of(path: Path) -> str:
    """Title of a script, from its name: `01_match_two_meshes.py` is 'Match two meshes'."""
    return path.stem[3:].replace("_", " ").capitalize()


def summary_of(path: Path) -> str:
    """First paragraph of the docstring of a script, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def notebook_title(path: Path) -> str:
    """First heading of a notebook."""
    return notebook_page(path).splitlines()[0].removeprefix("# ")
