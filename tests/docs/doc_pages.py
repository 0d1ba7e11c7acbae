"""The Markdown files of the project, taken apart: headings, links, code."""

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
FILES += [str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("docs/**/*.md"))]
FILES += [
    str(p.relative_to(ROOT))
    for folder in ("benchmarks", "examples", "experiments")
    for p in sorted(ROOT.glob(f"{folder}/**/*.md"))
]
sys.path.insert(0, str(ROOT / "docs"))  # for the hooks of the site
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the file that it begins on."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Page:
    """One file; name: below the root of the project."""

    name: str

    @cached_property
    def text(self) -> str:
        return (ROOT / self.name).read_text(encoding="utf-8")

    @cached_property
    def prose(self) -> str:
        """The text without fenced blocks."""
        return FENCE.sub("", self.text)

    @property
    def blocks(self) -> list[Block]:
        found = FENCE.finditer(self.text)
        return [Block(m[2], m[3], self.text[: m.start(3)].count("\n") + 1) for m in found]

    @property
    def table_code(self) -> list[Block]:
        """Code in the last column of tables, a block for every piece."""
        rows = re.finditer(r"^\|.*\|([^|]*)\|$", self.text, re.MULTILINE)
        found = [(row.start(), code) for row in rows for code in re.findall(r"`([^`]+)`", row[1])]
        return [Block("python", code, self.text[:start].count("\n") + 1) for start, code in found]

    @property
    def links(self) -> list[str]:
        """Targets of links and images."""
        return re.findall(r"\]\(([^)\s]+)\)", self.prose)

    @property
    def anchors(self) -> set[str]:
        """Names of the headings, as GitHub and MkDocs make them."""
        heads = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}

    @property
    def inline_code(self) -> list[str]:
        return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", self.prose)]


def command_lines(page, programs=("acnn ", "python ", "make ")):
    """(line, command) for every command line in a block of a page; what follows two spaces is a remark."""
    for block in page.blocks:
        if block.language in ("", "sh", "bash", "console"):
            for offset, line in enumerate(block.text.splitlines()):
                bare = re.split(r"  +|\s#", line.strip().removeprefix("$ "))[0]
                if bare.startswith(programs):
                    yield block.line + offset, bare


def acnn_commands(page):
    """(line, command) for every command line of `acnn`."""
    return command_lines(page, ("acnn ",))


PAGES = [Page(name) for name in FILES]
