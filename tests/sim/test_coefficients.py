"""The coefficients of the cost models: each is read and each that is read is there; and fit_tpu.py finds one again that was spoilt."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
os.environ.setdefault("WEFT_BUILD", str(ROOT / "build"))


def keys(path):
    return set(re.findall(r"^(fit\.\w+|pass_\w+)\s*=", path.read_text(), re.M))


def test_all_rates_of_gpus_are_read_and_there():
    code = "".join(p.read_text() for d in ("gpu", "eager") for p in (ROOT / "src/sim" / d).glob("*.[ch]") if "_test" not in p.name)
    code += (ROOT / "src/sim/sim.c").read_text()
    read = set(re.findall(r'"(fit\.\w+)"', code))
    family = keys(ROOT / "data/chips/gpu.family")
    assert family and not family - read
    asked = set(re.findall(r'"(fit\.\w+)"', "".join(re.findall(r"gpu_rate\((?:[^()]|\([^()]*\))*\)", code)))) | {k for k in read if k.startswith("fit.column_")}
    assert not asked - family


def test_a_spoilt_coefficient_is_found_again(tmp_path):
    import accuracy
    import fit_tpu
    accuracy.unpack(tmp_path)
    rows = fit_tpu.rows_of("tpu-v5e", tmp_path)["fitted"]
    rows = [r for r in rows if pathlib.Path(r[0]).name.startswith("elt_")][:40]
    values = fit_tpu.read_values("tpu-v5e")[0]
    was = values["lbase"]
    fit = fit_tpu.Fit("tpu-v5e", dict(values, lbase=1.6 * was), rows)
    spoilt = fit.loss.sum()
    for factors in fit_tpu.ROUNDS:
        fit.improve("lbase", factors, False, list(range(len(rows))))
    assert fit.loss.sum() < spoilt / 2
    default = 1.2e-6 * 1.5e9  # params.def's, of v5e's clock: near enough that the search may drop the value
    assert abs(fit.values.get("lbase", default) / was - 1) < 0.15


def test_what_was_read_from_plans_is_not_fitted():
    import fit_tpu
    values, rest = fit_tpu.read_values("tpu-v3")
    assert "cvpu" in fit_tpu.fixed(rest) and "base" not in fit_tpu.fixed(rest)
    fit = fit_tpu.Fit("tpu-v3", {}, [])
    assert fit.values["cvpu"] == values["cvpu"] and "cvpu" not in fit.choices and "base" in fit.choices
