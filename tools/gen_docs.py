#!/usr/bin/env python3
"""Writes docs/ops.md from src/ir/ops.def and src/stablehlo/vhlo.def's neighbours, and checks that docs/env.md names every
environment variable that the code reads. With --check nothing is written; a difference is an error."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def ops_page():
    text = (ROOT / "src/ir/ops.def").read_text().split("*/", 1)[1]
    text = re.sub(r"#define EWISE.*", "", text)
    text = re.sub(r'EWISE\((\w+), (\w+), ("[^"]+"), (\w+), [\w |]+,', r"OP(\1, \2, \3, OC_EWISE, \4, 1, 0,", text)
    defines = dict(re.findall(r"#define (\w+)\s*\\?\s*((?:\"[^\"]*\"\s*\\?\s*)+)", text))
    expand = lambda s: "".join(re.findall(r'"([^"]*)"', s))
    rows = re.findall(r'\bOP\((\w+), (\w+), "([^"]+)", OC_(\w+), (\w+), (\w+), (\w+),\s*((?:[^()]|\([^()]*\))*)\)', text)
    out = ["# Operations", "", "Generated from `src/ir/ops.def` by `make docs`. n: any number. Attributes: name:kind=default; `?`: optional.", "",
           "| operation | class | operands | results | regions | attributes |", "|---|---|---|---|---|---|"]
    for _, _, name, cls, a, b, c, attrs in rows:
        for key, value in defines.items():
            attrs = re.sub(rf"\b{key}\b", lambda _: value, attrs)
        number = lambda x: "n" if x == "VARIADIC" else x
        attrs = expand(attrs).replace("|", "\\|")
        out.append(f"| {name} | {cls.lower()} | {number(a)} | {number(b)} | {number(c)} | {attrs} |")
    return "\n".join(out) + "\n", len(rows)


def undocumented():
    page = (ROOT / "docs/env.md").read_text()
    used = set()
    for path in list((ROOT / "src").rglob("*.c")) + list((ROOT / "python").rglob("*.py")):
        if path.name.endswith("_fuzz.c"):
            continue
        used |= set(re.findall(r'(?:env_get|getenv|environ\.get)\("(WEFT_\w+)"', path.read_text(errors="replace")))
    return sorted(v for v in used if f"`{v}`" not in page)


def main():
    page, n = ops_page()
    path = ROOT / "docs/ops.md"
    bad = 0
    if "--check" in sys.argv:
        if not path.exists() or path.read_text() != page:
            print("docs/ops.md is not what tools/gen_docs.py writes (make docs)")
            bad = 1
    else:
        path.write_text(page)
        print(f"docs/ops.md: {n} operations")
    for name in undocumented():
        print(f"docs/env.md does not name {name}")
        bad = 1
    return bad


sys.exit(main())
