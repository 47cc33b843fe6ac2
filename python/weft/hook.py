"""WEFT_DEVICE alone turns TensorFlow's programs to weft: weft_hook.pth imports this module when the variable is set.

Nothing is imported until the program imports tensorflow itself; weft.tf then follows. Programs that use TensorFlow beside another
framework (tf.data with JAX on weft, Keras on another backend) are left alone.
"""
import importlib.util
import os
import sys


def wanted():
    """Is TensorFlow what this program computes with, as far as variables tell? Programs set some of them themselves."""
    env = os.environ
    return env.get("KERAS_BACKEND", "tensorflow") == "tensorflow" and "weft" not in env.get("JAX_PLATFORMS", "")


class _Finder:
    """Finds tensorflow as everybody else would, and has weft.tf imported after it."""

    def find_spec(self, name, path=None, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                if wanted():
                    import weft.tf  # noqa: F401
            spec.loader.exec_module = exec_module
        return spec


def install():
    if os.environ.get("WEFT_DEVICE") and "tensorflow" not in sys.modules:
        sys.meta_path.insert(0, _Finder())


install()
