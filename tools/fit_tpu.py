#!/usr/bin/env python3
"""Makes the coefficients of virtual TPUs, `fit.*` of data/chips/tpu-*.chip, from libtpu's answers (tests/sim/sets.toml says which sets there are).

    tools/fit_tpu.py                            # the error of each chip, nothing is changed
    tools/fit_tpu.py --fit tpu-v5e              # searches from the present values and writes the file if rows that were kept apart got no worse
    tools/fit_tpu.py --fit all --from default   # from the defaults of src/sim/params/params.def and what other chips have: as for a new chip
    tools/fit_tpu.py --worth all                # what each value is for: the error without it
    tools/fit_tpu.py --tidy all                 # drops values without which no row of any set changes

The rows of sets of kind `fit` and `seen` are halved by their program's checksum: one half is fitted, the other kept apart. Sets of kind
`first` are never fitted; their error is said. The model is weft's own (`weft estimate`), asked with changed chip files in WEFT_DATA. The search takes
one coefficient after the other: values around it, of the other chips, and none (its default), over the rows that it changes at all, and keeps the
best. A value that makes nothing better goes, but for what the compiler was seen to choose (the last part of params.def). A value whose source in the
chip's file does not begin with "fitted" was read from the compiler's plans and stays as it is. What is summed up is the logarithm of cycles and peak over libtpu's, up to MOST, so that programs
which the rules get wrong do not bend the coefficients of all others. Build weft_bin first; a chip takes some minutes of one core.
"""
import argparse
import csv
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np

import accuracy

CHIPS = accuracy.ROOT / "data/chips"
WEFT = pathlib.Path(os.environ.get("WEFT_BUILD", accuracy.ROOT / "build")).resolve() / "weft"
PARAMS = accuracy.ROOT / "src/sim/params/params.def"
WEIGHT = {"micro": 1, "block": 2, "step": 3}
THIN = {"micro": 1, "block": 2, "step": 4}  # of so many rows that are fitted one is taken
MOST = math.log(2)  # of a row's error
TRIALS = 16  # chips that are asked for at once
ROUNDS = ([.5, .7, .85, 1.18, 1.4, 2], [.8, .9, .95, 1.05, 1.1, 1.25], [.93, .97, .985, 1.015, 1.03, 1.07], [.97, .99, .995, 1.005, 1.01, 1.03])
GAIN = 1e-4  # of the whole error: what less than that makes better is not kept
SOURCE = "fitted: tools/fit_tpu.py, libtpu oracle"


def keys():
    """Keys of params.def in its order -> is it a choice, 0 or 1?"""
    out = {}
    for kind, args in re.findall(r"^(NUM|RATE|MIB|YES)\((.*)\)$", PARAMS.read_text(), re.M):
        parts = [a.strip() for a in args.split(",")]
        out[parts[0] if kind == "YES" else parts[1].strip('"')] = kind == "YES"
    return out


def choices():
    """Keys of what the compiler chooses: facts that its plans show, dropped only where they change nothing."""
    part = PARAMS.read_text().split("what the compiler chooses")[1]
    return {k or f for f, k in re.findall(r"^(?:YES\((\w+)|(?:NUM|MIB)\(\w+, \"(\w+)\")", part, re.M)}


def default(key, values):
    """What params.def gives a key that the chip's file does not have, as far as that follows from other keys; else None."""
    found = {}
    for kind, args in re.findall(r"^(NUM|RATE|MIB|YES)\((.*)\)$", PARAMS.read_text(), re.M):
        parts = [a.strip() for a in re.split(r",(?![^()]*\))(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", args)]
        name, otherwise = (parts[0], parts[1]) if kind == "YES" else (parts[1].strip('"'), parts[2])
        formula = re.sub(r"params->tiled \? (\S+) : \S+", r"\1", otherwise)  # a TPU's arrays are
        formula = re.sub(r"params->([\w.]+(?:\[\d\])?)", lambda m: f"found[{m[1]!r}]", formula).replace("MIN(", "min(")
        try:
            otherwise = eval(formula, {"found": found, "min": min})
        except (KeyError, SyntaxError):  # of something else of the chip
            otherwise = None
        if name == key:
            return otherwise
        found[parts[0]] = values.get(name, otherwise)
    return None


def without_defaults(values):
    """Those that say more than params.def."""
    return {k: v for k, v in values.items() if v != default(k, values)}


def read_values(chip):
    """fit.* of a chip's file -> (value, rest of the line)"""
    found = re.findall(r"^fit\.(\w+)\s*=\s*(\S+)(.*)$", (CHIPS / f"{chip}.chip").read_text(), re.M)
    return {k: float(v) for k, v, _ in found}, {k: rest for k, _, rest in found}


def fixed(rest):
    """Keys of values that come from elsewhere than a fit."""
    return {k for k, r in rest.items() if not re.match(r"\s*[^#]*#\s*fitted", r)}


def file_with(chip, name, values):
    """The chip's file with other coefficients, under another name."""
    text = (CHIPS / f"{chip}.chip").read_text()
    text = re.sub(r"^(fit\.|aliases|server|device_kind).*\n", "", text, flags=re.M)
    text = re.sub(r"^name .*$", f"name = {name}  # trial", text, flags=re.M)
    return text + "".join(f"fit.{k} = {v:.5g}  # trial\n" for k, v in values.items())


def rows_of(chip, folder):
    """{"fitted", "apart", "first"} -> [(program, cycles, peak, weight)]"""
    out, seen, count = {"fitted": [], "apart": [], "first": []}, set(), {}
    for s in accuracy.sets().values():
        with open(accuracy.DATA / "oracle" / s["file"]) as f:
            for r in csv.DictReader(f):
                if r["chip"] != chip or r["program"] in seen:
                    continue
                seen.add(r["program"])
                kind = r["group"].split()[-1]
                part = "first" if s["kind"] == "first" else "apart" if zlib.crc32(r["program"].encode()) % 2 else "fitted"
                count[kind, part] = count.get((kind, part), 0) + 1
                if part != "fitted" or count[kind, part] % THIN[kind] == 0:
                    out[part].append((str(folder / (r["program"] + ".mlir")), float(r["est_cycles"]), float(r["peak_bytes"]), WEIGHT[kind]))
    return out


def ask(chip, trials, rows):
    """Errors of cycles and peak for each set of coefficients and row, as logarithms (0 where there is nothing to compare)."""
    out = np.zeros((len(trials), len(rows), 2))
    for first in range(0, len(trials), TRIALS):
        some = trials[first:first + TRIALS]
        with tempfile.TemporaryDirectory() as d:
            (pathlib.Path(d) / "chips").mkdir()
            for i, values in enumerate(some):
                (pathlib.Path(d) / "chips" / f"trial{i}.chip").write_text(file_with(chip, f"trial{i}", values))
            options = [w for i in range(len(some)) for w in ("--chip", f"trial{i}")]
            for at in range(0, len(rows), 400):
                part = rows[at:at + 400]
                p = subprocess.run([WEFT, "estimate", *(r[0] for r in part), *options, "--json"], capture_output=True, text=True, env=dict(os.environ, WEFT_DATA=d))
                lines = p.stdout.splitlines()
                if len(lines) != len(part) * len(some):
                    sys.exit(f"fit_tpu: {chip}: {p.stderr[-400:]}")
                for k, line in enumerate(lines):
                    row = part[k // len(some)]
                    for j, key in enumerate(("cycles", "peak_bytes")):
                        got = float(re.search(rf'"{key}": ([-\d.e+]+)', line)[1])
                        if row[1 + j] > 0:
                            out[first + k % len(some), at + k // len(some), j] = math.log(got / row[1 + j]) if got > 0 else MOST
    return out


def losses(errors, rows):
    """One number a row."""
    return np.minimum(np.abs(errors), MOST).sum(axis=-1) * np.array([r[3] for r in rows])


class Fit:
    def __init__(self, chip, values, rows):
        self.chip, self.rows = chip, rows
        known, rest = read_values(chip)
        kept = fixed(rest)
        self.values = {**values, **{k: known[k] for k in kept}}
        self.choices, self.seen = {k: v for k, v in keys().items() if k not in kept}, choices()
        others = [read_values(p.stem)[0] for p in sorted(CHIPS.glob("tpu*.chip")) if p.stem != chip]
        self.others = {k: sorted({o[k] for o in others if k in o}) for k in self.choices}
        self.loss = losses(ask(chip, [self.values], rows)[0], rows)

    def with_(self, key, value):
        out = dict(self.values)
        out.pop(key, None)
        return out if value is None else dict(out, **{key: value})

    def candidates(self, key, factors, wide):
        x = self.values.get(key)
        if self.choices[key]:
            found = [0, 1]
        else:
            found = [float(f"{x * f:.4g}") for f in factors] if x else []
            found += self.others[key] if wide or x is None else []
        return [None] * (x is not None and key not in self.seen) + [v for v in dict.fromkeys(found) if v != x]

    def touched(self):
        """Key -> the rows that it changes when it does."""
        trials, names = [], []
        for key in self.choices:
            x = self.values.get(key)
            some = [1 - x if x is not None else 1, None] if self.choices[key] else [x * 1.3, x * .7] if x else self.others[key][-1:] + self.others[key][:1]
            for v in some:
                if v != x:
                    trials.append(self.with_(key, v))
                    names.append(key)
        base, changed = ask(self.chip, [self.values], self.rows)[0], {}
        for key, e in zip(names, ask(self.chip, trials, self.rows)):
            changed[key] = changed.get(key, False) | (np.abs(e - base).max(axis=1) > 1e-9)
        return {k: np.flatnonzero(c) for k, c in changed.items()}

    def improve(self, key, factors, wide, at):
        """Keeps the best of the candidates; none is best where it costs nothing."""
        some = self.candidates(key, factors, wide)
        rows = [self.rows[i] for i in at]
        if not some:
            return
        if not rows:
            self.values.pop(key, None)
            return
        found = losses(ask(self.chip, [self.with_(key, v) for v in some], rows), rows)
        gain = self.loss[at].sum() - found.sum(axis=1)
        least = GAIN * self.loss.sum()
        best = int(np.argmax(gain))
        if some[0] is None and gain[0] > -least and gain[best] < gain[0] + least:
            best = 0
        elif gain[best] < least:
            return
        self.values = self.with_(key, some[best])
        self.loss[at] = found[best]

    def search(self, rounds, wide):
        touched = self.touched()
        for n, factors in enumerate(rounds):
            before = self.loss.sum()
            for key in self.choices:
                if key in touched:
                    self.improve(key, factors, wide and n < 2, touched[key])
            self.loss = losses(ask(self.chip, [self.values], self.rows)[0], self.rows)
            print(f"  {self.chip}: round {n + 1}: {before / len(self.rows):.4f} -> {self.loss.sum() / len(self.rows):.4f} a row, {len(self.values)} values", flush=True)


def error(chip, values, rows):
    """Median and 90th percentile of cycles and of peaks, %."""
    e = 100 * np.abs(np.expm1(ask(chip, [values], rows)[0]))
    known = np.array([r[1] > 0 for r in rows])
    return [float(np.quantile(x, q)) for x in (e[known, 0], e[:, 1]) for q in (.5, .9)]


def say(chip, values, rows):
    found = {part: error(chip, values, r) for part, r in rows.items()}
    print(f"{chip:8} {len(values):3} values  " + "   ".join(f"{part} {len(rows[part]):4}: " + " ".join(f"{x:5.1f}" for x in e) for part, e in found.items()), flush=True)
    return found


def write(chip, values):
    was, rest = read_values(chip)
    path = CHIPS / f"{chip}.chip"
    lines = path.read_text().splitlines()
    kept, done = [], set()
    for line in lines:
        m = re.match(r"fit\.(\w+)\s", line)
        if m and m[1] not in values:
            continue
        if m:
            done.add(m[1])
            if values[m[1]] != was[m[1]]:
                line = f"{'fit.' + m[1]:26} = {values[m[1]]:.5g}  # {SOURCE}"
        kept.append(line)
    kept += [f"{'fit.' + k:26} = {v:.5g}  # {SOURCE}" for k, v in values.items() if k not in done]
    path.write_text("\n".join(kept) + "\n")


def tidy(chip, rows):
    """Drops what says no more than params.def, and what changes no row of any set."""
    was, _ = read_values(chip)
    every, values = [r for part in rows.values() for r in part], without_defaults(was)
    base = ask(chip, [was], every)[0]
    found = ask(chip, [{k: v for k, v in values.items() if k != key} for key in values], every)
    left = {k: v for (k, v), e in zip(values.items(), found) if (e != base).any()}
    if (ask(chip, [left], every)[0] != base).any():  # what changes nothing alone may do so together
        left = values
    write(chip, left)
    print(f"{chip:8} {len(was)} values, {len(values)} without defaults, {len(left)} that change something")


def worth(chip, rows):
    """What is lost without each value, in 1/1000 of the error, over fitted rows and those kept apart."""
    values, _ = read_values(chip)
    both = rows["fitted"] + rows["apart"]
    base = losses(ask(chip, [values], both)[0], both)
    less = losses(ask(chip, [{k: v for k, v in values.items() if k != key} for key in values], both), both)
    for key, loss in sorted(zip(values, less), key=lambda x: x[1].sum()):
        changed = int((np.abs(loss - base) > 1e-9).sum())
        print(f"{chip:8} {key:14} {values[key]:10.5g}  {1000 * (loss.sum() / base.sum() - 1):8.2f}  changes {changed:4} of {len(both)} rows")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--fit", help="a chip's file, or all")
    args.add_argument("--worth", help="a chip's file, or all")
    args.add_argument("--tidy", help="a chip's file, or all")
    args.add_argument("--from", dest="start", choices=("now", "default"), default="now")
    args.add_argument("--dry", action="store_true", help="write nothing")
    a = args.parse_args()
    one = a.fit or a.worth or a.tidy or "all"
    folder = accuracy.ROOT / "build/accuracy"
    accuracy.unpack(folder)
    chips = [p.stem for p in sorted(CHIPS.glob("tpu*.chip")) if one in ("all", p.stem)]
    if not chips:
        sys.exit(f"fit_tpu: there is no data/chips/{one}.chip")
    print("errors, %: cycles median, p90, peak median, p90")
    for chip in chips:
        rows, now = rows_of(chip, folder), read_values(chip)[0]
        if not any(rows.values()):
            print(f"{chip:8} no set of tests/sim/sets.toml has rows of it: tools/oracle_build.py asks a libtpu that knows the chip; until then params.def's defaults hold")
            continue
        if a.worth or a.tidy:
            (worth if a.worth else tidy)(chip, rows)
            continue
        was = say(chip, now, rows)
        if not a.fit:
            continue
        fit = Fit(chip, without_defaults(now) if a.start == "now" else {}, rows["fitted"])
        fit.search(ROUNDS[1:] if a.start == "now" else ROUNDS, a.start == "default")
        found = say(chip, fit.values, rows)
        if sum(found["apart"]) > sum(was["apart"]):
            print(f"  {chip}: worse on rows that were kept apart, so that nothing is written")
        elif not a.dry:
            write(chip, fit.values)


if __name__ == "__main__":
    main()
