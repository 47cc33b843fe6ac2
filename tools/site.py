#!/usr/bin/env python3
"""Puts the pages of the site together: site.py BUILD. docs/ as it is, and the reference made of what the program itself says: verbs from
--help, the C interface from include/weft.h, chips and prices from data/. Then mkdocs (docs/mkdocs.yml) writes BUILD's site; tools/site.sh
runs both."""
import csv
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def help_of(weft, *verb):
    return subprocess.run([weft, *verb, "--help"] if verb else [weft, "help"], check=True, capture_output=True, text=True).stdout


def verbs_page(weft):
    top = help_of(weft)
    out = ["# Verbs", "", "What `weft help` and `weft VERB --help` say.", "", "```", top.rstrip(), "```"]
    for name in re.findall(r"^  ([a-z]+) ", top, re.M):
        if name != "version":
            out += ["", f"## weft {name}", "", "```", help_of(weft, name).rstrip(), "```"]
    return "\n".join(out) + "\n"


def comment_text(comment):
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment.strip()[2:-2].splitlines()]
    return "\n".join(lines).strip()


def c_page():
    """Sections of include/weft.h, each with its text and declarations as they stand there."""
    text = (ROOT / "include/weft.h").read_text()
    first = re.search(r"/\*.*?\*/", text, re.S)
    out = ["# C", "", "From `include/weft.h`. [First hour with C](../guide/c.md).", "", "```", comment_text(first.group()), "```"]
    body = text[first.end():]
    parts = re.split(r"/\* ---- (.*?) -+ \*/", body)
    for title, part in zip(parts[1::2], parts[2::2]):
        part = re.sub(r"#ifdef __cplusplus.*?#endif", "", part, flags=re.S)
        part = re.sub(r"#endif[^\n]*\s*$", "", part.strip()).rstrip()
        out += ["", f"## {title.strip().capitalize()}", "", "```c", re.sub(r"\n{3,}", "\n\n", part), "```"]
    return "\n".join(out) + "\n"


def facts_of(path):
    """(key, value, source) of a chip file, and its sections' titles as (None, title, None)."""
    for line in path.read_text().splitlines():
        if m := re.match(r"(\S+)\s*=\s*(.*?)(?:\s+#\s*(.*))?$", line):
            yield m.groups()
        elif m := re.match(r"#\s*(.+)$", line):
            yield None, m.group(1), None


def cell(text):
    return (text or "").replace("|", "\\|")


def chips_page():
    files = sorted((ROOT / "data/chips").glob("*.chip"))
    prices = {}
    for path in sorted((ROOT / "data/prices").glob("*.csv")):
        with path.open() as f:
            for row in csv.DictReader(line for line in f if not line.startswith("#")):
                prices[path.name] = prices.get(path.name, 0) + 1
    out = ["# Chips", "", "Every fact has its source: `data/chips`, one file a chip; `weft chips NAME` prints the same. What is measured, published, recalled or guessed is said "
           f"beside each number. Prices: {', '.join(f'`data/prices/{n}` ({k} offers)' for n, k in prices.items())}; `weft chips NAME --prices` lists them with date and source.", ""]
    for path in files:
        facts = list(facts_of(path))
        title = next((v for k, v, _ in facts if k == "name"), path.stem)
        out += [f"## {title}", "", "| fact | value | source |", "|---|---|---|"]
        fitted = 0
        for key, value, source in facts:
            if key and key.startswith("fit."):
                fitted += 1  # coefficients of the cost model: see the file
            elif key:
                out.append(f"| {key} | {cell(value)} | {cell(source)} |")
        out += [f"\n{fitted} coefficients of the cost model: `data/chips/{path.name}`." if fitted else "", ""]
    return "\n".join(out) + "\n"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    source = build / "site-source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("mkdocs.yml", "requirements.txt"))
    (source / "reference").mkdir()
    for name, text in {"verbs": verbs_page(build / "weft"), "c": c_page(), "chips": chips_page()}.items():
        (source / "reference" / f"{name}.md").write_text(text)
    print(f"{len(list(source.rglob('*.md')))} pages in {source}")


main()
