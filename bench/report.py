"""The results' file and the tables made from it."""
import json
import math
import pathlib
import statistics

import workloads

LABELS = {"weft": "weft", "weft_train": "weft train", "jax": "JAX", "torch": "PyTorch", "torch_compile": "torch.compile", "tf": "TensorFlow",
          "tf_xla": "TF jit_compile", "llmc": "llm.c"}
ORDER, OURS = tuple(LABELS), ("weft", "weft_train")


def load(path):
    path = pathlib.Path(path)
    return json.loads(path.read_text()) if path.exists() else {"machine": None, "runs": {}}


def save(path, results):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def add(results, workload, threads, runs):
    here = results["runs"].setdefault(workload, {}).setdefault(str(threads), {})
    for peer, rows in runs.items():
        steady = [] if any("wall_ms" in r for r in rows) else [r for r in here.get(peer, []) if "wall_ms" in r]
        here[peer] = steady + rows


def figure(rows, key, of=statistics.median):
    good = [r[key] for r in rows if key in r]
    return of(good) if good else None


def spread(rows, key):
    """Half the range over the rounds, as a share of the median; None of one round."""
    good = [r[key] for r in rows if key in r]
    return (max(good) - min(good)) / (2 * statistics.median(good)) if len(good) > 1 else None


def number(x, digits=3):
    return "" if x is None else f"{x:.{digits}g}" if x < 1000 else f"{x:.0f}"


class Row:
    """One workload with one number of threads. `key`: "wall" or "cpu"."""

    def __init__(self, results, workload, threads, key):
        peers = results["runs"].get(workload, {}).get(str(threads), {})
        self.name, self.key = workload, f"{key}_ms"
        self.peers = {p: peers[p] for p in ORDER if p in peers}
        self.ms = {p: figure(rows, self.key) for p, rows in self.peers.items()}
        self.errors = {p: rows[-1]["error"] for p, rows in self.peers.items() if self.ms[p] is None}
        self.best = min(self.others(self.key), default=None)
        self.weft = self.ms.get("weft")
        self.ratio = self.best / self.weft if self.best and self.weft else None
        self.limit = self.share(results, threads)

    def others(self, key):
        values = [figure(rows, key) for p, rows in self.peers.items() if p not in OURS]
        return [v for v in values if v is not None]

    def ours(self, key):
        return figure(self.peers.get("weft", []), key)

    def share(self, results, threads):
        """Of the machine's limit that weft reaches: the time that flops or bytes need there, over weft's."""
        rows = [r for r in self.peers.get("weft", []) if "flops" in r]
        if not rows or not self.weft or not getattr(workloads.WORKLOADS[self.name](), "bounded", True):
            return None
        gflops, gbs = results["machine"]["limits"][str(threads)]
        return max(rows[-1]["flops"] / gflops, rows[-1]["bytes"] / gbs) / 1e6 / self.weft

    def differs(self):
        """Peers whose loss or result is not weft's: those further than 0.5 % away (bfloat16: 2 %)."""
        work = workloads.WORKLOADS[self.name]()
        ours = self.ours("check")
        if ours is None or not getattr(work, "compare", True):
            return []
        close = 2e-2 if work.bf16 else 5e-3
        checks = {p: figure(rows, "check") for p, rows in self.peers.items()}
        return [f"{p} {v:.5g}, weft {ours:.5g}" for p, v in checks.items() if v is not None and abs(v - ours) > close * abs(ours) + 1e-6]


def line(results, workload, threads, key):
    row = Row(results, workload, threads, key)
    cells = [f"{p} {number(v)}" if v else f"{p} failed ({row.errors[p]})" for p, v in row.ms.items()]
    ratio = f"ratio {row.ratio:.2f}" if row.ratio else ""
    return f"{workload}: {', '.join(cells)} ms {ratio} {'DIFFERS: ' + ', '.join(row.differs()) if row.differs() else ''}"


def rows_of(results, threads, key, names=None):
    return [Row(results, n, threads, key) for n in names or workloads.WORKLOADS if str(threads) in results["runs"].get(n, {})]


def over(a, b, digits=2):
    return f"{a / b:.{digits}f}" if a and b else ""


def summary(rows):
    ratios = [r.ratio for r in rows if r.ratio]
    if not ratios:
        return []
    below = [r.name for r in rows if r.ratio and r.ratio < 1]
    return [f"Geometric mean of the ratios to the best peer of each row: **{geometric(ratios):.2f}** over {len(ratios)} rows"
            + (f"; below 1: {', '.join(below)}." if below else "; none is below 1.")]


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def speed_table(rows):
    peers = [p for p in ORDER if p != "weft_train" and any(p in r.peers for r in rows)]
    lines = ["| workload | " + " | ".join(LABELS[p] for p in peers) + " | ratio | spread | limit | result |", "|---|" + "---|" * (len(peers) + 4)]
    for r in rows:
        ms = [number(r.ms.get(p)) if r.ms.get(p) else "fails" if p in r.peers else "" for p in peers]
        noise = max((n for n in (spread(x, r.key) for x in r.peers.values()) if n is not None), default=None)
        lines.append(f"| {r.name} | {' | '.join(ms)} | {f'**{r.ratio:.2f}**' if r.ratio else ''} | {'' if noise is None else f'{noise:.0%}'} | "
                     f"{f'{r.limit:.0%}' if r.limit else ''} | {'; '.join(r.differs()) or 'equal'} |")
    return lines


def start_table(rows):
    lines = ["| workload | compile weft s | XLA:CPU s | ratio | backend's part weft | XLA:CPU | first result weft s | XLA:CPU s | ratio | MB weft | "
             "leanest peer MB | ratio |", "|---" * 12 + "|"]
    for r in rows:
        def both(key):
            return [figure(r.peers.get(p, []), key, min) for p in ("weft", "jax")]
        cells = []
        for key in ("compiler_s", "first_s"):
            ours, xla = both(key)
            cells += [number(ours, 2), number(xla, 2), over(xla, ours, 1)]
            if key == "compiler_s":
                cells += [f"{part / whole:.0%}" if part and whole else "" for part, whole in zip(both("backend_s"), both(key))]
        mb, least = r.ours("rss_mb"), min(r.others("rss_mb"), default=None)
        if any(cells) or (mb and least):
            lines.append(f"| {r.name} | {' | '.join(cells)} | {number(mb)} | {number(least)} | {over(least, mb)} |")
    return lines


def train_table(rows):
    lines = ["| workload | weft train | weft through JAX | PyTorch | llm.c | ratio to PyTorch |", "|---|---|---|---|---|---|"]
    for r in rows:
        ours = r.ms.get("weft_train")
        if ours:
            torch = min((r.ms[p] for p in ("torch", "torch_compile") if r.ms.get(p)), default=None)
            lines.append(f"| {r.name} | {number(ours)} | {number(r.weft)} | {number(torch)} | {number(r.ms.get('llmc'))} | "
                         f"{over(torch, ours)} |")
    return lines if len(lines) > 2 else []


def bf16_table(rows):
    """weft's bfloat16 rows beside the same in float32."""
    wide = {r.name: r.weft for r in rows}
    lines = ["| workload | float32 | bfloat16 | bfloat16 over float32 |", "|---|---|---|---|"]
    for r in rows:
        name = r.name.removesuffix("_bf16")
        if name != r.name and r.weft and wide.get(name):
            lines.append(f"| {name} | {number(wide[name])} | {number(r.weft)} | {over(r.weft, wide[name])} |")
    return lines if len(lines) > 2 else []


def table(results, threads, key, names=None):
    rows = rows_of(results, threads, key, names)
    return speed_table(rows) + [""] + summary(rows) + [""] + start_table(rows) + [""] + train_table(rows) + [""] + bf16_table(rows)


def versions(results):
    found = {}
    for by_threads in results["runs"].values():
        for peers in by_threads.values():
            for runs in peers.values():
                for r in runs:
                    found.update(r.get("versions", {}))
    return ", ".join(f"{k} {v}" for k, v in sorted(found.items()))


def other_peers(more):
    """What was measured in runs of its own, beside weft as it was then."""
    if not more["runs"]:
        return []
    rows = rows_of(more, 2, "wall")
    m = more["machine"]
    return ["", "### Compilers and other frameworks", "",
            f"Runs of their own ({m['date']}; {versions(more)}), each beside weft as it then was. {more.get('note', '')}", "",
            *speed_table(rows), "", *summary(rows)]


def machine_name(results):
    return f"{results['machine']['cpu']}, {results['machine']['vectors']}"


DOORS = {"PyTorch/XLA": ("torch", "torch_compile"), "TorchTPU": ("torch", "torch_compile"), "TensorFlow": ("tf", "tf_xla")}


def door_cell(ms, door):
    """Milliseconds, the ratio to JAX and the ratio to the faster one of what people would pick instead."""
    if door not in ms:
        return ""
    others = [ms.get("weft"), min((ms[p] for p in DOORS[door] if p in ms), default=None)]
    ratios = [f"{ms[door] / other:.2f}" if other else "?" for other in others]
    return f"{number(ms[door])} ({' / '.join(ratios)})"


def doors_table(runs):
    """Of {workload: {peer: ms}}; doors that were measured."""
    doors = [d for d in DOORS if any(d in ms for ms in runs.values())]
    own = sorted({p for d in doors for p in DOORS[d]} & {p for ms in runs.values() for p in ms})
    lines = ["| workload | JAX on weft | " + " | ".join([f"{d} (to JAX / to its own)" for d in doors] + own) + " |",
             "|---" * (2 + len(doors) + len(own)) + "|"]
    for name, ms in runs.items():
        cells = [number(ms.get("weft")), *(door_cell(ms, d) for d in doors), *(number(ms.get(p)) for p in own)]
        lines.append(f"| {name} | {' | '.join(c or '' for c in cells)} |")
    return lines


def through_doors(results):
    """The section of MACHINE-doors.json, where there is one."""
    if not results["machine"]:
        return []
    m = results["machine"]
    return ["", "### Through other frameworks", "",
            f"`bench/doors.py`, {m['date']}: {'CPU milliseconds' if m['key'] == 'cpu' else 'milliseconds'} a step, {m['threads']} thread"
            f"{'s' if m['threads'] > 1 else ''}, of a program of that framework on weft; in brackets over the same step through JAX, and over the "
            "framework itself, the faster of its two ways (PyTorch eager and torch.compile, TensorFlow and jit_compile). PyTorch/XLA traces the step in Python each time, "
            "which small steps show: with a device that computes nothing `mlp_small` takes as long.",
            *([m["note"]] if "note" in m else []), "",
            *doors_table(results["runs"])]


def programs_table(runs):
    """Of {program: what untuned.py measured}."""
    lines = ["| program | weft ms | XLA:CPU ms | ratio | compile weft s | XLA:CPU s | ratio | first result weft s | XLA:CPU s | ratio |", "|---" * 10 + "|"]
    for name, r in runs.items():
        cells = [number(t) for t in r["ms"]] + [f"**{over(r['ms'][1], r['ms'][0])}**"]
        for key in ("compile_s", "first_s"):
            cells += [number(t, 2) for t in r[key]] + [over(r[key][1], r[key][0], 1)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def untuned(results):
    """The section of MACHINE-programs.json, where there is one."""
    if not results["machine"]:
        return []
    ratios = {name: r["ms"][1] / r["ms"][0] for name, r in results["runs"].items()}
    below = [name for name, x in ratios.items() if x < 1]
    return ["", "### Programs nobody tuned for", "",
            f"`bench/untuned.py`, {results['machine']['date']}: programs of many kinds as people write them in JAX (`bench/programs.py`), two threads, beside "
            "JAX's CPU backend in the same process, the two in turn, the least of all calls. " + results.get("note", ""), "",
            *programs_table(results["runs"]), "",
            f"Geometric mean of the ratios: **{geometric(ratios.values()):.2f}** over {len(ratios)} programs; "
            + (f"below 1: {', '.join(below)}." if below else "none is below 1.")]


def beside_onednn(results):
    """The section of MACHINE-onednn.json, where there is one."""
    if not results["machine"]:
        return []
    m, runs = results["machine"], results["runs"]
    ahead = [f"{name} ({r[1] / r[0]:.2f})" for name, r in runs.items() if r[1] < r[0]]
    return ["", "### Convolutions beside oneDNN", "",
            f"`bench/onednn.py`, {m['date']}, oneDNN {m['onednn']} with its weights in the form it likes best beforehand, the two in turn in one process, two threads, the "
            "least of all calls. " + results.get("note", ""), "",
            "| convolution | weft ms | oneDNN ms | ratio |", "|---|---|---|---|",
            *(f"| {name} | {number(r[0])} | {number(r[1])} | **{over(r[1], r[0])}** |" for name, r in runs.items()), "",
            f"oneDNN is ahead in {', '.join(ahead)}." if ahead else "oneDNN is ahead in none."]


def of_machine(results, more, doors, programs, onednn):
    m = results["machine"]
    lines = ["", f"## {machine_name(results)}", "",
             f"{m['cpus']} CPUs; {m['date']}; {versions(results)}. Limits measured: "
             + ", ".join(f"{n} thread{'s' if n != '1' else ''} {g:.0f} GFLOP/s and {b:.0f} GB/s" for n, (g, b) in sorted(m["limits"].items())) + "."]
    if results.get("note"):
        lines += ["", results["note"]]
    for threads, key, title in ((2, "wall", "Milliseconds a step, two threads"),
                                (1, "cpu", "CPU milliseconds a step, one thread on one core")):
        rows = rows_of(results, threads, key)
        if not rows:
            continue
        lines += ["", f"### {title}", "", *speed_table(rows), "", *summary(rows)]
        if train_table(rows):
            lines += ["", f"### `weft train`: {title[0].lower() + title[1:]}", "",
                      "The same training by weft's own loop, on made-up data that its loader makes and sends; PyTorch's step has its batch "
                      "in memory.", "", *train_table(rows)]
        if bf16_table(rows):
            lines += ["", f"### weft in bfloat16: {title[0].lower() + title[1:]}", "",
                      "Parameters stay float32, everything computed from them is bfloat16.", "", *bf16_table(rows)]
    threads = 2 if rows_of(results, 2, "wall") else 1
    return lines + ["", "### Compile time and memory", "",
                    "**Compile** is `jax.jit(f).lower(...)`'s `.compile()`, once JAX has traced and lowered the program, in a process that "
                    "compiles for the first time; the least over all processes that measured it (`--starts`), as is the first result. **Backend's part** is "
                    "what of it JAX waits for the backend; a plugin's begins with jaxlib writing the program as portable bytecode, which XLA:CPU "
                    "is spared: 1.5 to 2 ms, as the device `null` shows, which compiles nothing. **First result** is from the call "
                    "of the step to its end: tracing, lowering, compiling, running, on memory that is touched for the first time. Caches on "
                    f"disk are off. **MB** is the peak resident set of the whole process, {threads} thread{'s' if threads > 1 else ''}.", "", *start_table(rows_of(results, threads, "wall")),
                    *other_peers(more), *through_doors(doors), *untuned(programs), *beside_onednn(onednn)]


def document(machines):
    """The page, of [(results, results of other peers, of other frameworks on weft, of programs, of oneDNN)], one a machine."""
    lines = ["# Performance", "",
             "Generated by `bench/run.py --docs` from `bench/results/`; `make bench` measures on your machine. The workloads are in "
             "`bench/workloads.py`, what each framework does with them in `bench/peers/`: the same mathematics, shapes and initial "
             "values, each framework the way its documentation advises for speed (PyTorch: channels-last, fused optimizers). Each "
             "measurement is a process of its own, the frameworks take turns, a figure is the median over rounds of the median over "
             "steps. **Ratio**: the best peer's time over weft's, above 1 weft is faster. **Spread**: half the range over the rounds, "
             "of the row's least steady peer. **Limit**: the time that the row's multiply-adds at the peak, or its bytes at the "
             "bandwidth, would take, over weft's. **Result**: the loss after the same steps, or the mean size of an operation's "
             "results, within 0.5 % (bfloat16: 2 %).", "",
             "| machine | measured | rows | geometric mean of the ratios | below 1 |", "|---|---|---|---|---|"]
    for results, *_ in machines:
        rows = [r for r in rows_of(results, 2, "wall") if r.ratio]
        lines.append(f"| {machine_name(results)} | {results['machine']['date']} | {len(rows)} | **{geometric([r.ratio for r in rows]):.2f}** | "
                     f"{', '.join(r.name for r in rows if r.ratio < 1) or 'none'} |")
    for results in machines:
        lines += of_machine(*results)
    return "\n".join(lines) + "\n"


def kept(folder):
    """What `document` takes: every machine's file of a folder of results."""
    files = sorted(p for p in pathlib.Path(folder).glob("*.json") if not p.stem.endswith(("-peers", "-doors", "-programs", "-onednn")))
    return [(load(p), *(load(p.with_name(f"{p.stem}-{more}.json")) for more in ("peers", "doors", "programs", "onednn"))) for p in files]
