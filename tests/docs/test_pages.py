"""What the pages tell to type does what they say (pages.py has the rules)."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pages  # noqa: E402

PAGES = [pages.ROOT / "README.md", *sorted((pages.ROOT / "docs").glob("*.md")), *sorted((pages.ROOT / "docs/guide").glob("*.md"))]


@pytest.mark.parametrize("page", [p for p in PAGES if "\n```" in p.read_text()], ids=lambda p: p.stem)
def test_page(page, tmp_path):
    pages.run_page(page, tmp_path)
