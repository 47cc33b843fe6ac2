#!/usr/bin/env python3
"""Fits the coefficients of src/plan/coefficients.def to measured runs: plan_fit.py [RUNS.csv] [--only KEY,KEY] [--rounds N] [--write]

Rows of the families that plan_score.py calls fitted count, each group of model, chip and source as one; the others are
left to judge. The loss is the mean of log-errors with their tails cut; every coefficient is held to its given value by a small
weight, so that what rows say nothing about stays. Coordinate descent: a step up, a step down, half the step."""
import argparse
import collections
import math
import pathlib
import re

import plan_score

ROOT = pathlib.Path(__file__).resolve().parent.parent
COEFFICIENTS = ROOT / "src/plan/coefficients.def"
ROW = re.compile(r'^COEF\((\w+), ([^,]+), "(.*)"\)$')
# Of memory, not of time; and what rows cannot tell apart.
LEFT = ("runtime", "fragments", "uneven", "unfused_act", "young_years")
# Shares must stay below one.
SHARES = ("hidden", "power", "share", "grouped", "core_ampere", "core_hopper", "core_blackwell", "core_tpu", "core_amd", "core_back", "core_old", "rough", "young")


def coefficients():
    return {m[1]: float(m[2]) for m in map(ROW.match, COEFFICIENTS.read_text().splitlines()) if m}


def loss(weft, runs, rs, values, prior, every=False):
    ans = plan_score.answers(weft, runs, [f"{k}={v:.6g}" for k, v in values.items()])
    groups = collections.defaultdict(list)
    for r, _, e in plan_score.measured(rs, ans):
        if every or plan_score.fitted(r):
            x = abs(math.log(1 + e))
            groups[r["model"], r["chip"], plan_score.source(r)].append(min(x, 0.3) + 0.2 * max(0, min(x, 1) - 0.3))
    # a group of many rows says more than one of few, but not as much more
    weight = {g: len(v) ** 0.5 for g, v in groups.items()}
    mean = sum(weight[g] * sum(v) / len(v) for g, v in groups.items()) / sum(weight.values())
    held = sum(math.log(values[k] / prior[k]) ** 2 for k in values if prior[k] > 0 and values[k] > 0)
    return mean + 0.0005 * held


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", nargs="?", default=ROOT / "tests/plan/runs.csv")
    p.add_argument("--weft", default=ROOT / "build/weft")
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    prior = {k: v for k, v in coefficients().items() if k not in LEFT}
    rs = plan_score.rows(a.runs)
    keys = [k for k in a.only.split(",") if k] or list(prior)
    values = dict(prior)
    step = {k: 0.25 for k in keys}
    best = loss(a.weft, a.runs, rs, values, prior)
    print(f"start {best:.5f}")
    for n in range(a.rounds):
        for k in keys:
            if step[k] < 0.01:
                continue
            for sign in (1, -1):
                v = dict(values)
                v[k] = values[k] * math.exp(sign * step[k]) if values[k] > 0 else max(0, sign * step[k])
                if any(s in k for s in SHARES):
                    v[k] = min(v[k], 0.95)
                got = loss(a.weft, a.runs, rs, v, prior)
                if got < best - 1e-6:
                    best, values = got, v
                    break
            else:
                step[k] /= 2
        print(f"round {n + 1} {best:.5f}  all rows {loss(a.weft, a.runs, rs, values, prior, True):.5f}", flush=True)
    for k in keys:
        if values[k] != prior[k]:
            print(f"  {k:18s} {prior[k]:.4g} -> {values[k]:.4g}")
    if a.write:
        out = []
        for l in COEFFICIENTS.read_text().splitlines():
            m = ROW.match(l)
            out.append(f'COEF({m[1]}, {values[m[1]]:.3g}, "{m[3]}")' if m and m[1] in values else l)
        COEFFICIENTS.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
