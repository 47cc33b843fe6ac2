"""What JAX ties to platform names, made known for "weft", and for the name that weft goes by (WEFT_PLATFORM).

Lowering rules: those of JAX's CPU backend, as far as they are special. Their custom calls ("lapack_ssyevd_ffi" and the
like) are done by the engine with LAPACK. Host callbacks become calls of a C function that ctypes makes of the
Python one. These are internals of JAX and may move: what is missing is skipped, with a warning in the log.
"""
import contextlib
import ctypes
import dataclasses
import functools
import inspect
import logging
import re
import traceback

import numpy as np

logger = logging.getLogger(__name__)

# Primitives whose rule for the platform "cpu" is taken over though JAX has one for every platform, too.
CPU_RULES = (
    "eig", "eigh", "hessenberg", "householder_product", "ormqr", "lu", "geqrf", "geqp3", "schur", "svd",
    "tridiagonal", "tridiagonal_solve", "random_gamma", "debug_callback", "debug_print", "check", "spsolve",
)

HostFunction = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_int64))

# Names of platforms that weft's devices may have: its own, and WEFT_PLATFORM.
NAMES = ["weft"]


def register(name="weft"):
    if name != "weft":
        NAMES.append(name)
    for step in (_donation, _cpu_rules, _callbacks, _cpu_devices, _dlpack, _pallas, _custom_partitioning,
                 _exported, _platform_dependent, _lowered_cost, _compilation_cache, _buffer_callbacks):
        try:
            step()
        except ImportError as e:  # a module of JAX's that is not there, or wants a package that is not
            logger.info("weft: %s: %s", step.__name__, e)
        except Exception:  # a JAX whose inside looks different: everything else still works
            logger.warning("weft: %s", step.__name__, exc_info=True)


def _donation():
    from jax._src.interpreters import mlir
    for name in NAMES:
        if name not in mlir._platforms_with_donation:
            mlir._platforms_with_donation.append(name)


def _is_ours(backend):
    return "weft " in backend.platform_version  # after what jaxlib puts before it


def _is_weft(context):
    """Of a module context: its program is for weft's devices, whatever they call themselves."""
    platforms = context.platforms
    if len(platforms) != 1 or platforms[0] not in NAMES:
        return False
    if platforms[0] == "weft":
        return True
    backend = context.get_backend() if hasattr(context, "get_backend") else context.backend
    return backend is None or _is_ours(backend)


def _mpmd_map(ctx, *values, **params):
    """Pallas kernels over the cores of a chip: their one rule knows platforms by name."""
    from jax._src.pallas import mpmd
    return mpmd._mpmd_map_fallback_lowering(ctx, *values, **params)


def _scaled_matmul(ctx, a, b, a_scales, b_scales, *, preferred_element_type):
    """Products of MXFP8 and NVFP4 (jax.nn.scaled_matmul), (B, M, K) by (B, N, K): JAX has one call of cuDNN for them; its
    scaled_dot says the same in StableHLO."""
    from jax import lax
    from jax._src.interpreters import mlir

    def product(a, b, a_scales, b_scales):
        return lax.scaled_dot(a, b, lhs_scale=a_scales, rhs_scale=b_scales, dimension_numbers=(((2,), (2,)), ((0,), (0,))),
                              preferred_element_type=preferred_element_type)
    return mlir.lower_fun(product, multiple_results=False)(ctx, a, b, a_scales, b_scales)


# Primitives that JAX has no rule for on the CPU, by name, written in others that it has.
WRITTEN_OUT = {"mpmd_map": _mpmd_map, "scaled_matmul": _scaled_matmul}


class _Rules(dict):
    """Rules of the platform weft; those of the CPU for CPU_RULES and for what has none for every platform (other libraries'
    primitives), also of modules that are imported later."""

    def __init__(self, own, cpu, every):
        super().__init__(own)
        self.cpu, self.every = cpu, every

    def __contains__(self, primitive):
        return (super().__contains__(primitive) or primitive.name in WRITTEN_OUT or
                (primitive in self.cpu and (primitive.name in CPU_RULES or primitive not in self.every)))

    def __missing__(self, primitive):
        if primitive not in self:
            raise KeyError(primitive)
        if primitive.name in WRITTEN_OUT:
            from jax._src.interpreters import mlir
            return mlir.LoweringRuleEntry(WRITTEN_OUT[primitive.name], True)
        return self.cpu[primitive]


class _Same(dict):
    """Rules of the name that weft goes by: those of weft. What JAX's modules register for the name is kept apart."""

    def __init__(self, weft, own):
        super().__init__()
        self.weft, self.own = weft, own

    def __contains__(self, primitive):
        return primitive in self.weft

    def __getitem__(self, primitive):
        return self.weft[primitive]

    def get(self, primitive, default=None):
        return self.weft[primitive] if primitive in self.weft else default

    def __setitem__(self, primitive, rule):
        self.own[primitive] = rule


def _cpu_rules():
    from jax._src.interpreters import mlir
    rules = mlir._platform_specific_lowerings
    rules["weft"] = _Rules(rules["weft"], rules["cpu"], mlir._lowerings)
    for name in NAMES[1:]:
        rules[name] = _Same(rules["weft"], rules[name])


def _custom_partitioning():
    """The function itself: a program over several devices is computed whole, so nobody has to be told how to cut it."""
    from jax._src import core
    from jax._src.custom_partitioning import custom_partitioning_p
    from jax._src.interpreters import mlir

    def lower(ctx, *values, call, **_):
        return mlir.lower_fun(core.jaxpr_as_fun(call), multiple_results=True)(ctx, *values)
    mlir.register_lowering(custom_partitioning_p, lower, platform="weft")


def _platform_dependent():
    """Of jax.lax.platform_dependent without a branch for weft (or its other name) or a default: the branch for the CPU."""
    from jax._src.interpreters import mlir
    from jax._src.lax.control_flow import conditionals

    def named(platforms):
        if platforms is None or None in platforms or any(name in names for names in platforms for name in NAMES):
            return platforms
        return tuple((*names, *NAMES) if "cpu" in names else names for names in platforms)

    def index(ctx, *, platforms, **rest):  # before 0.5 with has_default
        return conditionals._platform_index_lowering(
            ctx, platforms=platforms if rest.get("has_default") else named(platforms), **rest)

    def cond(ctx, *values, **params):
        if "branches_platforms" in params:
            params["branches_platforms"] = named(params["branches_platforms"])
        return conditionals._cond_lowering(ctx, *values, **params)
    mlir.register_lowering(conditionals.platform_index_p, index, platform="weft")
    mlir.register_lowering(conditionals.cond_p, cond, platform="weft")


def _compilation_cache():
    """JAX keeps compiled programs (jax_compilation_cache_dir) for a list of platforms: weft's are kept like the CPU's."""
    from jax._src import compilation_cache
    original = compilation_cache.is_cache_used

    class Named:
        platform = "cpu"

    @functools.wraps(original)
    def is_cache_used(backend):
        return original(Named() if backend.platform in NAMES and _is_ours(backend) else backend)
    compilation_cache.is_cache_used = is_cache_used


def _exported():
    """Programs of jax.export made elsewhere: those for the CPU, or for what the virtual chip is, may be called here."""
    from jax._src import xla_bridge
    from jax._src.export import _export
    from jax._src.interpreters import mlir

    def lower(ctx, *values, exported):
        kind = xla_bridge.get_backend("weft").devices()[0].device_kind.lower()
        own = (*NAMES, "cpu", "tpu" if "tpu" in kind else "rocm" if re.search(r"\bmi\d", kind) else "cuda")
        if "cpu" in kind:
            own = (*NAMES, "cpu")
        taken = next((p for p in own if p in exported.platforms), None)
        here = ctx.module_context.platforms
        if taken and _is_weft(ctx.module_context):
            exported = dataclasses.replace(exported, platforms=tuple(here[0] if p == taken else p for p in exported.platforms))
        return _export._call_exported_lowering(ctx, *values, exported=exported)
    mlir.register_lowering(_export.call_exported_p, lower, platform="weft")


def _cpu_devices():
    """With JAX_PLATFORMS=weft alone there is no CPU backend, but JAX's callbacks and scans (and programs that prepare data on
    jax.devices("cpu")) ask for one: weft's devices, whose memory is the host's, stand in. So they do for the name that they go
    by. In JAX's own table of backends, since that question may be what made JAX look for backends."""
    from jax._src import xla_bridge
    original = xla_bridge._clear_backends
    if getattr(original, "weft", False):
        return

    class Backends(dict):
        def ours(self):
            return next((self[name] for name in NAMES if name in self), None)

        def get(self, platform, default=None):
            return super().get(platform) or (platform in ("cpu", *NAMES) and self.ours()) or default

        def keys(self):
            return super().keys() | NAMES if self.ours() else super().keys()

    def clear_backends():
        original()
        xla_bridge._backends = Backends()
    clear_backends.weft = True
    xla_bridge._clear_backends = clear_backends
    xla_bridge._backends = Backends(xla_bridge._backends)


@functools.cache
def _xla_cpu():
    """XLA's CPU client, of which only the counting of operations is used."""
    from jax._src.lib import xla_client
    return xla_client.make_cpu_client()


def _lowered_cost():
    """jax.jit(f).lower(x).cost_analysis(): XLA counts the operations and bytes of the program as it was traced, whatever it is
    for. JAX asks the plugin's client, which PJRT's C API gives no call for."""
    from jax._src.interpreters import pxla
    from jax._src.lib import xla_client
    original = pxla.MeshComputation.cost_analysis
    if getattr(original, "weft", False):
        return
    count = getattr(pxla, "_jax", getattr(xla_client, "_xla", None)).hlo_module_cost_analysis

    @functools.wraps(original)
    def cost_analysis(self):
        if not _is_ours(self.compile_args["backend"]):
            return original(self)
        return count(_xla_cpu(), self.hlo().as_hlo_module())
    cost_analysis.weft = True
    pxla.MeshComputation.cost_analysis = cost_analysis


# ---- host callbacks -----------------------------------------------------------------------------------------------------


def _view(address, shape, dtype):
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    raw = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(raw, dtype=dtype).reshape(shape)


def _shapes(avals, dims):
    """Of the operands of one call, which may be parts of what was traced. dims: of all, one after another."""
    dims = iter(dims[:sum(len(a.shape) for a in avals)])
    return [tuple(next(dims) for _ in a.shape) for a in avals]


@contextlib.contextmanager
def _without_mesh():
    """XLA calls back in a thread of its own, where the mesh that the program's caller has set (jax.set_mesh) does not count;
    weft may be in the caller's."""
    from jax._src import config
    unset = getattr(getattr(config, "config_ext", None), "unset", None)
    states = [getattr(config, name, None) for name in ("abstract_mesh_context_manager", "device_context")]
    before = [(s, s.swap_local(unset)) for s in states if unset is not None and hasattr(s, "swap_local")]
    try:
        yield
    finally:
        for state, value in before:
            state.set_local(value)


def host_function(callback, operand_avals, result_avals, first_operand, first_result):
    """A C function around `callback`, as weft_host_callback calls it. The tokens before first_* are not looked at."""
    def call(operands, results, error, error_size, dims):
        try:
            shapes = _shapes(operand_avals, dims)
            with _without_mesh():
                values = callback(*(_view(operands[first_operand + i], shape, a.dtype).copy()
                                    for i, (shape, a) in enumerate(zip(shapes, operand_avals))))
            for i, (value, aval) in enumerate(zip(values, result_avals)):
                np.copyto(_view(results[first_result + i], aval.shape, aval.dtype), value, casting="no")
            return 0
        except BaseException:
            text = traceback.format_exc().encode()[-(error_size - 1):]
            ctypes.memmove(error, text + b"\0", len(text) + 1)
            return 1
    return HostFunction(call)


def _ir_type(context, aval):
    """JAX before 0.10.1 does not pass the context."""
    from jax._src.interpreters import mlir
    with_context = len(inspect.signature(mlir.aval_to_ir_type).parameters) > 1
    return mlir.aval_to_ir_type(context, aval) if with_context else mlir.aval_to_ir_type(aval)


def _set_sharding(context, op, sharding, tokens):
    from jax._src.interpreters import mlir
    if tokens and len(op.results) > tokens and hasattr(sharding, "shardings"):  # one for the token, too
        first = sharding.shardings[0]
        ids = getattr(first, "logical_device_ids", ())
        sharding = type(sharding)((type(first)(mesh_shape=(), dim_shardings=(), logical_device_ids=ids), *sharding.shardings))
    with_context = len(inspect.signature(mlir.set_sharding).parameters) > 2
    mlir.set_sharding(*([context] if with_context else []), op, sharding)


def emit_python_callback(ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect,
                         sharding=None, partitioned=False, **_):
    """Stands in for jax._src.callback.emit_python_callback on weft; same contract. Of what else versions of JAX pass, layouts
    do not matter. A program runs as one job, and the callback sees whole values; `partitioned`, each device's parts of them."""
    from jax._src import dtypes
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import hlo

    if partitioned and result_avals:
        raise ValueError("Partitioned callback not supported with return values: each device would have its own.")

    def checked(*args):
        values = callback(*args)
        if len(values) != len(result_avals):
            raise RuntimeError("Mismatched number of outputs from callback. "
                               f"Expected: {len(result_avals)}, Actual: {len(values)}")
        values = tuple(np.asarray(v) for v in values)
        values = tuple(v.astype(dtypes.canonicalize_dtype(v.dtype), copy=False) for v in values)
        for i, (value, aval) in enumerate(zip(values, result_avals)):
            if value.shape != aval.shape:
                raise RuntimeError(f"Incorrect output shape for return value #{i}: "
                                   f"Expected: {aval.shape}, Actual: {value.shape}")
            if value.dtype != aval.dtype:
                raise RuntimeError(f"Incorrect output dtype for return value #{i}: "
                                   f"Expected: {aval.dtype}, Actual: {value.dtype}")
        return values

    tokens = 1 if token else 0
    function = host_function(checked, operand_avals, result_avals, tokens, tokens)
    ctx.module_context.add_keepalive(function)
    address = ctypes.cast(function, ctypes.c_void_p).value
    types = [hlo.TokenType.get()] * tokens
    types += [_ir_type(ctx.module_context, a) for a in result_avals]
    config = {"address": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), address)}
    if partitioned:
        config["partitioned"] = ir.BoolAttr.get(True)
    op = mlir.custom_call(
        "weft_host_callback",
        result_types=types,
        operands=([token] if token else []) + list(operands),
        has_side_effect=has_side_effect,
        backend_config=config)
    if sharding is not None:
        _set_sharding(ctx.module_context, op, sharding, tokens)
    results = list(op.results)
    token = results.pop(0) if tokens else None
    return results, token, function


def _callbacks():
    from jax._src import callback
    from jax._src.interpreters import mlir
    from jax.interpreters import mlir as public
    places = [m for m in (callback, mlir, public) if hasattr(m, "emit_python_callback")]  # until 0.4 in mlir
    original = places[0].emit_python_callback

    def emit(ctx, *args, **kwargs):
        function = emit_python_callback if _is_weft(ctx.module_context) else original
        return function(ctx, *args, **kwargs)

    if getattr(original, "weft", False):
        return
    emit.weft = True
    for module in places:
        module.emit_python_callback = emit


class _Buffer:
    """What a callback of jax.experimental.buffer_callback sees of an array in host memory."""

    def __init__(self, array, writeable):
        self.array, self.writeable = array.view(), writeable
        self.array.flags.writeable = writeable
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype, copy=True) if copy else np.asarray(self.array, dtype=dtype)

    def __dlpack__(self, **_):  # NumPy gives no array away that may not be written
        return np.asarray(self.array if self.writeable else self.array.copy()).__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def _buffer_callbacks():
    import jax
    from jax._src import buffer_callback
    from jax._src.interpreters import mlir

    class Context:
        stage = buffer_callback.ExecutionStage.EXECUTE

        @property
        def stream(self):
            raise jax.errors.JaxRuntimeError("XLA FFI GPU context is not available: weft calls on the host")

    def lower(ctx, *operands, callback, in_tree, out_tree, has_side_effect, input_output_aliases, **_):
        def call(*values):
            values, out = list(values), [np.empty(a.shape, a.dtype) for a in ctx.avals_out]
            for i, o in dict(input_output_aliases).items():
                out[o][...] = values[i]
                values[i] = out[o]
            args, kwargs = jax.tree.unflatten(in_tree, [_Buffer(v, False) for v in values])
            if callback(Context(), jax.tree.unflatten(out_tree, [_Buffer(o, True) for o in out]), *args, **kwargs) is not None:
                raise ValueError("buffer_callback callback must not return any values.")
            return out
        return emit_python_callback(ctx, call, None, operands, ctx.avals_in, ctx.avals_out,
                                    has_side_effect=has_side_effect)[0]
    mlir.register_lowering(buffer_callback.buffer_callback_p, lower, platform="weft")


# ---- DLPack -------------------------------------------------------------------------------------------------------------


def _dlpack():
    """Arrays on weft are given away as copies in host memory: JAX knows no DLPack device for other platforms. What is taken
    with copy=True is copied here: jaxlib cannot ask a plugin for it."""
    import jax
    from jax._src import dlpack, xla_bridge
    from jax._src.array import ArrayImpl
    if getattr(ArrayImpl, "weft_dlpack", False):
        return
    pack, device = ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__

    def _holds(array):
        return _is_ours(next(iter(array.devices())).client)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if not _holds(self):
            return pack(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        if copy is False:
            raise BufferError("weft gives arrays to DLPack as copies: copy=False is not possible")
        return np.array(self).__dlpack__()

    def __dlpack_device__(self):
        if not _holds(self):
            return device(self)
        from jax._src.dlpack import DLDeviceType
        return DLDeviceType.kDLCPU, 0

    take = dlpack.from_dlpack

    @functools.wraps(take)
    def from_dlpack(external_array, device=None, copy=None):
        if copy and _is_ours(xla_bridge.get_backend()):
            return jax.numpy.array(take(external_array, device), copy=True)
        return take(external_array, device, copy)

    ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__ = __dlpack__, __dlpack_device__
    ArrayImpl.weft_dlpack = True
    dlpack.from_dlpack = jax.dlpack.from_dlpack = from_dlpack


# ---- Pallas ---------------------------------------------------------------------------------------------------------------


def _pallas():
    """Says what to do about Pallas kernels; JAX's own message only names a missing rule."""
    from jax._src.interpreters import mlir
    original = mlir.lower_per_platform
    if getattr(original, "weft", False):
        return

    def lower_per_platform(ctx, description, rules, default, *args, **kwargs):
        platforms = ctx.platforms or ctx.module_context.platforms
        compiled = description == "pallas_call" and default is None  # interpreted calls come with a default rule
        if compiled and any(name in platforms for name in NAMES):
            raise NotImplementedError(
                "Pallas kernels are written for one maker's hardware; weft runs them interpreted: "
                "pass interpret=True to pallas_call")
        return original(ctx, description, rules, default, *args, **kwargs)
    lower_per_platform.weft = True
    mlir.lower_per_platform = lower_per_platform
