"""Functions of TensorFlow's that compute the shape of a result although it is told: their operation wants it as a constant."""
import functools

import tensorflow as tf
from tensorflow.python.ops import gen_math_ops

from weft.tf import trace


def _bincount(original):
    @functools.wraps(original)
    def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=tf.int32, name=None, axis=None, binary_output=False):
        told = isinstance(minlength, int) and minlength == maxlength
        if trace.owner() is None or not told or not isinstance(arr, tf.Tensor) or axis not in (None, 0, -1) or arr.shape.rank is None:
            return original(arr, weights, minlength, maxlength, dtype, name, axis, binary_output)
        if arr.dtype not in (tf.int32, tf.int64):
            arr = tf.cast(arr, tf.int32)
        if axis in (None, 0) or arr.shape.rank == 1:
            arr = tf.reshape(arr, [-1])
        weights = tf.zeros([0], dtype) if weights is None else tf.reshape(weights, tf.shape(arr))
        return gen_math_ops.dense_bincount(input=arr, size=tf.constant(maxlength, arr.dtype), weights=weights, binary_output=binary_output)
    return tf.autograph.experimental.do_not_convert(bincount)


def install():
    tf.math.bincount = _bincount(tf.math.bincount)
