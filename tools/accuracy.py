#!/usr/bin/env python3
"""Compares `weft estimate` with libtpu's own estimates (tests/sim/sets.toml says what each set is), with XLA on GPUs and with published runs.

usage: accuracy.py BUILD                   all tables: printed, and written between their marks into docs/accuracy.md and docs/accuracy/
       accuracy.py BUILD --worst [CHIP [SET]]  where to look next: the 20 rows of a chip (tpu-v5e) that are furthest off, without sets that nobody may look at
       accuracy.py BUILD --gate [--write]  a sample in seconds: fails where it is worse than tests/sim/ratchet.json says; --write makes that file anew
BUILD has the weft binary."""
import concurrent.futures as futures
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/sim"
BOUND = {"micro": (6, 30), "block": (10, 30), "step": (10, 30)}  # median; 90th percentile of micro, worst of the others
FEW = 8  # rows: of fewer, a median says little
GROUPS = ("micro", "block", "step", "first micro", "first block", "first step", "judge block", "judge step", "tune block", "tune step",
          "blind micro", "blind step", "first blind micro", "first blind step")
CHIPS = ["tpu-v2", "tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu7x"]


def estimates(weft, pairs, jobs=2, options=()):
    """(program, chip) pairs -> {pair: report}; many programs a process, one chip."""
    by_chip = {}
    for program, chip in pairs:
        by_chip.setdefault(chip, []).append(str(program))
    runs = [(chip, programs[i:i + 100]) for chip, programs in by_chip.items() for i in range(0, len(programs), 100)]

    def one(job):
        chip, programs = job
        p = subprocess.run([weft, "estimate", *programs, "--chip", chip, "--json", *options], capture_output=True, text=True)
        lines = p.stdout.splitlines() if len(programs) > 1 else [p.stdout]
        if len(lines) != len(programs) or not lines[0]:
            sys.exit(f"accuracy: {chip}: exit {p.returncode}: {p.stderr[-400:]}")
        return [((d["program"], chip), d) for d in map(json.loads, lines)]

    with futures.ThreadPoolExecutor(jobs) as pool:
        return dict(pair for pairs in pool.map(one, runs) for pair in pairs)


def estimate(weft, program, chip, *options):
    return next(iter(estimates(weft, [(program, chip)], options=options).values()))


def at(values, share):
    v = sorted(values)
    return v[min(len(v) - 1, int(share * len(v)))] if v else float("nan")


def table(title, rows):
    """rows: lists of cells -> text table and Markdown table; what nothing can be said of is a dash."""
    rows = [["-" if c == "nan" else c for c in r] for r in rows]
    width = [max(len(str(r[i])) for r in rows) for i in range(len(rows[0]))]
    text = [title] + ["  ".join(str(c).rjust(w) if i else str(c).ljust(w) for i, (c, w) in enumerate(zip(r, width)))
                      for r in rows]
    mark = ["| " + " | ".join(map(str, r)) + " |" for r in rows]
    mark.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(text) + "\n", "\n".join(mark) + "\n"


def compare(weft, folder, name, jobs):
    rows = list(csv.DictReader(open(DATA / "oracle" / name)))
    path = {r["program"]: str(folder / (r["program"] + ".mlir")) for r in rows}
    done = estimates(weft, [(path[r["program"]], r["chip"]) for r in rows], jobs)
    groups = {}
    for r in rows:
        d = done[path[r["program"]], r["chip"]]
        group = (r.get("part", "") + " " + r["group"]).strip()
        g = groups.setdefault((r["chip"], group), dict(cycles=[], peak=[], fits=[], names=[]))
        peak, want = float(r["peak_bytes"]), float(r["est_cycles"])
        if "first_cycles" in r:
            f = groups.setdefault((r["chip"], "first " + group), dict(cycles=[], peak=[], fits=[], names=[]))
            f["peak"].append(abs(float(r["first_peak"]) / peak - 1))
            f["cycles"] += [abs(float(r["first_cycles"]) / want - 1)] if want else []
            f["fits"].append(True)
        g["peak"].append(abs(d["peak_bytes"] / peak - 1) if peak else 0)
        g["fits"].append(d["fits"])  # every row here compiled, so it fits
        if want > 0:
            g["cycles"].append(abs(d["cycles"] / want - 1))
            g["names"].append((d["cycles"] / want - 1, r["program"]))
    return groups


def summary(groups):
    head = ["chip", "programs", "rows", "cycles median %", "p90 %", "worst %", "peak median %", "p90 %", "worst %", "fits %"]
    out, bad = [head], []
    for group in GROUPS:
        for chip in CHIPS:
            g = groups.get((chip, group))
            if not g:
                continue
            c, p = g["cycles"], g["peak"]
            cells = [100 * x for x in (at(c, .5), at(c, .9), max(c, default=0), at(p, .5), at(p, .9), max(p))]
            out.append([chip, group, len(p)] + ["%.1f" % x for x in cells] +
                       ["%.0f" % (100 * sum(g["fits"]) / len(g["fits"]))])
            if group.startswith("first") or len(p) < FEW:
                continue
            med, limit = BOUND[group.split()[-1]]
            tail = cells[1] if group == "micro" else cells[2]
            if cells[0] > med or tail > limit:
                bad.append(f"{chip} {group}: cycles median {cells[0]:.1f} % (bound {med}), tail {tail:.1f} % (bound {limit})")
            if cells[3] > 3 or cells[4] > 10:
                bad.append(f"{chip} {group}: peak median {cells[3]:.1f} % (bound 3), p90 {cells[4]:.1f} % (bound 10)")
    return out, bad


def near_limit(weft, folder):
    """Cases whose need is close to the memory of the chip: how often both say the same."""
    groups = {}
    for r in csv.DictReader(open(DATA / "oracle/limits.csv")):
        d = estimate(weft, folder / (r["program"] + ".mlir"), r["chip"])
        g = groups.setdefault(r["chip"], [0, 0, 0, 0.0])
        g[0] += 1
        g[1] += r["fits"] == "1"
        g[2] += d["fits"] == (r["fits"] == "1")
        g[3] = max(g[3], abs(d["peak_bytes"] / float(r["need_bytes"]) - 1))
    return [["chip", "cases", "fit", "agree %", "worst need %"]] + [
        [c, g[0], g[1], "%.0f" % (100 * g[2] / g[0]), "%.1f" % (100 * g[3])]
        for c, g in sorted(groups.items(), key=lambda x: CHIPS.index(x[0]))]


def published(weft, folder):
    """Published runs beside estimates: the table, errors now, first errors of the rows that were estimated before being looked at."""
    head = ["workload", "chip", "numbers", "attention", "mode", "published ms", "weft ms", "error %", "first error %", "source"]
    rows = list(csv.DictReader(open(DATA / "published.csv")))
    path, jobs, out, errors, first = {}, {}, [head], [], []
    for r in rows:
        f = folder / (r["program"] + ".mlir")
        if r["half"] in ("f16", "f32") and "bf16" in f.read_text():
            text = f.read_text().replace("bf16", r["half"])
            f = folder / (r["program"] + "." + r["half"] + ".mlir")
            f.write_text(re_constants(text, r["half"]))
        path[r["program"], r["half"]] = str(f)
        jobs.setdefault((r["attention"], r["mode"]), set()).add((str(f), r["chip"]))
    done = {(how, mode): estimates(weft, sorted(pairs), options=["--attention", how] + ["--eager"] * (mode == "eager"))
            for (how, mode), pairs in jobs.items()}
    for r in rows:
        ms = 1e3 * done[r["attention"], r["mode"]][path[r["program"], r["half"]], r["chip"]]["time_s"]
        want = 1e3 * float(r["items_per_step"]) / float(r["published_items_per_s"])
        errors.append(ms / want - 1)
        if r["first_ms"]:
            first.append(float(r["first_ms"]) / want - 1)
        out.append([r["workload"], r["chip"], r["half"], r["attention"], r["mode"], "%.4g" % want, "%.4g" % ms, "%+.0f" % (100 * errors[-1]),
                    "%+.0f" % (100 * first[-1]) if r["first_ms"] else "", r["source"]])
    return out, [abs(e) for e in errors], [abs(e) for e in first]


FAMILIES = (("matrix products", r"(b?mm|mmbias|mmacc)_"), ("convolutions", r"(conv|c4|convbnrelu)"), ("element-wise", r"(elt|cast|bcast|adam|sgdmom)"),
            ("moved arrays", r"(transpose|reshape|concat|slice|pad|ds|dus|onehot|gather|gatherax1|scatteradd)_"), ("sums", r"red_(sum|max|mean|prod|argmax)"),
            ("softmax, normalisation", r"(softmax|layernorm|batchnorm|xent|red_var)"), ("windows", r"(pool|rwin)"), ("sorts, top-k, running sums", r"(sort|topk|red_cumsum)"),
            ("random bits", r"(rng|dropout)"), ("loops", r"(loop\d+|scan\d+)_"), ("blocks and steps", r""))
BY_LIBRARY = ["--products", "library"]  # as XLA compiles where it may not try kernels
GAP = 0.3  # microseconds between two kernels of a CUDA graph on an H100, host kept out


def measured(weft, folder):
    """Runs on an H100 (tests/sim/gpu) beside estimates, by family: time, and the peak of programs that XLA did not autotune."""
    best = {}
    for r in csv.DictReader(open(DATA / "gpu/h100.csv")):
        us = float(r["device_us"]) + GAP * int(r["kernels"])
        if int(r["kernels"]) > 1:
            us = min(us, max(float(r["wall_us"]), float(r["device_us"])))
        if r["program"] not in best or us < best[r["program"]][0]:
            best[r["program"]] = us, float(r["peak_bytes"]), r["autotuned"] == "1"
    path = {}
    for name in best:
        program, _, half = name.partition(".") if name.endswith((".f16", ".f32")) else (name, "", "")
        f = folder / (program + ".mlir")
        if half:
            text = f.read_text().replace("bf16", half)
            f = folder / (name + ".mlir")
            f.write_text(re_constants(text, half))
        path[name] = str(f)
    done = {}
    for searched, options in ((True, []), (False, BY_LIBRARY)):
        done.update(estimates(weft, [(f, "H100-SXM") for name, f in sorted(path.items()) if best[name][2] == searched], options=options))
    groups = {title: [] for title, _ in FAMILIES}
    for name, (us, peak, _) in best.items():
        d = done[path[name], "H100-SXM"]
        plain = re.sub(r"^[a-z]\d?_(?=[a-z])", "", name)
        title = next((t for t, like in FAMILIES if re.match(like, plain)), FAMILIES[-1][0])
        groups[title].append((1e6 * d["time_s"] / us - 1, abs(d["peak_bytes"] / peak - 1)))
    rows = [["family", "programs", "bias %", "median %", "p90 %", "worst %", "peak median %"]]
    for title, errors in list(groups.items()) + [("all", [e for g in groups.values() for e in g])]:
        off = [abs(e[0]) for e in errors]
        rows.append([title, len(errors), "%+.0f" % (100 * at([e[0] for e in errors], .5)), "%.0f" % (100 * at(off, .5)), "%.0f" % (100 * at(off, .9)),
                     "%.0f" % (100 * max(off)), "%.1f" % (100 * at([e[1] for e in errors], .5))])
    return rows


SETS = {"people": "nets that people train", "small": "blocks and small steps", "micro": "single operations", "last": "nets, only medians seen",
        "mix": "set 23, steps and blocks", "read": "attention, normalisation", "drawn": "blocks and steps, drawn"}


def blind(weft, folder):
    """Runs on an H100 and an H200 that nothing was fitted to when they were made (tests/sim/gpu/blind.csv): now and first. Where a tenth is in products
    of f32 without XLA's search, which nobody runs so, time and energy are left out but of the column `all`."""
    rows = list(csv.DictReader(open(DATA / "gpu/blind.csv")))
    done = {}
    for searched, options in (("1", []), ("0", BY_LIBRARY)):
        done.update(estimates(weft, [(str(folder / (r["program"] + ".mlir")), r["chip"]) for r in rows if r["autotuned"] == searched], options=options))
    out = [["chip", "programs", "all", "time median, all %", "", "time bias %", "median %", "p90 %", "first median %", "p90 %", "peak median %", "p90 %", "joules", "bias %", "median %",
            "first median %"]]
    for chip, kind in sorted({(r["chip"], r["set"]) for r in rows}, key=lambda g: (g[0], list(SETS).index(g[1]))):
        times, every, first, peaks, joules, joules_first = [], [], [], [], [], []
        for r in (r for r in rows if (r["chip"], r["set"]) == (chip, kind)):
            d = done[str(folder / (r["program"] + ".mlir")), chip]
            us = float(r["device_us"]) + GAP * int(r["kernels"])
            us = min(us, max(float(r["wall_us"]), float(r["device_us"]))) if int(r["kernels"]) > 1 else us
            peaks.append(abs(d["peak_bytes"] / float(r["peak_bytes"]) - 1))
            every.append(abs(1e6 * d["time_s"] / us - 1))
            if float(r["tf32_us"]) > us / 10:
                continue
            times.append(1e6 * d["time_s"] / us - 1)
            first.append(abs(float(r["first_us"]) / us - 1))
            if r["joules"] and float(r["wall_us"]) < 1.25 * us:
                joules.append(d["energy_j"] / float(r["joules"]) - 1)
                joules_first.append(abs(float(r["first_joules"]) / float(r["joules"]) - 1))
        off = [abs(e) for e in times]
        out.append([chip, SETS[kind], len(every), "%.0f" % (100 * at(every, .5)), len(times), "%+.0f" % (100 * at(times, .5)), *("%.0f" % (100 * at(e, q)) for e in (off, first) for q in (.5, .9)),
                    *("%.1f" % (100 * at(peaks, q)) for q in (.5, .9)), len(joules)] +
                   (["%+.0f" % (100 * at(joules, .5)), "%.0f" % (100 * at([abs(e) for e in joules], .5)), "%.0f" % (100 * at(joules_first, .5))]
                    if joules else ["", "", ""]))
    return out


def planned(weft, folder):
    """XLA's plans for GPUs that were not there (tests/sim/gpu/compiled.csv) beside weft's: peaks, and how many kernels
    programs without loops have."""
    rows = [r for r in csv.DictReader(open(DATA / "gpu/compiled.csv")) if (folder / (r["program"] + ".mlir")).exists()]
    done = estimates(weft, [(str(folder / (r["program"] + ".mlir")), r["chip"]) for r in rows], options=BY_LIBRARY)
    out = [["chip", "set", "programs", "peak bias %", "median %", "p90 %", "kernels bias %", "median %"]]
    for chip, drawn in sorted({(r["chip"], r["set"]) for r in rows}):
        peaks, kernels = [], []
        for r in (r for r in rows if (r["chip"], r["set"]) == (chip, drawn)):
            d = done[str(folder / (r["program"] + ".mlir")), chip]
            peaks.append(d["peak_bytes"] / float(r["peak_bytes"]) - 1)
            if all(k["count"] == 1 for k in d["kernels"]):
                kernels.append(len(d["kernels"]) / float(r["kernels"]) - 1)
        out.append([chip, drawn, len(peaks), "%+.1f" % (100 * at(peaks, .5)), "%.1f" % (100 * at([abs(e) for e in peaks], .5)),
                    "%.0f" % (100 * at([abs(e) for e in peaks], .9)), "%+.0f" % (100 * at(kernels, .5)),
                    "%.0f" % (100 * at([abs(e) for e in kernels], .5))])
    return out


def powers(weft, folder):
    rows = [["workload", "chip", "published W", "weft W", "error %", "source"]]
    for r in csv.DictReader(open(DATA / "power.csv")):
        d = estimate(weft, folder / (r["program"] + ".mlir"), r["chip"])
        w = d["energy_j"] / d["time_s"] * float(r["devices"])
        rows.append([r["workload"], r["chip"], r["watts"], "%.0f" % w, "%+.0f" % (100 * (w / float(r["watts"]) - 1)), r["source"]])
    return rows


def re_constants(text, half):
    """Hexadecimal constants of bf16 (infinities) in the other type."""
    wide = {"f16": {"0xFF80": "0xFC00", "0x7F80": "0x7C00"}, "f32": {"0xFF80": "0xFF800000", "0x7F80": "0x7F800000"}}
    for a, b in wide[half].items():
        text = text.replace(f"dense<{a}> : tensor<{half}>", f"dense<{b}> : tensor<{half}>")
    return text



SEEN_AT_FIRST_SIGHT = ["unseen%d" % i for i in range(16, 24)] + ["wide%d" % i for i in range(12, 16)]
KINDS = (("micro", "operations"), ("block", "blocks of networks"), ("step", "train steps"))


def sets():
    with open(DATA / "sets.toml", "rb") as f:
        return tomllib.load(f)


def unpack(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for archive in sorted(DATA.glob("*/*.tar.xz")):
        with tarfile.open(archive) as t:
            for m in filter(tarfile.TarInfo.isfile, t.getmembers()):
                (folder / m.name).write_bytes(t.extractfile(m).read())


def quartet(cycles, peaks):
    return ["%.1f" % (100 * at(v, q)) for v in (cycles, peaks) for q in (.5, .9)]


def at_first_sight(tables):
    """The sets that were scored before anybody looked at them: then, and now."""
    out = [["programs", "rows", "cycles then: median %", "p90 %", "peak then: median %", "p90 %", "cycles now: median %", "p90 %", "peak now: median %", "p90 %"]]
    for kind, title in KINDS:
        then, now = ([], []), ([], [])
        for name in SEEN_AT_FIRST_SIGHT:
            for (_, group), g in tables[name].items():
                if group.split()[-1] == kind:
                    into = then if group.startswith("first") else now
                    into[0].extend(g["cycles"])
                    into[1].extend(g["peak"])
        out.append([title, len(now[1]), *quartet(*then), *quartet(*now)])
    return out


def fill(path, tables):
    """Puts each table between its marks."""
    text = path.read_text()
    for name, body in tables.items():
        text = re.sub(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda m: m[1] + body + m[2], text, flags=re.S)
    path.write_text(text)


def write_sets(tables, bad, limits):
    kinds = {"fit": "fitted to", "seen": "looked at since it was scored", "first": "never looked at"}
    parts = ["# Virtual TPUs: accuracy by set\n\nWritten by `make accuracy` from tests/sim/sets.toml; do not edit. Cycles: the sum over kernels of the estimates of libtpu's compiler"
             " (ahead of time, no device), against `weft estimate`. Peak: arguments and results, and the larger of device memory and on-chip memory at its fullest, as libtpu counts it."
             " Error: |weft / libtpu - 1|. Rows named `first`: the score before anybody looked at the set.\n"]
    for name, s in sets().items():
        parts.append(f"## {s['title']}\n\n`{name}`: {kinds[s['kind']]}. {s['about'].strip()}\n\n" + table("", summary(tables[name])[0])[1])
    parts.append("## Near the limit of memory\n\nPrograms sized to need 80 to 130 % of a chip's usable memory: does the compiler take them, and does weft say so?\n\n" + limits)
    parts.append(f"## Out of bounds\n\nBounds: operations 6 % median and 30 % at the 90th percentile for cycles, blocks and steps 10 % median and 30 % worst; peaks 3 and 10 %. Groups of {FEW} rows or"
                 " more.\n\n" + ("\n".join("- " + b for b in bad) if bad else "None.") + "\n")
    (ROOT / "docs/accuracy/tpu.md").write_text("\n".join(parts))


EVERY = {"micro": 10, "block": 4, "step": 4}  # of how many rows the gate takes one
SLACK = 1.05, 0.3  # of a figure of the ratchet: factor, and per cent added


def gate(weft, folder, write):
    """Medians and 90th percentiles over every so many rows of all sets, by kind: no worse than they were."""
    rows = {kind: [] for kind, _ in KINDS}
    for s in sets().values():
        by = {kind: [] for kind in rows}
        for r in csv.DictReader(open(DATA / "oracle" / s["file"])):
            kind = r["group"].split()[-1]
            if kind in by and float(r["est_cycles"]) > 0 and float(r["peak_bytes"]) > 0:
                by[kind].append(r)
        for kind, found in by.items():
            rows[kind] += found[::EVERY[kind]]
    path = {r["program"]: str(folder / (r["program"] + ".mlir")) for rs in rows.values() for r in rs}
    done = estimates(weft, [(path[r["program"]], r["chip"]) for rs in rows.values() for r in rs])
    now, worse = {}, []
    kept = DATA / "ratchet.json"
    was = json.loads(kept.read_text()) if kept.exists() else {}
    for kind, rs in rows.items():
        d = [done[path[r["program"]], r["chip"]] for r in rs]
        cycles = [abs(x["cycles"] / float(r["est_cycles"]) - 1) for x, r in zip(d, rs)]
        peaks = [abs(x["peak_bytes"] / float(r["peak_bytes"]) - 1) for x, r in zip(d, rs)]
        now[kind] = dict(zip(("cycles median %", "cycles p90 %", "peak median %", "peak p90 %"), map(float, quartet(cycles, peaks))), rows=len(rs))
        for what, value in now[kind].items():
            most = was.get(kind, {}).get(what)
            if what != "rows" and most is not None and value > most * SLACK[0] + SLACK[1]:
                worse.append(f"{kind}: {what} {value}, it was {most}")
    print(json.dumps(now, indent=1))
    if write:
        kept.write_text(json.dumps(now, indent=1) + "\n")
        return 0
    print("\n".join(["worse than tests/sim/ratchet.json:"] + worse) if worse else "no worse than tests/sim/ratchet.json")
    return 1 if worse else 0


def worst(weft, folder, chip="tpu-v5e", only=None, most=20):
    """Rows by how far off they are; the next thing to ask: WEFT_DUMP=why,kernels weft estimate PROGRAM --chip CHIP."""
    rows = []
    chip = chip if chip in CHIPS else f"tpu-{chip}"
    for name, s in sets().items():
        if s["kind"] != "first" and only in (None, name):
            rows += [(name, r) for r in csv.DictReader(open(DATA / "oracle" / s["file"])) if r["chip"] == chip]
    if not rows:
        sys.exit(f"accuracy: no rows of chip {chip}{f' in set {only}' if only else ''}; chips: {' '.join(CHIPS)}; sets: "
                 + " ".join(n for n, s in sets().items() if s["kind"] != "first") + " (others nobody may look at)")
    path = {r["program"]: str(folder / (r["program"] + ".mlir")) for _, r in rows}
    done = estimates(weft, sorted({(p, chip) for p in path.values()}))
    for what, key, column in (("cycles", "cycles", "est_cycles"), ("peak bytes", "peak_bytes", "peak_bytes")):
        off = [(done[path[r["program"]], chip][key] / float(r[column]), name, r) for name, r in rows if float(r[column]) > 0]
        off.sort(key=lambda x: -max(x[0], 1 / max(x[0], 1e-9)))
        print(table(f"{chip}: {what} over libtpu's", [["ratio", "libtpu", "set", "program"]] + [["%.2f" % q, "%.0f" % float(r[column]), name, path[r["program"]]]
                                                                                        for q, name, r in off[:most]])[0])
    return 0


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    if set(sys.argv[1:]) - set(args) - {"--worst", "--gate", "--write"}:
        sys.exit(__doc__)
    build = pathlib.Path(args[0] if args else "build")
    weft = str((build / "weft").resolve())
    if not os.path.exists(weft):
        sys.exit(f"accuracy: there is no {weft}: `make` builds it; another folder is the first argument")
    folder = build / "accuracy"
    unpack(folder)
    if "--gate" in sys.argv:
        return gate(weft, folder, "--write" in sys.argv)
    if "--worst" in sys.argv:
        return worst(weft, folder, *args[1:3])
    tables, bad = {}, []
    for name, s in sets().items():
        tables[name] = compare(weft, folder, s["file"], max(1, (os.cpu_count() or 2)))
        rows, out = summary(tables[name])
        bad += [f"{s['title']}: {x}" for x in out]
        print(table(s["title"], rows)[0])

    def shown(title, rows):
        text, mark = table(title, rows)
        print(text)
        return mark

    first_sight = shown("Scored at first sight", at_first_sight(tables))
    write_sets(tables, bad, shown("Near the limit of memory", near_limit(weft, folder)))
    fill(ROOT / "docs/accuracy/gpu.md", {"gpu": shown("Measured on an H100", measured(weft, folder)),
                                         "gpu_blind": shown("Measured on GPUs, blind", blind(weft, folder)),
                                         "planned": shown("Compiled for GPUs that were not there", planned(weft, folder))})
    rows, errors, first = published(weft, folder)
    print(table("Published runs", [r[:-1] for r in rows])[0])
    fill(ROOT / "docs/accuracy/published.md", {"published": table("", rows)[1], "power": shown("Published power", powers(weft, folder))})
    summed = [["published runs", "rows", "median %", "p90 %"]] + [[t, len(e), "%.0f" % (100 * at(e, .5)), "%.0f" % (100 * at(e, .9))]
                                                              for t, e in (("now", errors), ("at first sight", first))]
    fill(ROOT / "docs/accuracy.md", {"first_sight": first_sight, "published_sum": shown("Published runs, summed up", summed)})
    print("out of bounds:\n  " + "\n  ".join(bad) if bad else "all within bounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
