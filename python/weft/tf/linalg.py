"""Operations of tf.linalg that TensorFlow's bridge does not know, of what it and the plugin do: determinants from XLA's LuDecomposition."""
import functools

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.ops import gen_linalg_ops
from tensorflow.python.ops.linalg import linalg_impl

from weft.tf import trace


def _factors(x):
    """The diagonal of U, and the sign of the row exchanges, of square matrices."""
    n, batch = x.shape[-1], x.shape[:-2].as_list()
    lu, pivots, _ = gen_xla_ops.xla_custom_call_v2(
        operands=[x], call_target_name="LuDecomposition", backend_config="", has_side_effect=False,
        result_dtypes=[x.dtype, tf.int32, tf.int32], result_shapes=[x.shape, [*batch, n], [*batch, n]])
    exchanged = tf.cast(tf.not_equal(pivots, tf.range(n)), x.dtype)
    return tf.linalg.diag_part(lu), tf.reduce_prod(1 - 2 * exchanged, -1)


def _inverse(x):
    return tf.linalg.matrix_transpose(tf.linalg.inv(x), conjugate=True)


def _whole(x, shape):
    return x[..., tf.newaxis, tf.newaxis] * tf.ones(shape[-2:], x.dtype)


@tf.custom_gradient
def _determinant(x):
    diagonal, sign = _factors(x)
    det = tf.reduce_prod(diagonal, -1) * sign
    return det, lambda g: _whole(g * tf.math.conj(det), x.shape) * _inverse(x)


@tf.custom_gradient
def _log_determinant(x):
    diagonal, sign = _factors(x)
    sign *= tf.reduce_prod(tf.math.sign(diagonal), -1)
    log = tf.cast(tf.reduce_sum(tf.math.log(tf.abs(diagonal)), -1), x.dtype)
    return (sign, log), lambda _, g: _whole(g, x.shape) * _inverse(x)


def _in_programs(original, ours):
    """`ours` where a program is traced and the shape is known."""
    @functools.wraps(original)
    def wrapped(input, name=None):
        if trace.owner() is None:
            return original(input, name=name)
        x = tf.convert_to_tensor(input)
        if not x.shape.is_fully_defined() or x.shape.rank < 2 or x.shape[-1] != x.shape[-2]:
            return original(x, name=name)
        return ours(x)
    return tf.autograph.experimental.do_not_convert(wrapped)


def install():
    det = _in_programs(gen_linalg_ops.matrix_determinant, _determinant)
    slogdet = _in_programs(linalg_impl.slogdet, _log_determinant)
    gen_linalg_ops.matrix_determinant = tf.linalg.det = det
    linalg_impl.slogdet = tf.linalg.slogdet = slogdet
