"""JAX plugin: JAX calls initialize() when it looks for backends.

    JAX_PLATFORMS=weft python program.py
    WEFT_DEVICE=cpu:8 JAX_PLATFORMS=weft python program.py     # eight devices

What JAX ties to platform names is registered for "weft" in rules.py: donation, linear algebra, host callbacks.
"""
import atexit
import ctypes
import dataclasses
import logging
import os
import pathlib
import re

logger = logging.getLogger(__name__)

# Below JAX's own CPU backend: weft is used when it is asked for.
PRIORITY = -10


def _library_path():
    try:
        from weft import library_path
        return library_path()
    except ImportError:  # only this package was put on the path
        root = pathlib.Path(__file__).resolve().parents[3]
        return str(root / "build" / "libpjrt_weft.so")


def platform():
    """What the plugin calls its platform, as pjrt/platform.c finds it: "weft", WEFT_PLATFORM, or "tpu" in libtpu's place."""
    if name := os.environ.get("WEFT_PLATFORM"):
        return name if name in ("cpu", "tpu", "cuda", "rocm") else "weft"
    libtpu = os.environ.get("TPU_LIBRARY_PATH")
    try:
        return "tpu" if libtpu and os.path.samefile(libtpu, _library_path()) else "weft"
    except OSError:
        return "weft"


def _options():
    """Create options. How programs ask JAX for several CPU devices also counts for a WEFT_DEVICE without a number ("cpu")."""
    import jax
    from jax._src.lib import xla_client
    if hasattr(xla_client, "CompileOptions"):
        xla_client.CompileOptions()  # jaxlib reads XLA_FLAGS with the first: now, as XLA's own clients do, not within the first compile
    options = {}
    count = getattr(jax.config, "jax_num_cpu_devices", -1)
    if not count or count < 1:
        flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        count = int(flag.group(1)) if flag else 0
    if count > 0:
        options["num_devices"] = count
    if version := _stablehlo_version():
        options["stablehlo_version"] = version
    return options


def _stablehlo_version():
    """jaxlib up to 0.5 writes programs for the plugin's version of StableHLO even when that is newer than its own."""
    try:
        from jaxlib.mlir.dialects import stablehlo
        return stablehlo.get_current_version()
    except Exception:
        return None


def _register(xb, path):
    """JAX before 0.6 takes options as a dictionary, not as a function that makes one."""
    import jax
    late = tuple(int(n) for n in jax.__version__.split(".")[:2]) >= (0, 6)
    xb.register_plugin("weft", priority=PRIORITY, library_path=path, options=_options if late else _options())


def _quiet_unless_asked(xb):
    """A program that names no platform gets JAX's own: what weft cannot do (several processes, say) is not its error."""
    factories = xb._backend_factories
    if not xb.config.jax_platforms.value and dataclasses.is_dataclass(factories["weft"]):
        factories["weft"] = dataclasses.replace(factories["weft"], fail_quietly=True)


def _problem(path):
    """Why the library cannot be used; None when it can. The loader's sentence names the library that it misses."""
    if not pathlib.Path(path).exists():
        return f"there is no library {path}; build weft (make), or set WEFT_PLUGIN to where it is"
    try:
        ctypes.CDLL(path)
    except OSError as e:
        return f"cannot load {path}: {e}"
    return None


def _refuse(xb, problem):
    """Programs that ask for weft end with this sentence, others do not hear of it (a plugin that raises, or that JAX fails to
    load, prints a traceback in every program)."""
    def factory():
        raise RuntimeError(problem)
    logger.info("weft: %s", problem)
    xb.register_backend_factory("weft", factory, priority=PRIORITY)


def _lost(path):
    """Was a process of this one's job lost?"""
    try:
        from weft import extension
    except ImportError:  # only this package was put on the path
        return False
    lost = extension(path, 0x57454a42, ctypes.CFUNCTYPE(ctypes.c_bool))
    return bool(lost and lost())


def _do_not_wait_for_the_lost(path):
    """At its end JAX waits until all processes of a job have come to theirs: minutes, where one was killed. Then it shall not."""
    from jax._src import distributed
    state = distributed.global_state
    if state.client is None or not _lost(path):
        return
    for name in ("client", "service", "preemption_sync_manager"):
        if getattr(state, name, None) is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(getattr(state, name)))  # what ends them waits as well
            setattr(state, name, None)


def initialize():
    """Registers the plugin and its lowering rules. JAX calls this once."""
    import jax._src.xla_bridge as xb

    try:
        path = _library_path()
        problem = _problem(path)
    except FileNotFoundError as e:
        problem = str(e)
    if problem:
        _refuse(xb, problem)
        return
    _register(xb, path)
    _quiet_unless_asked(xb)
    atexit.register(_do_not_wait_for_the_lost, path)
    from jax_plugins.weft import rules
    rules.register(platform())
