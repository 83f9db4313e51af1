"""Every page is found from README.md, and every place that a page names exists: python3 links_test.py."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True,
                            check=True)
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


PAGES = tracked("*.md")
FOLDERS = {path.relative_to(ROOT).parts[0] for path in tracked() if path.parent != ROOT}


def anchors_of(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(page):
    text = QUOTED.sub("code", CODE.sub("", page.read_text()))
    return [link for link in LINK.findall(text) if "://" not in link]


class LinksTest(unittest.TestCase):
    def test_links_resolve(self):
        for page in PAGES:
            for link in links_of(page):
                with self.subTest(page=page.name, link=link):
                    name, _, anchor = link.partition("#")
                    file = (page.parent / name).resolve() if name else page
                    self.assertTrue(file.exists(), "no such file")
                    if anchor:
                        self.assertIn(anchor, anchors_of(file))

    def test_readme_links_every_page(self):
        linked = {(ROOT / link.partition("#")[0]).resolve() for link in links_of(ROOT / "README.md")}
        for page in PAGES:
            if page.parent in (ROOT, ROOT / "docs") and page.name != "README.md":
                with self.subTest(page=page.name):
                    self.assertIn(page, linked)

    def test_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), 120)

    def test_files_and_folders_exist(self):
        for page in PAGES:
            for path in QUOTED.findall(CODE.sub("", page.read_text())):
                # `tests/run.sh`, `server/`; no pattern, no placeholder and no command.
                if path.split("/")[0] in FOLDERS and re.fullmatch(r"[\w.\-]+(/[\w.\-]*)+", path):
                    with self.subTest(page=page.name, path=path):
                        self.assertTrue((ROOT / path).exists(), "no such file or folder")


if __name__ == "__main__":
    unittest.main()
