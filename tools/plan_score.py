#!/usr/bin/env python3
"""How well `weft plan --runs` tells measured runs: plan_score.py [RUNS.csv] [--by chip,layout,source] [--worst N] [--weft PATH] [--set K=V]

Step time: error in per cent of what was measured; fits: of the runs, which all happened; pairs: of two layouts of one
model on one chip whose times for a token differ by more than 10 %, how often the faster is named."""
import argparse
import collections
import csv
import itertools
import json
import math
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Families whose rows coefficients are fitted on; all others judge.
FITTED = ("llama3-8b", "llama2-70b", "llama3.1-405b", "mpt-7b", "mpt-1b", "mpt-350m", "mpt-13b", "qwen3-30b-a3b", "deepseek-v3", "gpt3",
          "maxtext-32b", "maxtext-128b", "maxtext-16b", "bigscience-gpt-182b", "bigscience-gpt-195b", "bigscience-gpt-200b", "nemotron4-340b",
          "gemma", "bert")


def answers(weft, path, sets=()):
    cmd = [str(weft), "plan", "--runs", str(path), "--json"]
    for s in sets:
        cmd += ["--set", s]
    out = subprocess.run(cmd, capture_output=True, text=True, check=True).stdout
    return {a["id"]: a for a in map(json.loads, out.splitlines())}


def rows(path):
    with open(path, newline="") as f:
        return [r for r in csv.DictReader(f)]


def kind(r):
    """What a layout is made of, in a few words."""
    words = []
    n = lambda k: int(r[k] or 1)
    if r["task"] == "lora":
        words.append("lora")
    if n("ep") > 1:
        words.append("expert")
    if n("pp") > 1:
        words.append("pipeline")
    if n("tp") > 1:
        words.append("tensor")
    if n("cp") > 1:
        words.append("context")
    if "zero-3" in r["zero"] or "hsdp" in r["zero"]:
        words.append("fsdp")
    return "+".join(words) or "data"


def source(r):
    return " ".join(r["source"].split()[:1])[:32].replace("mlcommons/training_results", "mlperf")


def fitted(r):
    return r["model"].startswith(FITTED)


def quantile(v, q):
    v = sorted(v)
    return v[min(len(v) - 1, int(q * len(v)))] if v else math.nan


def measured(rs, ans):
    """(row, answer, error) of complete rows that have an answer."""
    out = []
    for r in rs:
        a = ans.get(r["id"], {})
        if r["quality"] == "complete" and r["step_time_s"] and "step_time_s" in a:
            out.append((r, a, a["step_time_s"] / float(r["step_time_s"]) - 1))
    return out


def pairs(found):
    good = all_ = 0
    groups = collections.defaultdict(list)
    for r, a, _ in found:
        per = float(r["gbs"]) * float(r["seq"]) / float(r["chips"])
        layout = tuple(r[k] for k in ("chips", "gbs", "mbs", "tp", "pp", "vpp", "cp", "ep", "fsdp", "zero", "recompute", "precision", "seq"))
        groups[r["model"], r["chip"]].append((layout, float(r["step_time_s"]) / per, a["step_time_s"] / per))
    for g in groups.values():
        for (la, ma, pa), (lb, mb, pb) in itertools.combinations(g, 2):
            if la == lb or max(ma, mb) < 1.1 * min(ma, mb):
                continue
            all_ += 1
            good += (ma < mb) == (pa < pb)
    return good, all_


def line(name, found):
    e = [abs(x) for _, _, x in found]
    signed = sorted(x for _, _, x in found)
    fits = sum(a["fits"] for _, a, _ in found)
    return (f"{name:44s} {len(found):4d}  {100 * quantile(e, .5):5.1f} {100 * quantile(e, .9):6.1f} {100 * max(e, default=0):6.1f}"
            f"  {100 * quantile(signed, .5):+6.1f}  {100 * fits / max(1, len(found)):5.1f}")


def table(groups):
    """Rows of the page: of the families that were fitted, and of those left out."""
    out = ["| | fitted on: rows | median % | p90 % | left out: rows | median % | p90 % | said to fit % |", "|---|---|---|---|---|---|---|---|"]
    for name, found in groups:
        cells = [name]
        for part in ([x for x in found if fitted(x[0])], [x for x in found if not fitted(x[0])]):
            e = [abs(x) for _, _, x in part]
            cells += [str(len(e)), f"{100 * quantile(e, .5):.1f}" if e else "", f"{100 * quantile(e, .9):.1f}" if e else ""]
        cells.append(f"{100 * sum(a['fits'] for _, a, _ in found) / len(found):.0f}")
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def write(found):
    """The tables of docs/accuracy/plan.md, between their marks."""
    page = ROOT / "docs/accuracy/plan.md"
    text = page.read_text()

    def groups(key):
        names = sorted({key(r) for r, _, _ in found})
        return [(n, [x for x in found if key(x[0]) == n]) for n in names]

    good, n = pairs(found)
    tables = {"plan_all": table([("all", found)]) + f"\n\nOf {n} pairs of layouts of one model on one chip whose times for a token differ by more than 10 %, "
                                                    f"the faster is named in {100 * good / max(1, n):.1f} %.",
              "plan_chip": table(groups(lambda r: r["chip"])), "plan_layout": table(groups(kind))}
    for name, rows_ in tables.items():
        text = re.sub(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda m: m[1] + rows_ + "\n" + m[2], text, flags=re.S)
    page.write_text(text)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", nargs="?", default=ROOT / "tests/plan/runs.csv")
    p.add_argument("--weft", default=ROOT / "build/weft")
    p.add_argument("--by", default="chip,layout,source")
    p.add_argument("--worst", type=int, default=0)
    p.add_argument("--write", action="store_true", help="the tables of docs/accuracy/plan.md")
    p.add_argument("--set", action="append", default=[])
    a = p.parse_args()
    rs = rows(a.runs)
    ans = answers(a.weft, a.runs, a.set)
    found = measured(rs, ans)
    if a.write:
        return write(found)
    complete = [r for r in rs if r["quality"] == "complete" and r["step_time_s"]]
    print(f"{len(rs)} rows, {len(complete)} complete, {len(found)} of them answered")
    head = f"{'':44s} {'rows':>4s}  {'p50':>5s} {'p90':>6s} {'worst':>6s}  {'bias':>6s}  {'fits':>5s}"
    print(head)
    print(line("all", found))
    print(line("fitted", [x for x in found if fitted(x[0])]))
    print(line("held out", [x for x in found if not fitted(x[0])]))
    good, n = pairs(found)
    print(f"pairs: the faster named in {good} of {n}, {100 * good / max(1, n):.1f} %")
    keys = {"chip": lambda r: r["chip"], "layout": kind, "source": source, "model": lambda r: r["model"] + " " + r["chip"],
            "precision": lambda r: r["precision"], "group": lambda r: r["group"] + " " + source(r)}
    for by in filter(None, a.by.split(",")):
        print(f"\nby {by}\n{head}")
        groups = collections.defaultdict(list)
        for x in found:
            groups[keys[by](x[0])].append(x)
        for g in sorted(groups):
            print(line(g, groups[g]))
    for r, an, e in sorted(found, key=lambda x: -abs(x[2]))[:a.worst]:
        print(f"{100 * e:+6.1f} % {r['id']} {r['model']} {r['chip']} x{r['chips']} tp{r['tp']} pp{r['pp']} cp{r['cp']} ep{r['ep']} "
              f"{r['precision']} {r['step_time_s']} {source(r)}: {an['why']}")


if __name__ == "__main__":
    main()
