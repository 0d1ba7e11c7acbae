"""Counts modules and lines of code of the package; docstrings, comments and blank lines do not count.

python tools/count_code.py [FOLDER]
"""

import ast
import sys
import tokenize
from pathlib import Path


def code_lines(path: Path) -> int:
    """Number of lines that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings |= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in skipped:
                lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def main() -> None:
    """Print the counts of every subpackage and of all."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "src" / "acnn")
    counts: dict[str, list[int]] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        counts.setdefault(parts[0] if len(parts) > 1 else "(root)", []).append(code_lines(path))
    for name, lines in counts.items():
        print(f"{name:16} {len(lines):4} modules {sum(lines):6} lines")
    print(f"{'total':16} {sum(map(len, counts.values())):4} modules {sum(map(sum, counts.values())):6} lines")


if __name__ == "__main__":
    main()
