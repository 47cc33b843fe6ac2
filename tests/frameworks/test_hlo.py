"""HLO modules that XLA makes, as protos and as text: weft's results against JAX's."""
import concurrent.futures
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.lib import _jax

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from conftest import CORPUS, assert_golden, manifest, weft  # noqa: E402

LEFT_OUT = {"constants_many": "XLA's text leaves out its large constants"}


def golden(entry, folder, as_text):
    module = _jax.mlir.mlir_module_to_xla_computation((CORPUS / f"{entry['name']}.mlirbc").read_bytes(),
                                                      use_tuple_args=False, return_tuple=False)
    path = folder / (entry["name"] + (".hlo" if as_text else ".hlo.pb"))
    if as_text:
        path.write_text(module.as_hlo_text())
    else:
        path.write_bytes(module.as_serialized_hlo_module_proto())
    out = folder / f"{entry['name']}.npz"
    run = weft("run", path, "--device", "cpu", "--in", CORPUS / f"{entry['name']}.npz", "--out", out)
    assert run.returncode == 0, f"{path.name}: {run.stderr}"
    assert_golden(entry, out)


@pytest.mark.parametrize("form", ["proto", "text"])
def test_the_corpus_as_hlo(form, tmp_path):
    """Every program of the golden corpus, converted by jaxlib; of the text every third."""
    entries = [e for e in manifest() if (CORPUS / f"{e['name']}.npz").exists() and (CORPUS / f"{e['name']}.mlirbc").exists()]
    assert len(entries) > 200
    if form == "text":
        entries = [e for e in entries[::3] if e["name"] not in LEFT_OUT]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda e: golden(e, tmp_path, form == "text"), entries))


def mlp(w, x):
    return jax.grad(lambda w: jax.nn.log_softmax(jax.nn.gelu(x @ w)).sum())(w)


def scan(x, y):
    return jax.lax.scan(lambda c, a: (jnp.tanh(c * a + jnp.cumsum(c)), c.sum()), x[0], y)


def branch(x, y):
    return jax.lax.cond(x.sum() > 0, lambda v: jnp.sort(v, 0), lambda v: -v, x), jnp.argmax(y, 1)


def linalg(x, y):
    a = x.T @ x + 8 * jnp.eye(16)
    return jnp.linalg.inv(a), jnp.linalg.cholesky(a), jnp.linalg.slogdet(a), y[jnp.argsort(y[:, 0])]


@pytest.mark.parametrize("f", [mlp, scan, branch, linalg])
@pytest.mark.parametrize("suffix", ["hlo", "pb"])
def test_what_xla_has_optimised(f, suffix, tmp_path):
    """With fusions, layouts and library calls in it, as XLA dumps it after its passes."""
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype(np.float32) for s in ((16, 16), (8, 16))]
    compiled = jax.jit(f).lower(*args).compile()
    path = tmp_path / f"module.{suffix}"
    if suffix == "hlo":
        path.write_text(compiled.as_text())
    else:
        path.write_bytes(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    np.savez(tmp_path / "in.npz", **{f"in{i}": a for i, a in enumerate(args)})
    run = weft("run", path, "--device", "cpu", "--in", tmp_path / "in.npz", "--out", tmp_path / "out.npz")
    assert run.returncode == 0, run.stderr
    got = np.load(tmp_path / "out.npz")
    for i, want in enumerate(jax.tree.leaves(compiled(*args))):
        np.testing.assert_allclose(got[f"out{i}"], want, rtol=2e-5, atol=2e-5)


def test_every_verb_reads_it(tmp_path):
    lowered = jax.jit(lambda a, b: jnp.tanh(a @ b)).lower(np.ones((256, 512), np.float32), np.ones((512, 128), np.float32))
    (tmp_path / "x.hlo.pb").write_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    (tmp_path / "x.mlir").write_text(lowered.as_text())
    for verb in (["estimate"], ["advise"]):
        told = [weft(*verb, tmp_path / f, "--chip", "tpu-v5e", "--json").stdout for f in ("x.hlo.pb", "x.mlir")]
        assert '"step_time_s"' in told[0] or '"time_s"' in told[0], told[0]
    bad = tmp_path / "bad.hlo"
    bad.write_text("HloModule m\nENTRY e { ROOT a = f32[2] frobnicate() }\n")
    run = weft("estimate", bad, "--chip", "T4")
    assert run.returncode == 1 and "frobnicate" in run.stderr
