"""What JAX ties to platform names and to the plugin interface; prints the results as one line of JSON."""
import io
import json
import contextlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.experimental import io_callback
from jax.experimental import pallas
from jax.experimental.pallas import mosaic_gpu
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams

out = {}
rng = np.random.default_rng(0)


def keep(name, *values):
    out[name] = [np.asarray(v).astype(np.complex128, order="C").view(np.float64).ravel().tolist() for v in values]


# Linear algebra, batched and complex. What is unique up to signs or phases is put together again.
a = rng.normal(size=(3, 5, 5)).astype(np.float32)
c = (a + 1j * rng.normal(size=a.shape)).astype(np.complex64)
tall = rng.normal(size=(2, 6, 4)).astype(np.float32)
w, v = jnp.linalg.eigh(c + np.conj(np.swapaxes(c, 1, 2)))
keep("eigh", w, v @ (w[..., None] * jnp.conj(jnp.swapaxes(v, 1, 2))))
u, s, vt = jnp.linalg.svd(tall, full_matrices=False)
keep("svd", s, (u * s[:, None]) @ vt)
e, x = jnp.linalg.eig(a)
keep("eig", jnp.sort(e, axis=-1), a @ x - x * e[:, None])
q, r = jnp.linalg.qr(c)
keep("qr", q @ r, jnp.conj(jnp.swapaxes(q, 1, 2)) @ q)
keep("lu", jnp.linalg.solve(a, tall[0, :5]), jnp.linalg.det(c), jnp.linalg.inv(a))
keep("schur", *(z @ t @ z.T for t, z in [jax.scipy.linalg.schur(a[0])]))
keep("cholesky", jnp.linalg.cholesky(a @ np.swapaxes(a, 1, 2) + np.eye(5, dtype=np.float32)))
keep("expm", jax.scipy.linalg.expm(a[0]))
keep("svd of NaN", jnp.linalg.svd(np.full((3, 2), np.nan, np.float32), compute_uv=False))
many = np.cos(np.arange(600_000, dtype=np.float32)).reshape(300_000, 2)  # a square of that side has 360 GB
keep("svd of many rows", *(jnp.linalg.svd(x, full_matrices=False)[1] for x in (many, many.T, many + 1j * many[::-1])))

from jax.experimental.sparse import CSR, linalg as sparse  # noqa: E402  (after the plugin has looked for rules)
band = CSR.fromdense(np.diag([4.0, 5, 6, 7, 8]).astype(np.float32) + np.diag([1.0, 2, 3, 4], 1).astype(np.float32))
keep("spsolve", jax.jit(jax.grad(lambda b: (sparse.spsolve(band.data, band.indices, band.indptr, b) ** 2).sum()))(
    tall[0, :5, 0]))

# Host callbacks.
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    jax.jit(lambda x: jax.debug.print("x = {}", x, ordered=True))(jnp.arange(3))
    jax.effects_barrier()
out["printed"] = printed.getvalue()
seen = []
keep("pure_callback", jax.jit(jax.vmap(lambda x: jax.pure_callback(
    lambda y: np.sin(y), jax.ShapeDtypeStruct((), np.float32), x, vmap_method="sequential")))(jnp.arange(4.0)))
jax.jit(lambda x: io_callback(lambda y: seen.append(float(y)), None, x, ordered=True))(jnp.float32(2.5))
jax.effects_barrier()
out["seen"] = seen
try:
    def fail(_):
        raise ValueError("no such luck")
    jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x))(1.0))
    out["callback error"] = "none"
except Exception as error:
    out["callback error"] = "no such luck" in str(error)

# Donation, deletion.
x = jnp.arange(1024.0) + 1
y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
out["donated"] = [x.is_deleted(), y.is_deleted(), float(y.sum())]
copy = jnp.array(y, copy=True)
out["copy is apart"] = copy.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
y.delete()
try:
    y + 1
except RuntimeError as error:
    out["deleted"] = "deleted" in str(error)

# Hosts arrays of every layout and width.
f = np.asfortranarray(rng.normal(size=(3, 4)).astype(np.float32))
keep("fortran", jnp.asarray(f) + 0, jnp.asarray(f[::2, ::-1]) + 0)
for name in ("int4", "uint4", "bfloat16", "float8_e4m3fn", "bool", "int64", "complex64"):
    host = np.asarray(jnp.arange(-3, 4).astype(name))
    keep(f"round trip {name}", np.asarray(jax.device_put(host)).astype(np.complex64))
keep("empty", jnp.zeros((0, 3)).sum(0))

# Ahead of time, saved and loaded.
compiled = jax.jit(lambda x: jnp.tanh(x) @ x).lower(jnp.ones((4, 4))).compile()
out["text"] = "dot" in (compiled.as_text() or "dot")
out["memory"] = compiled.memory_analysis().argument_size_in_bytes
loaded = deserialize_and_load(*serialize(compiled))
keep("loaded", loaded(jnp.eye(4)))
elsewhere = export.export(jax.jit(lambda x: jnp.sin(jnp.linalg.eigh(x + x.T)[0]) + x), platforms=("cpu", "tpu"), disabled_checks=[
    export.DisabledSafetyCheck.custom_call("lapack_ssyevd_ffi")])(jax.ShapeDtypeStruct((3, 3), jnp.float32))
keep("platform", jax.jit(lambda x: jax.lax.platform_dependent(x, tpu=jnp.cos, cpu=jnp.sin))(jnp.arange(3.0)))
keep("exported", jax.jit(elsewhere.call)(jnp.arange(9.0).reshape(3, 3)))
out["memory kinds"] = sorted({m.kind for m in jax.devices()[0].addressable_memories()})
host = jax.device_put(jnp.arange(3.0), jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host"))

# Arrays given to and taken from other libraries; Pallas kernels interpreted, or refused with what to do.
keep("dlpack", np.from_dlpack(jnp.arange(6.0).reshape(2, 3)), jnp.from_dlpack(np.arange(4, dtype=np.float32)) + 1)
columns = np.arange(24, dtype=np.int32).reshape(2, 3, 4).transpose(2, 0, 1)
keep("dlpack of columns", jnp.from_dlpack(columns), jnp.from_dlpack(np.asfortranarray(np.eye(3, 2, 1))))
copied = jnp.from_dlpack(columns, copy=True)
columns[:] = 0
keep("dlpack by copy", copied)
for interpret in (True, False):
    try:
        keep(f"pallas {interpret}", pallas.pallas_call(
            lambda x, out: out.__setitem__(..., x[...] * 2), out_shape=jax.ShapeDtypeStruct((3,), jnp.float32),
            interpret=interpret)(jnp.arange(3.0)))
    except Exception as error:
        out["pallas error"] = "interpret" in str(error)
threads = mosaic_gpu.kernel(lambda out: out.__setitem__(jax.lax.axis_index("x"), jax.lax.axis_index("x")), num_threads=3, thread_name="x",
                            out_type=jax.ShapeDtypeStruct((3,), jnp.int32), interpret=InterpretGPUParams())
keep("pallas over threads", jax.jit(threads)())

out["on host"] = [host.sharding.memory_kind, np.asarray(host).tolist()]
print(json.dumps(out))
