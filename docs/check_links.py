"""Check that every internal link of the built documentation leads somewhere, anchors included.

    python docs/check_links.py docs/_build/html

Prints what is dead and exits with 1, or prints how many were checked. External links are left
alone: nothing is fetched.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LINKS = {"a": "href", "img": "src", "link": "href", "script": "src", "source": "src"}


class _Page(HTMLParser):
    """What a page links to, and what in it can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.anchors.update(
            value for name in ("id", "name") if (value := attributes.get(name)) is not None
        )
        target = attributes.get(_LINKS.get(tag, ""))
        if target is not None:
            self.links.append(target)
        if tag == "img" and attributes.get("srcset"):
            self.links += [one.split()[0] for one in str(attributes["srcset"]).split(",")]


def dead_links(root: Path) -> tuple[list[str], int]:
    """Return "page: link" for every dead internal link, and how many links were checked."""
    pages = {
        path.resolve(): _Page(path.read_text(encoding="utf-8"))
        for path in root.rglob("*.html")
        if "_static" not in path.parts  # templates of the theme
    }
    dead, n_checked = [], 0
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            n_checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            exists = target.is_file()
            if exists and target in pages:
                exists = unquote(parts.fragment) in pages[target].anchors
            if not exists:
                dead.append(f"{path.relative_to(root.resolve())}: {link}")
    return dead, n_checked


def main(arguments: list[str]) -> int:
    """Check the directory that is the only argument."""
    (root,) = map(Path, arguments)
    dead, n_checked = dead_links(root)
    for line in dead:
        print(f"dead link in {line}", file=sys.stderr)
    print(f"{n_checked} internal links, {len(dead)} dead")
    return int(bool(dead) or n_checked == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
