#!/usr/bin/env python3
"""Fits the coefficients `fit.*` of data/servers to exchanges that others measured (tests/net).

    tools/fit_net.py                    # the error of both parts of the rows, nothing is changed
    tools/fit_net.py --fit hgx-h100     # the coefficients of one server, written into its file
    tools/fit_net.py --fit all
    tools/fit_net.py --check            # fails where a row of BOUNDS is worse on what is kept apart

Two thirds of the rows are fitted, a third, drawn by the shape's checksum, is kept apart. The model is weft's own
(`weft kernel -`), asked with changed server files in WEFT_DATA: src/net/gpu.c says what each coefficient means.
Coefficients that the rows of a server say nothing about stay what they are. Build weft_bin first.
"""
import argparse
import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
from scipy.optimize import least_squares

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERVERS = ROOT / "data/servers"
WEFT = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")) / "weft"
KINDS = {"all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "alltoall": "all-to-all"}
CHIPS = {  # chips of the rows: ours, and the server that is fitted to them
    "a100_sxm": ("A100-80GB", "hgx-a100"), "h100_sxm": ("H100", "hgx-h100"), "h200_sxm": ("H200", "hgx-h200"),
    "b200_sxm": ("B200", "hgx-b200"), "b300_sxm": ("B300", "hgx-b300"), "gb200": ("GB200", "gb200-nvl72"),
    "gb300": ("GB300", "gb300-nvl72"), "l40s": ("L40S", "l40s-8"), "rtx_pro_6000_server": ("RTX-PRO-6000", "rtx-pro-6000-8"),
}
BOUNDS = {"hgx-a100": (10, 25), "hgx-h100": (10, 25), "hgx-h200": (10, 25), "hgx-b200": (10, 25), "p5": (15, 30)}  # median, p90
INSIDE = {}  # name: (start, unit); shares of the link where the unit is "link"
for kind, rows in {
    "ring": {"ll": (4.5, .8, .05, .1, .1), "ll128": (5.5, .95, .45, 3, 2.5), "simple": (12, 1, .82, 2.5, 2)},
    "pairs": {"ll": (6.3, .15, .1, .1, None), "ll128": (8, .15, .35, .9, None), "simple": (8, .4, .8, 2.5, None)},
}.items():
    for proto, (start, hop, link, copy, add) in rows.items():
        name = f"fit.{kind}_{proto}_"
        INSIDE |= {name + "start": (start, "us"), name + "hop": (hop, "us"), name + "link": (link, "link"), name + "copy": (copy, "link")}
        if add:
            INSIDE[name + "sum"] = (add, "link")
    INSIDE[f"fit.{kind}_simple_ramp"] = (2, "us")
INSIDE["fit.ramp_limit"] = (200, "MB")
NVLS = {"fit.nvls_start": (70, "us"), "fit.nvls_link": (.63, "link"), "fit.nvls_ramp": (.5, "us")}
CROSSED = {"fit.crossed4": (.8, ""), "fit.crossed8": (.6, "")}
BETWEEN = {
    "fit.net_ll_hop": (2.7, "us"), "fit.net_ll128_hop": (4, "us"), "fit.net_simple_hop": (14, "us"),
    "fit.net_ll_tree": (5, "us"), "fit.net_ll128_tree": (8.5, "us"), "fit.net_simple_tree": (14, "us"),
    "fit.net_ll_share": (.4, ""), "fit.net_ll128_share": (.8, ""), "fit.net_simple_share": (.92, ""), "fit.net_nvls_share": (.93, ""),
    "fit.net_tree_share": (.9, ""), "fit.net_peer": (.7, "us"), "fit.net_ramp": (20, "us"),
}
# servers joined by cards; fitted to tests/net/logs.csv with what is inside left as it is
JOINED = {"hgx-h200": "H200", "p5": "H100", "p4d": "A100-40GB", "oci-a100": "A100-40GB", "a4": "B200", "a3-mega": "H100", "hgx-h100": "H100",
          "mi355x-8": "MI355X"}
# whose file holds what is fitted to them: of the server that others with such cards are like
CARDS = {"hgx-h200": "hgx-h100", "p5": "p5", "p4d": "p4d", "oci-a100": "hgx-a100", "a4": "hgx-b200"}


def kept_apart(*shape):
    return zlib.crc32(" ".join(map(str, shape)).encode()) % 3 == 0


def inside_rows(server):
    out = []
    with open(ROOT / "tests/net/nccl.csv") as f:
        for r in csv.DictReader(f):
            chip, of = CHIPS[r["chip"]]
            if of != server:
                continue
            size, dtype = int(r["elements"]) * (2 if r["dtype"] == "half" else 1), "f16" if r["dtype"] == "half" else "i8"
            apart = kept_apart(r["op"], r["dtype"], r["gpus"], r["elements"])
            out.append((f"{chip}:{r['gpus']} {KINDS[r['op']]} {size} {dtype}", float(r["us"]), apart, r["op"], int(r["gpus"])))
    return out + [r for r in log_rows(server) if r[4] <= 8]


def between_rows(server):
    return [r for r in log_rows(server) if r[4] > 8]


def log_rows(server):
    out = []
    with open(ROOT / "tests/net/logs.csv") as f:
        for r in csv.DictReader(f):
            if r["server"] == server:
                line = f"{JOINED[server]}:{r['gpus']}@{server} {KINDS[r['op']]} {r['bytes']} f32"
                op = r["op"] + (" between" if int(r["gpus"]) > 8 else "")
                out.append((line, float(r["us"]), kept_apart(r["op"], r["gpus"], r["bytes"]), op, int(r["gpus"])))
    return out


def ask(lines, data=None):
    env = dict(os.environ, **({"WEFT_DATA": data} if data else {}))
    p = subprocess.run([WEFT, "kernel", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, env=env)
    if p.returncode:
        sys.exit(p.stderr)
    return np.array([float(x) for x in p.stdout.split()])


def facts_of(server):
    text = (SERVERS / f"{server}.server").read_text()
    facts = {m[1]: m[2] for m in re.finditer(r"^(\S+)\s*=\s*(.*?)\s+#", text, re.M)}
    return (facts_of(facts["like"]) | facts) if "like" in facts else facts


def number(text):
    value, _, unit = text.partition(" ")
    return float(value) * {"": 1, "GB/s": 1, "TB/s": 1e3, "us": 1, "MB": 1}[unit]


def with_facts(server, values, units, note):
    """The server's file with those facts, in place of old ones or at its end."""
    text = (SERVERS / f"{server}.server").read_text()
    for key, value in values.items():
        if key.endswith("share"):
            value = min(value, 1)
        unit = {"us": " us", "link": " GB/s", "MB": " MB"}.get(units[key], "")
        line = f"{key:26} = {value:.5g}{unit}  # {note}"
        text, n = re.subn(rf"^{re.escape(key)}\s.*$", line, text, flags=re.M)
        if not n:
            if "# cost model" not in text:
                text += "\n# cost model: see src/net/gpu.c\n"
            text += line + "\n"
    return text


def errors(rows, got):
    """Printed; the median and 90th percentile of all that is kept apart."""
    rel = np.abs(got / np.array([r[1] for r in rows]) - 1)
    for op in sorted({r[3] for r in rows}) + ["all"]:
        parts = []
        for apart in (False, True):
            e = 100 * rel[[i for i, r in enumerate(rows) if r[2] == apart and op in (r[3], "all")]]
            parts.append((np.median(e), np.quantile(e, .9)) if len(e) else (0, 0))
        print(f"  {op:24} fitted {parts[0][0]:5.1f} {parts[0][1]:5.1f}   kept apart {parts[1][0]:5.1f} {parts[1][1]:5.1f}")
    return parts[1]


def start_values(server, keys):
    facts = facts_of(server)
    link = number(facts["link"])
    out = {}
    for key, (value, unit) in keys.items():
        out[key] = number(facts[key]) if key in facts else value * link if unit == "link" else value
    return out


class Trials:
    """Servers with changed facts, all asked at once: one start of weft for a whole Jacobian."""

    def __init__(self, server, keys, lines, folder):
        self.server, self.names, self.units, self.folder = server, list(keys), {k: keys[k][1] for k in keys}, folder
        chip = facts_of(server)["chip"]  # of two servers with the same cards: the one whose file it is
        self.lines = [(re.sub("^[^:]*", chip, line.split()[0].split("@")[0]), line.split(None, 1)[1]) for line in lines]

    def ask(self, points):
        asked = []
        for i, x in enumerate(points):
            text = with_facts(self.server, dict(zip(self.names, np.exp(x))), self.units, "trial")
            text = re.sub(r"^aliases .*\n", "", text, flags=re.M)
            text = re.sub(r"^name .*$", f"name = trial{i}  # trial", text, flags=re.M)
            (self.folder / f"trial{i}.server").write_text(text)
            asked += [f"{chip}@trial{i} {rest}" for chip, rest in self.lines]
        return ask(asked, str(self.folder.parent)).reshape(len(points), -1)


def fit(server, keys, rows, note, starts=4, pull=0.02):
    fitted = [r for r in rows if not r[2]]
    want = np.log([r[1] for r in fitted])
    base = np.log(list(start_values(server, keys).values()))
    anew = np.log([v * (number(facts_of(server)["link"]) if u == "link" else 1) for v, u in keys.values()])
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d) / "servers"
        folder.mkdir()
        for path in SERVERS.glob("*.server"):  # those that others are like
            (folder / path.name).write_bytes(path.read_bytes())
        trials, step = Trials(server, keys, [r[0] for r in fitted], folder), 1e-3

        def residual(x):  # what no row says anything about stays
            return np.concatenate([np.log(trials.ask([x])[0]) - want, weak * (x - base)])

        def jacobian(x):
            got = np.log(trials.ask([x] + [x + step * e for e in np.eye(len(x))]))
            return np.concatenate([((got[1:] - got[0]) / step).T, np.diag(weak)])

        weak = np.array([pull * (10 if k.endswith("share") else 1) for k in keys])  # shares are near 1 for good reasons

        best, rng = None, np.random.default_rng(1)
        for k in range(starts):
            x0 = base if k == 0 else (anew if k % 2 else best.x) + (rng.normal(0, .2, len(base)) if k > 1 else 0)
            r = least_squares(residual, x0, jac=jacobian, loss="soft_l1", f_scale=.05, max_nfev=60)
            if best is None or r.cost < best.cost:
                best = r
    units = {k: keys[k][1] for k in keys}
    (SERVERS / f"{server}.server").write_text(with_facts(server, dict(zip(keys, np.exp(best.x))), units, note))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--fit", help="a server's name, or all")
    args.add_argument("--between", action="store_true", help="of the fit: only what is between servers")
    args.add_argument("--starts", type=int, default=4)
    args.add_argument("--check", action="store_true")
    a = args.parse_args()
    bad = []
    fabrics = [s for _, s in CHIPS.values()] + ["mi355x-8"]
    for server in fabrics if not a.between else []:
        if a.fit in (server, "all"):
            keys = dict(INSIDE)
            if facts_of(server).get("nvls") and facts_of(server).get("host_gpus", "8") == "8":
                keys |= NVLS
            if facts_of(server)["fabric"] == "pcie":
                keys |= CROSSED
            file = "logs" if server == "mi355x-8" else "nccl"
            fit(server, keys, inside_rows(server), f"fitted: tools/fit_net.py to tests/net/{file}.csv", a.starts)
    for server in JOINED:
        if (a.fit in (server, "all") or a.between) and server in CARDS:
            fit(CARDS[server], BETWEEN, between_rows(server), "fitted: tools/fit_net.py to tests/net/logs.csv", a.starts, 0.1)
    for server in dict.fromkeys(fabrics + list(JOINED)):
        if a.fit and a.fit not in (server, "all"):
            continue
        print(server)
        for rows in (inside_rows(server), between_rows(server)):
            if rows:
                apart = errors(rows, ask([r[0] for r in rows], str(ROOT / "data")))
                most = BOUNDS.get(server, (1e9, 1e9)) if rows[0][4] <= 8 or server == "p5" else (1e9, 1e9)
                bad += [server] if apart[0] > most[0] or apart[1] > most[1] else []
    if a.check and bad:
        sys.exit(f"worse than its bound: {', '.join(bad)}")


main()
