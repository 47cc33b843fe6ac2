#!/usr/bin/env python3
"""Compares `weft estimate` with libtpu's own estimates (tests/sim/oracle) and with published runs (tests/sim/published.csv).

usage: accuracy.py BUILD [--check]      BUILD has the weft binary; --check fails when a table row is worse than its bound.
Prints the tables, writes docs/accuracy.md."""
import concurrent.futures as futures
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

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


PAGE = """# How far the virtual chips can be believed

Written by `make accuracy`; do not edit. Cycles: sum over kernels of the estimates of libtpu's compiler (ahead of time, no
device), against `weft estimate`. Peak: arguments and results, and the larger of device memory and on-chip memory at its
fullest, as libtpu counts it. Error: |weft / libtpu - 1|.

## Programs from the oracle

{visible}
These programs, with libtpu's choices per operation, were read while the rules were written, and a few coefficients
(vector work beside the matrix unit, unfused loops) were tuned on them: the numbers are how well the model describes
them, not a blind test.

## Own sweep

{sweep}
Shapes drawn at random and compiled with the same libtpu: matrix products, convolutions, element-wise, reductions,
softmax, layer norm, transposes, pooling, loops. The law of matrix products and of loops was fitted on the first 248
of these programs (products: 0.1 to 3 % median); the rest were compiled afterwards to find what goes wrong, and some of
what they showed was put right.

## Own programs of every family

{families}
The families of the oracle's programs at shapes of their own (sorts, top-k, running sums, slices, padding, depthwise and
grouped convolutions, pooling, random bits, gathers, loops among them). The first table that was made of them, before
anything was put right, had medians of 4 to 9 % and 90th percentiles of 44 to 87 %; rules came from them since, so
that they are no longer blind.

## Fresh shapes of every family

{fresh}
Drawn at random and compiled when the rules above stood: a program of every family, and among convolutions as many
dilated, transposed, grouped, one- and three-dimensional ones as plain ones, which is harder than the oracle's mix.
`first`: the estimates before any of them was looked at, the blind test. The other rows: now, after rules came from the
running sums, sorts, pooling and unfused reductions among them.

## The oracle's own mix at other shapes

{mix}
Drawn at random, odd sizes among them: families in the oracle's proportions (a fifth products, an eighth convolutions), operations of its
library that its visible half does not use. `first`: before any of them was looked at, the blind test. The other rows: now, after
vector work was counted anew from single operations and rules came for running sums, reshapes, concatenations, scans and what
a tile of weights takes to load.

{last}
The same once more, drawn when those rules stood: `first` is where they stand blind. One converted array and one pool were put right
afterwards.

{blind}
And a third time, every generation. `first`: before any of them was looked at. Rules came afterwards for the windows of loops, copies and
reductions, and for v4's products of few columns.

{wide}
A fourth set: the oracle's mix at sizes drawn over several powers of ten, and as many programs again of what its library has beside it (grouped,
transposed, dilated, one- and three-dimensional convolutions, few channels, fp8, odd running sums, narrow embeddings, while loops).
`first`: before any of them was looked at. Rules came afterwards for the taps that share the array, gradients that lie turned, and
for what loops take to move a tile.

{wide2}
The same once more, drawn when those rules stood: `first` is where they stand blind. Afterwards gradients whose images lie in sublanes, running
sums along an outer dimension and softmaxes of short rows were put right.

{wide3}
Sixty more with sizes drawn, a third of them convolutions of the less usual kinds (1-D, 3-D, few groups, depthwise, transposed, few channels).
`first` was kept before any was looked at. Convolutions of a few groups have had a dimension of the groups since.

{wide4}
Sixty in the proportions of the oracle's own visible half and of nothing beside it, half of the sizes round and half odd. `first` was kept before
any was looked at, and none was: what a program like the oracle's meets.

{wide5}
The same draw with other numbers. Looked at since: products with the batch in sublanes, sums whose result is turned, what an operation takes in one
window, reshapes came from it.

{wide6}
Forty-two of a third such draw, estimated before any of them was compiled. Looked at since: what short arrays are stored and which
softmaxes are one kernel came from it.

{wide7}
Forty-two of kinds that no other set has (masks, rolls and flips, space to depth, heads, pairs of distances, gated and joined products,
quantised arrays, running maxima, sums with what they come from). `first`: before any of them was compiled. Looked at since: slices, stacks, what is
written in place, and reshapes far from products came from it.

{wide8}
Sixty of yet other kinds (losses, gates, windows and patches, shuffled channels, padding by edges, diagonals, stacks taken apart, rotations, products with what
follows them). `first`: before any of them was compiled; scored once more by totals before it was looked at: 8.6 % median and 77 % at the 90th percentile for cycles,
0 and 59 % for peaks. Looked at since.

{wide9}
A hundred and twenty, three or four generations each: half of them of the oracle's families in its proportions at other shapes, half of other kinds. `first`: before any
of them was compiled; of those of the oracle's families 1.5 % median and 23 % at the 90th percentile for cycles, 0 and 0.2 % for peaks; of the others 4.7 and 79 %, 0 and
35 %. Convolutions over images in lanes, joined rows, windows that slide, updates came from it.

{wide10}
A hundred and twenty drawn in the same way, compiled and scored once after that: of the oracle's families 1.3 and 14 %, 0 and 1.1 % for peaks; of the others 3.2
and 73 %, 0 and 46 %. Looked at since, with the next one.

{wide11}
Sixty of the oracle's families, sixty-six of the other kinds, forty-eight of kinds that no set before had (spellings of einsum, unusual convolutions and pools,
normalisations, pieces of attention, losses, optimizers, scans, indexing, masks, images, random numbers, conversions, odd reductions). `first`: by a build from before
any of them was drawn; 1.3 % median and 12 % at the 90th percentile for cycles, 0 and 0.4 % for peaks; 2.9 and 42 %, 0 and 14 %; 3.4 and 57 %, 0 and 46 %. The last two parts were
looked at since, and of the first one program: a reshape.

{wide12}
Thirty-two kinds that people write themselves (index arithmetic, diagonals, running products, one-hot products, segment sums, filters, quantised
products, recurrent cells, losses with their gradients, routing of experts), two shapes each on two or three generations. `first`: by a build from before any was drawn, 21 %
median and 82 % at the 90th percentile for cycles, 0.2 and 50 % for peaks. Looked at since.

{wide13}
Thirty other such kinds and six of those at other shapes, drawn before anything was mended for the set before this one. `first`: by the build with what was learned from that, scored
once: 10 and 81 %, 0.3 and 58 % for peaks; the older build had 12 and 81 %, 0.4 and 72 %. What is learned from one set of kinds moves others little. Looked at since.

{wide14}
The thirty kinds that were left of those, two shapes each on two or three generations, compiled and scored once before anything else was mended: `first`, 8.3 % median
and 42 % at the 90th percentile for cycles, 0.4 and 44 % for peaks. Fifteen kinds looked at since; three rules came from them (tables looked up by matrices, pads that are reshaped,
sums over several sides).

{wide15}
Twenty-two kinds that no set before had (cells, attention variants, losses, optimizers, pools, stencils, bags of embeddings, power iteration), written after
those rules and scored once: 4.1 and 34 %, 0 and 20 % for peaks. Not looked at: only the list of errors was read.

## Own blocks and steps

{blocks}
Architectures that the oracle's programs do not have (Llama, GPT, BERT, mixture of experts, ViT, MLP-Mixer, T5, MBConv,
ResNet, squeeze-and-excite, DCGAN, VAE, denoising networks, LSTM, GRU, graph convolution; adam, momentum, LAMB, clipping;
f32 and bf16), blocks and whole training steps, compiled with the same libtpu. The rows of `tune` were looked into and
rules came from them. Of `judge` the totals were seen while the rules changed; two of them (the plain network of
convolutions, the small BERT with LAMB) were looked into in the end: the blind test is the next table's.

## Unseen programs

{unseen}
Compiled when the rules above stood, of other architectures (DLRM, NeRF, LoRA, decoding with a cache, adafactor, lion, RNN-T,
ConvNeXt, plain convolutional networks, SwiGLU, a GPT as a scan in f32) and of the oracle's blocks at other shapes. `first`: the
very first estimate, before any of them was looked at (tests/sim/oracle/unseen.csv keeps it): the blind test. The other rows: now,
after rules came from what some of them showed (masks of pooled images, concatenations inside products, results packed
once, attention that only goes forwards), so no longer blind.

## Unseen programs, second set

{unseen2}
Compiled later, of other architectures again (actor and critic, encoder and decoder, contrastive pairs, a Perceiver, dilated
convolutions, Llama with grouped queries, a segmenting U-Net, attention between recurrent networks, MobileNet, VGG, word vectors,
graph attention; windowed, linear and forward attention, DenseNet). `first`: before any of them was looked at. Afterwards rules
came from some of them: dimensions of transposed products, rows that keep their order, arguments turned as bf16.

## Unseen programs, third set

{unseen3}
Blocks and steps of common architectures at other widths and batches (attention, GPT, BERT and Llama layers, a ViT, an LSTM,
an MLP, convolution blocks). `first`: before any of them was looked at. Afterwards rules came that the older sets and these
showed: what goes on chip first, how long it may wait there, a third order of kernels, which gradients are stored.

## Unseen programs, fourth set

{unseen4}
Blocks and small steps of other architectures at widths and batches of their own (mixer, T5, shifted windows, mixture of experts, inverted
bottleneck, Llama with two groups; Lion, recommendation, LSTM language model, GRU encoder and decoder, autoencoder, ViT, U-Net, depthwise
networks). `first`: before any of them was looked at. The other rows: now, after the place of values on chip, when transfers begin
and in which pieces, weights multiplied by constants and gated units got rules, of which this set gave one (the weights).

## Unseen programs, fifth set

{unseen5}
Small steps and blocks at batches of 1 to 256, each with an optimizer of its own (plain, momentum, Nesterov, adam, adamw, clipping,
adafactor, RMSprop, Lion): convolutional and residual networks, U-Nets, LSTM, GRU, encoders, attention with grouped queries, ViT,
mixer, mixture of experts, word vectors, bags of words, autoencoders, graph convolution, group normalisation. `first`: before any of
them was looked at. Afterwards rules came from some of them: what is cut into parts is stored, which loops join which, eight results a
kernel at most, stacks of loops, short vectors, tables. Images of small batches, which the compiler cuts into
strips that it counts as batch, have none yet.

## Unseen programs, sixth set

{unseen6}
Drawn when those rules stood, of other shapes and nets again (a VGG, LSTMs in both directions, dilated convolutions over time, graph
attention, a VAE, attention between GRUs, depthwise convolutions, cross attention). `first`: before any of them was looked at.

## Unseen programs, seventh set

{unseen7}
Architectures that no other list has (diffusion transformer, retention, Perceiver, TabNet, state space, set transformer, actor and critic with
clipping, normalising flow, capsules, meta-learning, neural ODE, radial bases, low-rank adapters and so on; f32 and bf16, with SGD, Adam, LAMB,
Adafactor, Lion and others). `first`: before any of them was looked at. Rules came afterwards for the vector unit's slots beside products,
rows repeated over few lanes, and sums over padded halves.

## Unseen programs, eighth set

{unseen8}
Drawn with the seventh and cut from it at random, looked at only when those rules stood. `first`: where the model stood blind.

## Unseen programs, ninth set

{unseen9}
Twenty-eight steps and four blocks of architectures that no other list has (ConvMixer, detection with queries, sines, crossed features,
factorization machines, collaborative filtering, sequential recommendation, gathered and dense graphs, molecules, Conformer, speech in one
dimension, DQN, SAC, IMPALA, scores, tied and shared weights, RWKV, mixing by cosines and so on), each on three or four generations.
`first`: before the rules that followed the eighth set; they came without a look at this one, so the other rows are blind too,
but for square weights and gathered rows that are turned.

## Unseen programs, tenth set

{unseen10}
Seventeen steps and three blocks of architectures new once more (point sets, shuffled channels, attention over fields, links of a graph,
self-distillation, linear recurrences by associative scans, memory networks, masked autoencoders, images against texts, parallel
feed-forward layers, forecasting by residuals and by patches, super-resolution, pyramids, multiple instances, world models, graph
transformers), each on three generations. `first`: before the rules that came from what libtpu logs of its fusions; no rule came from a
look at these programs. Most were looked at since: the order of dimensions, concatenations and what a gradient is stored for follow from them.

## Unseen programs, eleventh set

{unseen11}
Nineteen steps and three blocks: masked convolutions, images in scales, pooling for attention, kernels for attention, gated convolutions with a scan,
correlated views, attention to a history, compressed interactions, links by rotation, equivariant and gated graphs, dilated pyramids, residual
super-resolution, attention to reduced images, decisions as sequences, mixing in time, co-attention, exponential gates, angular margins; attention
across heads, cheap channels, maxima of units. `first`: before the rules that followed the tenth set; none came from a look at these programs. What a few
of those rules changed in the sums over all of them was seen, and changed no rule. Most were looked at since: slices of scans follow from them.

## Unseen programs, twelfth set

{unseen12}
Eleven steps, each on v5e and another generation, and six blocks on four: grouped convolutions, five convolutions and three large layers, parallel branches of
convolutions, masked patches, contrast with a queue, characters by a plain recurrence, wide and deep, attention to a memory, distillation, an hourglass, replaced
words; attention, transformer layers, a perceptron, a convolution with batch norm, a bottleneck. `first`: before the rules of its round; none came from a look at
these programs, and they were scored once. Afterwards the hourglass showed how images of small batches lie where they are repeated and cut.

## Unseen programs, thirteenth set

{unseen13}
Eleven steps and six blocks, each on v5e and two other generations where the compiler finished: convolutions of two widths side by side, convolutions before
attention, a bank of convolutions before a recurrence, attention without keys, field-aware factors, branch and trunk, gated experts of several tasks, transposed
convolutions, recurrences as scans, attention of a class, penalised gradients; rotated heads, a depthwise block, two residual ones, perceptron, f32 transformer layer.
`first`: before the rules of its round; none came from a look at these programs, and they were scored once. Afterwards the depthwise block showed, with
two of other sets, which pixels are rows of a product and what is stored for it.

## Unseen programs, fourteenth set

{unseen14}
Thirteen blocks, each on three generations, and seven steps on v5e, in the proportions of the oracle that is shown: attention, transformer layers (after and before
normalisation, decoding, Llama's with shared keys), gated attention, convolution with batch norm, bottleneck, inverted, depthwise and strided residual blocks, a
step up with its skip, perceptron; small convolutional nets, patches, GPT and BERT as scans, DavidNet, f32 perceptron. All were compiled. `first`: before the
rules of its round; none came from a look at these programs, and they were scored once.

## Unseen programs, fifteenth set

{unseen15}
Networks as users write them with flax and optax (convolutions with average pools, residual ones with batch norms, vision transformers, recurrences, mixer, autoencoder,
graph convolution, policies, tables with dot products, a state space), and blocks, BERT and GPT as scans in the oracle's manner; three generations each where the compiler
finished. `first`: before any of them was looked at. Rules came afterwards from two: averages of clipped convolutions, tables under masks (and, by older sets,
updates in pairs); the blocks of ConvNeXt were looked at without a rule.

## Unseen programs, sixteenth set

{unseen16}
The same kinds at other shapes, with other nets, drawn and compiled when those rules stood: all that the compiler had done in twenty minutes, scored once.

## Unseen programs, seventeenth set

{unseen17}
Networks that no set before has, most with the oracle's own builders (VGG, T5 with relative positions, squeeze and excitation, separable and densely connected
convolutions, Perceiver, linear attention, encoder and decoder), and its kinds at other shapes; three generations each where the
compiler finished in fifty minutes. Scored once.

## Unseen programs, eighteenth set

{unseen18}
The oracle's kinds again (attention, layers of BERT and GPT, MLPs, convolutions with batch norms, bottlenecks) at other shapes, and small steps: an encoder that classifies, a language
model, an MLP-Mixer, MLPs, a gated recurrence, a small DavidNet; two to four generations each where the compiler finished in an hour
(no scans of layers, no MNIST). `first`: before any was drawn. No rule came from them.

## Unseen programs, nineteenth set

{unseen19}
The oracle's mix: twenty train steps on v5e (MLPs, autoencoders, DLRM, GRU, LSTM, encoders and language models in f32 and bf16, ViT, MNIST networks, U-Net, ResNet, DavidNet, encoder and decoder,
scans of BERT and GPT), seven blocks on three generations each, and a program of each of 23 kinds on one. All that were drawn were compiled but a slice written in place, which
libtpu made a loop of. Scored once; `first`: before any was drawn.

## Unseen programs, twentieth set

{unseen20}
Drawn after the order of kernels had been read in libtpu's logs, scored once: 22 train steps on v5e and thirteen more on the other generations, six blocks on three generations each, a program of
each of 21 kinds on one. Two of the 75 have no figure: one that libtpu made a loop of, one whose text could not be read. `first`: that build; the build before that rule had 2.9 and 11.2 %
(median, 90th percentile) for the peaks of the steps on v5e, this one 2.3 and 8.0.

## Unseen programs, twenty-first set

{unseen21}
Train steps for every generation and not for v5e above all: seventeen networks written anew at other shapes, most of kinds that earlier lists have in some form (highway layers, a variational autoencoder, sines and a skip, graph convolutions, points,
factorization machines, plain and bidirectional recurrences, attention beside its MLP, a gated decoder, text convolutions, residuals after activation, squeezed convolutions, an actor and
critic, distillation, experts that all work, attention to seeds), three generations each; four blocks on two, and eleven single operations. Scored once; `first`: the build from before any
was drawn. Four to eight steps a generation: so few that the 90th percentile is the worst. Of 51 steps four have no row, as libtpu's text could not be read (three of them on TPU7x); two more networks and one operation were drawn but never reached the compiler, for
a mistake in how they were written.

## Unseen programs, twenty-second set

{unseen22}
Twelve blocks on all seven generations and ten train steps on v5e, as the oracle's own half is made, of other architectures and shapes (ConvNeXt, inverted residuals,
squeeze and excitation, grouped queries, rotary positions, gated layers, cross attention, experts, an LSTM, a U-Net, patches of images; ViT, WRN, VGG, MobileNet, a GRU, GPT with
rotary positions, BERT with tied embeddings, an autoencoder, DLRM, MLP-Mixer). Scored once; `first`: the build from before any was drawn. The worst, 69 to 89 % too few on
every generation, was one operation: the gradient of the images that patches are cut from. XLA exchanges kernel and image there and multiplies mostly gaps; how long that takes came from it.

## Unseen programs, twenty-third set

{unseen23}
Twenty blocks on all seven generations and twelve train steps on v5e, in the mix of the oracle's own and of what its library of builders has beside: decoders that look at an
encoder, grouped queries with rotary positions, depthwise and strided convolutions, layers of ViT, BERT, GPT and Llama, VGG, ResNet-18, MobileNet, LeNet, an encoder with a
decoder, BERT-large, GPT-2 medium, an LSTM language model. Scored once; `first`: the build from before any was drawn, which was within all bounds on all generations.

## Convolutions: taps, strides, channels apart

{strides}
Convolutions of 28x28, gradients at a stride of two and depthwise ones, made after the set before had shown those on v6e and TPU7x up to 46 % wrong: taps share the columns of an
array of 256, not its rows; each pixel of a spread image loads all of its weights; depthwise ones have channels in lanes wherever these lie. The rules came from these very
programs. Gradients of depthwise filters are what is left.

## Programs of several devices

{exchange}
All that is drawn of one device has nothing to say of what is exchanged: the oracle's 96 programs of 4 to 512 devices (all-reduce, all-gather,
reduce-scatter, all-to-all, permute), 240 of our own (other shapes, odd rows, tensor parallel and FSDP products, data-parallel steps), and, after rules
had come from those, 246 more whose shapes and meshes were drawn by lot, scored once: *blind*. *first*: estimates by the build that knew no such
rule. Of the blind ones one rule came since, scatters over more devices than form a ring (12 rows, half of libtpu's peak before). What an exchange takes on
the network has no estimate and is not in these cycles. Known and wrong: products whose gather libtpu takes apart into a loop of permutes ("collective
matmul": 12 % less memory here, and a tenth of the cycles), all-gathers over 64 chips of v4 and v5p, which it sums with zeros.

## Programs drawn for peak memory

{peaks}
Blocks and steps at odd sizes (f32 and bf16, recomputation, scans, accumulated gradients, several optimizers, narrow tables). `first`: before any
of them was looked at. Rules came afterwards for results over arguments on chip, what windows leave of it on TPU7x, and narrow tables.

{peaks2}
Drawn when those rules stood, and not looked into since.

{peaks3}
Other architectures (mixers, U-Nets, graphs, flows, retention, mixtures of experts, decoding) and optimizers (Lion, LAMB, Muon, AdaDelta, moving
averages), on all generations. `first`: before any of them was looked at.

{peaks4}
Common blocks at shapes of their own (attention, BERT, GPT, Llama, bottlenecks, convolution with normalisation), and whole steps (ResNet, ViT, BERT, GPT as
layers and as a loop, LSTM, recommendation, point clouds, an autoencoder, a graph), on all generations. `first`: before any of them was looked at.

{peaks5}
The same kinds at other shapes, with other nets (down-sampling and basic residual blocks, attention across, gated units, a plain convolutional net, sets,
a graph, a policy), for judging alone. `first`: before the rules of that day and before any of them was compiled. One row
(sets on v3) was looked at later, to see how far a rule reaches.

{peaks6}
And a sixth time, mostly on v5p, v6e and TPU7x, with nets of other kinds again (one key for all heads, mixers, normalisation before convolution, depthwise
and pointwise, two towers, residual layers of tables, an autoencoder, tokens each with a class). `first`: before any of them was compiled. Looked at since:
that gradients with a narrow bias are stored came from it.

{peaks7}
And a seventh time, other architectures again (attention in windows, inverted bottlenecks, densely connected layers, latents that read a long input, gated and
parallel layers, group normalisation, convolutions alone, a variational autoencoder, attention in a graph, tables with products of pairs, convolutions of
text, two critics). `first`: before any of them was compiled. Looked at since: attention in a graph and convolutions of text, for rows of one element and
for updates over turned tables.

{peaks8}
And an eighth time, other architectures still (attention with short keys, over a grid, between channels, in neighbouring windows; features scaled by a
condition, weights with a norm of their own, convolutions of time apart from space; rows of tables as tokens, a field of light, sequences scored as a whole,
returns as distributions, unrolled shrinkage, invertible convolutions, triplets, learned functions on edges, a critic with a gradient's norm).
`first`: before any of them was compiled. Each row's error has been seen since, no plan; their totals on TPU7x showed that a rule of the day said of all exponentials what was read
of softmaxes. Rows that took libtpu too long are not in it.

## Convolutions of small batches

{images}
Single convolutions, their gradients, blocks and small steps of convolutional nets with 1 to 12 images to a batch. `first`: the estimate of a
model that knew nothing of the parts that the compiler cuts such images into. The rules that came since are the compiler's own, from
other programs; what they gave here was looked at afterwards.

## Near the limit of memory

{limits}
Programs sized to need 80 to 130 % of a chip's usable memory: does the compiler take them, and does weft say so? Where they disagree the
compiler recomputes values to fit, which weft does not do.

## Measured on a GPU

{gpu}
The oracle's programs and the nets of the tables above, run by XLA (JAX 0.11.2) on an H100 80GB HBM3: the sum of a program's kernels by
CUPTI, and 0.3 us between two of them; how is told in tests/sim/gpu. *Bias*: the median of weft / measured - 1. Peak: what XLA
plans. Loops, sums, sorts, windows, products and convolutions have their rates from these rows, so this is how well simple laws describe
them, not a blind test; of whole steps, kernels that hold rows, counters of loops and the time between kernels were read. Most rows are of cuBLAS without XLA's search (`autotuned` 0), whose workspace of 32 MiB
is most of the peak of a single product; searched, small ones are Triton's and have none: `--products`.
Other GPUs have no such rows: they take the laws, with their own clocks, units, caches and bandwidth.

## Measured on GPUs, blind

{gpu_blind}
Nets at sizes that people train, blocks and small steps drawn from the tables above, single operations, run by XLA (JAX 0.11.2) on an H100 80GB HBM3 and
an H200. *first*: what the estimate was before they were measured. Scatters, top-k, the time until a kernel's first numbers arrive and the law of
power came from them since, but for the last set: no rule was read off its programs, though its medians were seen while rules were made. *all*: with the
programs of which a tenth or more is products of f32 that ran without XLA's search, as nobody runs them; they are left out of what follows, which was
decided when they had been seen. On 2026-11-27 three sets more: *set 23* of the tables above, from which rules came then (masks that rows share, rows of 128 bytes that are
turned, sums of few columns, stacks of loops), *attention, normalisation*, made to find these rules, and blocks and steps drawn by lot and measured when they stood: there
*first* is what they do blind. Peak: with cuBLAS's workspace where XLA did not search (`--products library`). Joules: of the boards' own counters, of programs that do not wait for the host.

## Compiled for GPUs that were not there

{planned}
Blocks and small steps, compiled ahead of time by XLA (JAX 0.10.2, CUDA 13) from a description of the chip (`tools/gpu_compile.py`), cuBLAS for
all products (`--products library`), its workspace included. Where a program was also measured, the two compilers plan the same peak and the same
kernels but for a few. *drawn*: chosen by lot from the newest of the sets above. Before anybody had looked at their plans the peak was off by 6.9 %
median, 33 % at the 90th percentile (H100, workspace left out); by what the plans of *others* then showed of where XLA puts arrays, by 1.4 and 13 %.
*second*: 104 more, likewise, for the five chips. With what was known by then the peak was off by 4.7 and 17 % (A100), 4.2 and 15 (B200), 1.6 and 12 (H100),
9.4 and 33 (L4), 25 and 47 (T4); the table has them after rules that plans for the T4 showed, and no others of these were looked at then; later some were.
*third*: 80 more, 16 a chip, drawn when the last rules had been made from other plans: 5.1 and 12 % before these rules and 0.7 and 5 with them (A100,
0.4 by one that followed), 1.8 and 18, 1.7 and 11 (L4), 2.5 and 12, 1.9 and 12 (B200), 1.2 and 9 both (H100), 4.6 and 15, 4.4 and 15 (T4).

What XLA does with memory on a GPU, as its plans show: a temporary never takes the place of one that it is computed from, unless it is an update in place;
results and donated arguments are there from the beginning, and what is no larger lies in them until they are made, the largest first, each in the
smallest that will do; the peak is the most that lives at once, however scattered; cuBLAS's workspace lives as long as its product.
Of bf16 a GPU has few instructions (sums and products from Hopper on, the larger of two from Ampere on, exponentials and logarithms always): the rest is f32,
and what passes from one such operation to the next is not rounded. cuDNN and cuBLAS read what they add from memory. Concatenations are put together by
whoever reads them. A long sum is cut where least is left over; how many columns a block sums up goes by the narrowest operand.
What a kernel looks at element by element counts once for all its operations where XLA weighs storing against computing again; a product that is turned
is multiplied the other way round; cuBLAS writes the type that it reads, and its workspace may lie in a result's memory.
A sum along few columns has few blocks of threads: what is costly to compute is stored before it. Rows that leave much of a Triton block empty are
summed up once (H100, B200). A gather computes only what it takes; the gradient of taking one number a row is scattered into the wide array in place.
On the T4, which has no bf16, XLA computes in f32 and rounds only for what moves elements (transposes, selections, loops' state); so does weft: on 24
programs drawn by lot the peak was off by 25 % median, 47 % at the 90th percentile before, 5 and 24 % after. What else is off are mostly
convolutional nets: zeros that maxima and gradients of pools share are arrays there, filled early and all at once.

## Published runs

{published}
Median error {median:.0f} %, {p90:.0f} % at the 90th percentile. *First error*: of rows that were estimated before anybody looked at them, by the
rules of that day: median {first:.0f} %, {first90:.0f} % at the 90th percentile. What they showed became rules: f32 convolutions that are turned for matrix
units, Winograd, groups of few features, gradients of weights of small batches, products at the speed that training sustains.

A GPU has a handful of coefficients (`fit.*` in data/chips: shares of bandwidth, matrix and vector peak, launch, ramp, Winograd); a wave's
fill, what convolutions lose and how well arithmetic and transfers overlap are the same for all.
*Attention*: `fused` where the published code called FlashAttention, cuDNN or Pallas for it (`--attention fused`). The rows of MPT, Llama and other
decoders are one of eight GPUs, or of as many TPUs as the source names, that share parameters, slots and gradients (FSDP), with the published batch a device;
their first errors include a mask that no such kernel reads. TensorFlow's BERT inference is too fast here on the T4 (also in f32, where V100s are
met) and on the A100, where it was published as equally fast in f16 and tf32: neither is understood.
*Mode*: `compiled`, as XLA would; `eager` (`--eager`) where the published code was PyTorch without torch.compile or TensorFlow 1 without XLA: no
fusion but what the frameworks' own kernels do. No coefficient was fitted for it: its 46 rows went from 15 to 11 % median
and from 27 to 21 % at the 90th percentile on the day it was written, and to 10 % when masks and scales became operations of their own, which the rows of
BERT fine-tuning had shown. It counts the fewest operations that a framework can do with, so what is still too fast
here (BERT fine-tuning, PyTorch's Transformer) runs more. The host's time an operation, 5 us, is that of launches. A published run also contains what a step does not (input, evaluation), so an error of 10 % says little.

## Published power

{power}
Watts of one chip while it trains. Published ones are averages over other programs and days, too.

## What has no reference

Gathers, scatters, sorts, collectives, random bits and dynamic updates have no estimate in libtpu: they are modelled
from the bytes and rows they move and carry `"modelled": true`, cycles 0, and a time. Exposed transfers likewise.

## Out of bounds

Bounds: micro cycles 6 % median, 30 % at the 90th percentile; blocks and steps 10 % median, 30 % worst; peak 3 % median,
10 % at the 90th percentile. Groups of {few} rows or more of the tables above, as they are now.

{bad}"""


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    build = pathlib.Path(args[0] if args else "build")
    weft = str((build / "weft").resolve())
    folder = build / "accuracy"
    folder.mkdir(parents=True, exist_ok=True)
    for archive in sorted(DATA.glob("*/*.tar.xz")):
        with tarfile.open(archive) as t:
            for m in filter(tarfile.TarInfo.isfile, t.getmembers()):
                (folder / m.name).write_bytes(t.extractfile(m).read())
    jobs = max(1, (os.cpu_count() or 2))
    tables, bad = {}, []
    for name, file, title in (("visible", "rows.csv", "Programs from the oracle"), ("sweep", "sweep.csv", "Own sweep"),
                              ("blocks", "blocks.csv", "Own blocks and steps"),
                              ("families", "families.csv", "Own programs of every family"),
                              ("unseen", "unseen.csv", "Unseen programs"),
                              ("unseen2", "unseen2.csv", "Unseen programs, second set"),
                              ("unseen3", "unseen3.csv", "Unseen programs, third set"),
                              ("unseen4", "unseen4.csv", "Unseen programs, fourth set"),
                              ("unseen5", "unseen5.csv", "Unseen programs, fifth set"),
                              ("unseen6", "unseen6.csv", "Unseen programs, sixth set"),
                              ("unseen7", "unseen7.csv", "Unseen programs, seventh set"),
                              ("unseen8", "unseen8.csv", "Unseen programs, eighth set"),
                              ("unseen9", "unseen9.csv", "Unseen programs, ninth set"),
                              ("unseen10", "unseen10.csv", "Unseen programs, tenth set"),
                              ("unseen11", "unseen11.csv", "Unseen programs, eleventh set"),
                              ("unseen12", "unseen12.csv", "Unseen programs, twelfth set"),
                              ("unseen13", "unseen13.csv", "Unseen programs, thirteenth set"),
                              ("unseen14", "unseen14.csv", "Unseen programs, fourteenth set"),
                              ("unseen15", "unseen15.csv", "Unseen programs, fifteenth set"),
                              ("unseen16", "unseen16.csv", "Unseen programs, sixteenth set"),
                              ("unseen17", "unseen17.csv", "Unseen programs, seventeenth set"),
                              ("unseen18", "unseen18.csv", "Unseen programs, eighteenth set"),
                              ("unseen19", "unseen19.csv", "Unseen programs, nineteenth set"),
                              ("unseen20", "unseen20.csv", "Unseen programs, twentieth set"),
                              ("unseen21", "unseen21.csv", "Unseen programs, twenty-first set"),
                              ("unseen22", "unseen22.csv", "Unseen programs, twenty-second set"),
                              ("unseen23", "unseen23.csv", "Unseen programs, twenty-third set"),
                              ("strides", "strides.csv", "Convolutions: taps, strides, channels apart"),
                              ("exchange", "exchange.csv", "Programs of several devices"),
                              ("peaks", "peaks.csv", "Programs drawn for peak memory"),
                              ("peaks2", "peaks2.csv", "The same once more, blind"),
                              ("peaks3", "peaks3.csv", "Other architectures and optimizers"),
                              ("peaks4", "peaks4.csv", "Common blocks and steps, blind"),
                              ("peaks5", "peaks5.csv", "Common blocks and steps, blind, again"),
                              ("peaks6", "peaks6.csv", "Common blocks and steps, blind, a third time"),
                              ("peaks7", "peaks7.csv", "Other blocks and steps, blind"),
                              ("peaks8", "peaks8.csv", "Other blocks and steps, blind, again"),
                              ("images", "images.csv", "Convolutions of small batches"),
                              ("fresh", "fresh.csv", "Fresh shapes of every family"),
                              ("mix", "mix.csv", "The oracle's own mix at other shapes"),
                              ("last", "last.csv", "The same mix once more"),
                              ("blind", "blind.csv", "The same mix a third time"),
                              ("wide", "wide.csv", "A wider mix"),
                              ("wide2", "wide2.csv", "A wider mix once more"),
                              ("wide3", "wide3.csv", "A wider mix a third time"),
                              ("wide4", "wide4.csv", "The oracle's own mix, blind"),
                              ("wide5", "wide5.csv", "The oracle's own mix, blind, again"),
                              ("wide6", "wide6.csv", "The oracle's own mix, blind, a third time"),
                              ("wide7", "wide7.csv", "Other kinds of operations, blind"),
                              ("wide8", "wide8.csv", "Other kinds once more, blind"),
                              ("wide9", "wide9.csv", "The oracle's families and others, blind"),
                              ("wide10", "wide10.csv", "The oracle's families and others, blind, again"),
                              ("wide11", "wide11.csv", "The oracle's families, others, and kinds that nothing knew, blind"),
                              ("wide12", "wide12.csv", "People's own kernels"),
                              ("wide13", "wide13.csv", "People's own kernels, other kinds, blind"),
                              ("wide14", "wide14.csv", "People's own kernels, the rest of those kinds, blind"),
                              ("wide15", "wide15.csv", "People's own kernels, kinds that no set had, blind")):
        rows, out = summary(compare(weft, folder, file, jobs))
        bad += [f"{title}: {x}" for x in out]
        text, tables[name] = table(title, rows)
        print(text)
    text, limits = table("Near the limit of memory", near_limit(weft, folder))
    print(text)
    text, gpu = table("Measured on an H100", measured(weft, folder))
    print(text)
    text, gpu_blind = table("Measured on GPUs, blind", blind(weft, folder))
    print(text)
    text, plans = table("Compiled for GPUs that were not there", planned(weft, folder))
    print(text)
    rows, errors, first = published(weft, folder)
    text, pub = table("Published runs", [r[:-1] for r in rows])
    print(text)
    _, pub = table("", rows)
    text, power = table("Published power", powers(weft, folder))
    print(text)
    print("out of bounds:\n  " + "\n  ".join(bad) if bad else "all within bounds")
    (ROOT / "docs").mkdir(exist_ok=True)
    (ROOT / "docs/accuracy.md").write_text(PAGE.format(
        **tables, limits=limits, gpu=gpu, gpu_blind=gpu_blind, planned=plans, published=pub, power=power, median=100 * at(errors, .5), p90=100 * at(errors, .9),
        first=100 * at(first, .5), first90=100 * at(first, .9),
        few=FEW, bad="\n".join("- " + b for b in bad) + "\n" if bad else "None.\n"))
    return 1 if bad and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
