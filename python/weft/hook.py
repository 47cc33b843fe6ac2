"""WEFT_DEVICE alone turns programs of TensorFlow and TorchTPU to weft: weft_hook.pth imports this module when the variable is set.

Nothing is imported until the program imports one of them itself. Programs that use TensorFlow beside another framework (tf.data with
JAX on weft, Keras on another backend) are left alone. PyTorch/XLA finds weft by itself, by an entry point.
"""
import os
import sys


def wanted():
    """Is TensorFlow what this program computes with, as far as variables tell? Programs set some of them themselves."""
    env = os.environ
    return env.get("KERAS_BACKEND", "tensorflow") == "tensorflow" and "weft" not in env.get("JAX_PLATFORMS", "")


def _after_tensorflow(_):
    if wanted():
        import weft.tf  # noqa: F401


def _before_torch_tpu(module):
    from weft.torch import tpu
    tpu.prepare(module)


def _after_torch_tpu(module):
    from weft.torch import tpu
    tpu.loaded(module)


def _after_hardware(module):
    from weft.torch import tpu
    tpu.hardware(module)


# what is done before and after a module is executed
_AROUND = {
    "tensorflow": (None, _after_tensorflow),
    "torch_tpu": (_before_torch_tpu, _after_torch_tpu),
    "torch_tpu._internal.utils.hardware": (None, _after_hardware),
}


class _Finder:
    """Finds these modules as everybody else would; what is done around each is done when it is first executed: who only asks
    whether it is there changes nothing."""

    def __init__(self):
        self.around = {name: what for name, what in _AROUND.items() if name not in sys.modules}

    def find_spec(self, name, path=None, target=None):
        if name not in self.around:
            return None
        others = (f.find_spec(name, path, target) for f in sys.meta_path if f is not self and hasattr(f, "find_spec"))
        spec = next((s for s in others if s is not None), None)
        if spec is not None and spec.loader is not None:
            self.wrap(spec.loader, name)
        return spec

    def wrap(self, loader, name):
        execute = loader.exec_module

        def exec_module(module):
            before, after = self.around.pop(name, (None, None))
            if before:
                before(module)
            execute(module)
            if after:
                after(module)
        loader.exec_module = exec_module


def install():
    if os.environ.get("WEFT_DEVICE"):
        sys.meta_path.insert(0, _Finder())


install()
