"""tf.profiler, and what stands on it (Keras's TensorBoard callback): the devices' part of a recording, with a chip's own time."""
import pathlib

import tensorflow as tf
from tensorflow.python.profiler import profiler_v2

from weft.tf import pjrt, runtime

_recording = None  # (pjrt.Profiler, folder)


def _start(original):
    def start(logdir, options=None):
        global _recording
        original(logdir, options)
        if logdir:
            _recording = pjrt.Profiler(runtime.client()), pathlib.Path(logdir)
    start.__doc__ = original.__doc__
    return start


def _stop(original):
    def stop(save=True):
        global _recording
        original(save)
        if _recording is None:
            return
        profiler, folder = _recording
        _recording = None
        space = profiler.stop()
        spaces = sorted(folder.glob("plugins/profile/*/*.xplane.pb"), key=lambda f: f.stat().st_mtime)
        if save and spaces:
            with open(spaces[-1], "ab") as f:
                f.write(space)  # a message that follows another of its kind is merged with it
    stop.__doc__ = original.__doc__
    return stop


def install():
    profiler_v2.start, profiler_v2.stop = _start(profiler_v2.start), _stop(profiler_v2.stop)
    tf.profiler.experimental.start, tf.profiler.experimental.stop = profiler_v2.start, profiler_v2.stop
