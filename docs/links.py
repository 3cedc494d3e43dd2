#!/usr/bin/env python3
"""Looks at the pages and at the book that was built of them: `docs/links.py BOOK`. Links inside of the book must lead to a file
and, where they name one, to an anchor; those to other sites are only counted: whether strangers answer must fail nobody's build.
Every include must find its anchor, and every program in Python that is not run must at least be Python."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

PAGES = Path(__file__).parent / "src"


class Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)


def broken_links(book):
    """Every link that leads nowhere, and how many there were, inside and outside."""
    pages = {path.resolve(): Page(path) for path in book.rglob("*.html")}
    wrong, inside, outside = [], 0, 0
    for path, page in pages.items():
        # Its own links are written for a folder that only a server knows.
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += 1
                continue
            inside += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{path.name}: {link}: there is no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{path.name}: {link}: there is no such anchor")
    return wrong, inside, outside


def wrong_programs(page):
    """Includes of what is not there (mdbook leaves the place empty), and blocks that are no Python."""
    text = page.read_text()
    for path, anchor in re.findall(r"\{\{#include ([^:}]+):?([^}]*)\}\}", text):
        source = page.parent / path
        lines = source.read_text().split() if source.is_file() else []
        if f"{anchor}" not in [after for word, after in zip(lines, lines[1:]) if word == "ANCHOR:"]:
            yield f"{page.name}: {path} has no {anchor}"
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        if ">>>" not in block:
            try:
                compile(block, page.name, "exec")
            except SyntaxError as error:
                yield f"{page.name}: {error}"


def main():
    wrong, inside, outside = broken_links(Path(sys.argv[1]))
    wrong += [problem for page in sorted(PAGES.glob("*.md")) for problem in wrong_programs(page)]
    if wrong or not inside:
        sys.exit("\n".join(wrong) or "a book without links")
    print(f"{inside} links inside the book lead somewhere; {outside} lead out of it and were not followed")


if __name__ == "__main__":
    main()
