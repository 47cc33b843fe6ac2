"""TensorFlow: tf.function, with XLA in mode "xla", on weft in mode "weft"; its fused optimizer kernels."""
import functools
import math

import numpy as np
import tensorflow as tf

exp, tanh, reshape, transpose, matmul, concat, array = (tf.exp, tf.tanh, tf.reshape, tf.transpose, tf.matmul, tf.concat, tf.constant)
relu, silu, relu6, softmax = tf.nn.relu, tf.nn.silu, tf.nn.relu6, tf.nn.softmax
cumsum, sort, rows = functools.partial(tf.cumsum, axis=-1), tf.sort, tf.gather


def open(threads):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return {"tensorflow": tf.__version__}


# ---- operations ----------------------------------------------------------------------------------------------------------


def conv(p, x, stride=1, pad=0):
    if pad:
        side = (p["k"] if "k" in p else p["kd"]).shape[0]
        whole = stride == 1 and side == 2 * pad + 1
        x = x if whole else tf.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        padding = "SAME" if whole else "VALID"
    else:
        padding = "VALID"
    if "kd" in p:
        y = tf.nn.depthwise_conv2d(x, tf.transpose(p["kd"], (0, 1, 3, 2)), (1, stride, stride, 1), padding)
    else:
        y = tf.nn.conv2d(x, p["k"], stride, padding)
    return tf.nn.bias_add(y, p["b"]) if "b" in p else y


def conv_transposed(p, x, stride, pad):
    k = tf.transpose(p["kt"], (0, 1, 3, 2))
    shape = (x.shape[0], x.shape[1] * stride, x.shape[2] * stride, k.shape[2])
    return tf.nn.conv2d_transpose(x, k, shape, stride, "SAME")


def max_pool(x, size, stride, pad=0):
    if pad:  # what comes in is never negative
        x = tf.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    return tf.nn.max_pool2d(x, size, stride, "VALID")


def spatial_max(x): return tf.reduce_max(x, (1, 2))
def spatial_mean(x): return tf.reduce_mean(x, (1, 2))
def flatten(x): return tf.reshape(x, (x.shape[0], -1))
def image(x, h, w, c): return tf.reshape(x, (x.shape[0], h, w, c))
def concat_channels(xs): return tf.concat(xs, -1)
def split(x, n): return tf.split(x, n, -1)
def leaky_relu(x): return tf.nn.leaky_relu(x, 0.2)
def gelu(x, exact): return tf.nn.gelu(x, approximate=not exact)
def embedding(p, ids): return tf.gather(p["table"], ids)
def mean(x, axis=None): return tf.reduce_mean(x, axis)
def mean_square(x, y): return tf.reduce_mean(tf.square(tf.cast(x - y, tf.float32)))
def segment_sum(x, ids, n): return tf.math.unsorted_segment_sum(x, ids, n)
def random_normal(key, n): return tf.random.stateless_normal((n,), tf.cast(key, tf.int32))


def flat_product(x, w, **how):
    y = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), w, **how)
    return tf.reshape(y, (*x.shape[:-1], y.shape[-1]))


def tied(p, x): return flat_product(x, p["table"], transpose_b=True)


def dense(p, x):
    y = flat_product(x, p["w"])
    return tf.nn.bias_add(y, p["b"]) if "b" in p else y


def batch_norm(p, x):
    return tf.compat.v1.nn.fused_batch_norm(x, p["gain"], p["bias"], epsilon=1e-5)[0]


def layer_norm(p, x):
    z = tf.cast(x, tf.float32)
    m, v = tf.nn.moments(z, -1, keepdims=True)
    y = (z - m) * tf.math.rsqrt(v + 1e-5) * tf.cast(p["gain"], tf.float32) + tf.cast(p["bias"], tf.float32)
    return tf.cast(y, x.dtype)


def rms_norm(p, x): return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-5) * p["gain"]


def attention(q, k, v, causal):
    s = tf.matmul(q, k, transpose_b=True) * (1 / math.sqrt(q.shape[-1]))
    if causal:
        s = s + tf.constant(np.triu(np.full(s.shape[-2:], -1e30, np.float32), 1), s.dtype)
    return tf.matmul(tf.nn.softmax(s), v)


def over_time(cell, x, states, width):
    """cell(states, x at a time) -> states, the first of which is the output; x is [batch, time, ...]."""
    batch, time = x.shape[:2]
    source = tf.TensorArray(x.dtype, time, element_shape=(batch, x.shape[2])).unstack(tf.transpose(x, (1, 0, 2)))
    sink = tf.TensorArray(x.dtype, time, element_shape=(batch, width))
    zero = [tf.zeros((batch, width), x.dtype) for _ in range(states)]

    def body(t, kept, sink):
        kept = cell(kept, source.read(t))
        return t + 1, kept, sink.write(t, kept[0])
    sink = tf.while_loop(lambda t, *_: t < time, body, (tf.constant(0), zero, sink), maximum_iterations=time)[2]
    return tf.transpose(sink.stack(), (1, 0, 2))


def lstm(p, x, width):
    def cell(kept, gates):
        h, c = kept
        i, f, g, o = tf.split(gates + tf.matmul(h, w), 4, -1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return [tf.sigmoid(o) * tf.tanh(c), c]
    w = tf.identity(p["h"]["w"])
    return over_time(cell, dense(p["x"], x), 2, width)


def gru(p, x, width):
    def cell(kept, gates):
        h = kept[0]
        (r, z, n), (hr, hz, hn) = tf.split(gates, 3, -1), tf.split(tf.matmul(h, w), 3, -1)
        r, z = tf.sigmoid(r + hr), tf.sigmoid(z + hz)
        return [(1 - z) * tf.tanh(n + r * hn) + z * h]
    w = tf.identity(p["h"]["w"])
    return over_time(cell, dense(p["x"], x), 1, width)


def cross_entropy(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32)))


# ---- steps ---------------------------------------------------------------------------------------------------------------


def tree_map(fn, tree):
    if isinstance(tree, dict):
        return {k: tree_map(fn, v) for k, v in tree.items()}
    return [tree_map(fn, v) for v in tree] if isinstance(tree, (list, tuple)) else fn(tree)


def halve(tree):
    return tree_map(lambda x: tf.cast(x, tf.bfloat16) if x.dtype == tf.float32 else tf.convert_to_tensor(x), tree)


def prepare_training(work, mode):
    import by_tensorflow as F
    values, batch = work.values()
    variables = []

    def variable(x):
        variables.append(tf.Variable(x))
        return variables[-1]
    tree, batch, o = tree_map(variable, values), [tf.constant(x) for x in batch], work.optimizer
    del values
    first = [tf.Variable(tf.zeros_like(v)) for v in variables]
    second = [tf.Variable(tf.zeros_like(v)) for v in variables] if o["kind"] == "adam" else [None] * len(variables)
    powers = [tf.Variable(1.0), tf.Variable(1.0)]

    def update(v, g, m, s):
        g = tf.zeros_like(v) if g is None else tf.convert_to_tensor(g)  # None: the loss does not depend on it
        if o["kind"] == "momentum":
            tf.raw_ops.ResourceApplyMomentum(var=v.handle, accum=m.handle, lr=o["lr"], grad=g + o["decay"] * v, momentum=o["momentum"],
                                             use_nesterov=True)
        else:
            tf.raw_ops.ResourceApplyAdam(var=v.handle, m=m.handle, v=s.handle, beta1_power=powers[0], beta2_power=powers[1], lr=o["lr"],
                                         beta1=o["beta1"], beta2=o["beta2"], epsilon=o["eps"], grad=g)

    @functools.partial(tf.function, jit_compile=mode in ("xla", "weft"))
    def one(*batch):
        with tf.GradientTape() as tape:
            loss = work.net.loss(F, *((halve(tree), *halve(batch)) if work.bf16 else (tree, *batch)))
        grads = tape.gradient(loss, variables)
        if o["kind"] == "adam":
            powers[0].assign(powers[0] * o["beta1"])
            powers[1].assign(powers[1] * o["beta2"])
        for one_of_them in zip(variables, grads, first, second):
            update(*one_of_them)
        return loss
    return lambda: float(one(*batch)), float, dict


def prepare(work, mode):
    if mode == "weft":
        import weft.tf  # noqa: F401
    import by_tensorflow as F
    if hasattr(work, "net"):
        return prepare_training(work, mode)
    inputs = [tf.constant(x) for x in work.values()]
    if work.bf16:
        inputs = halve(inputs)

    @functools.partial(tf.function, jit_compile=mode in ("xla", "weft"))
    def one(*inputs):
        if not work.grad:
            return [work.fn(F, *inputs)]
        with tf.GradientTape() as tape:
            tape.watch(inputs[:work.grad])
            total = tf.reduce_sum(tf.square(work.fn(F, *inputs)))
        return [tf.convert_to_tensor(g) for g in tape.gradient(total, inputs[:work.grad])]

    def step():
        out = one(*inputs)
        out[0].numpy()
        return out
    return step, lambda out: float(sum(np.abs(tf.cast(x, tf.float64).numpy()).mean() for x in out)), dict
