"""Every link inside a built site leads somewhere, and its #anchor is there: python check_links.py FOLDER.

Looks at href and src of every page, at url(...) in CSS and at the pages that are never linked to (404).
Nothing is fetched: links to other hosts are only counted. A site that was built for an address (SITE_URL) names it in its
robots.txt; what begins with this address, or with its path, is inside.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Spans of highlighted code: most of the tags, without link or id.
COLORS = re.compile(r"""<span(?: class="[^"<>]*")?>|</span>""")


class Page(HTMLParser):
    """Ids and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.base = ""
        self.feed(COLORS.sub("", text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "base":
            self.base = values.get("href") or ""
            return
        if values.get("id"):
            self.ids.add(values["id"])
        if tag == "a" and values.get("name"):
            self.ids.add(values["name"])
        relation = (values.get("rel") or "").split()
        if "preconnect" in relation or "canonical" in relation:
            return
        self.links += [values[key] for key in ("href", "src", "poster") if values.get(key)]
        self.links += [
            part.split()[0] for part in (values.get("srcset") or "").split(",") if part.strip()
        ]


def address_of(site: Path) -> str:
    """The address for which a site was built, with a slash at its end; "" for a site that may lie anywhere."""
    robots = site / "robots.txt"
    text = robots.read_text(encoding="utf-8") if robots.is_file() else ""
    found = re.search(r"^Sitemap: (\S+/)sitemap\.xml$", text, re.MULTILINE)
    return found[1] if found else ""


def target_of(site: Path, file: Path, link: str, base: str, root: str = "/") -> Path | None:
    """The file that a link inside the site means; a folder means its index.html. None where it leaves the site's `root`."""
    path = unquote(urlsplit(link).path)
    if path.startswith("/"):
        if not path.startswith(root):
            return None
        path, start = path.removeprefix(root) or ".", site
    else:
        start = file.parent / base
    target = (start / path) if path else file
    return target / "index.html" if path.endswith("/") or target.is_dir() else target


def check(site: Path) -> tuple[list[str], int, set[str]]:
    """Problems found, number of links inside the site, addresses outside it."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    problems, inside, outside = [], 0, set()
    address = address_of(site)
    root = urlsplit(address).path or "/"
    for file, page in pages.items():
        name = file.relative_to(site).as_posix()
        for link in page.links:
            if address and link.startswith(address):
                link = root + link.removeprefix(address)
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("data", "javascript", "mailto"):
                    outside.add(link)
                continue
            inside += 1
            # A 404 page is served at any depth, so its links begin with the site's root.
            if file.name == "404.html" and not parts.path.startswith("/") and parts.path:
                target = target_of(site, site / "404.html", link, page.base, root)
            else:
                target = target_of(site, file, link, page.base, root)
            target = target and target.resolve()
            if target is None or not target.is_file():
                problems.append(f"{name}: '{link}' leads nowhere")
            elif parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].ids and not anchor.startswith("__"):
                    problems.append(f"{name}: '{link}': no such anchor")
    for file in sorted(site.rglob("*.css")):
        text = file.read_text(encoding="utf-8")
        for link in re.findall(r"url\(\s*[\"']?([^\"')]+)", text):
            if not urlsplit(link).scheme and not link.startswith("#"):
                inside += 1
                target = target_of(site, file, link, "", root)
                if target is None or not target.is_file():
                    problems.append(f"{file.relative_to(site).as_posix()}: '{link}' leads nowhere")
    if not pages:
        problems.append(f"no page in {site}: build it first")
    return problems, inside, outside


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0])
        return 2
    problems, inside, outside = check(Path(sys.argv[1]))
    print("\n".join(dict.fromkeys(problems)))
    print(
        f"{inside} links inside the site, {len(set(problems))} broken; {len(outside)} addresses outside"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
