"""Small programs of the kind people have, each a function of a strategy that returns arrays: cases.py OUT.npz [NAME...].

A case that fails is noted by its error in place of its arrays, the others go on.
"""
import os
import sys
import tempfile
import time
import traceback

import keras
import numpy as np
import tensorflow as tf

from common import CASES, case, weights

rng = np.random.default_rng(0)
IMAGES = rng.random((48, 8, 8, 3), dtype=np.float32)
LABELS = rng.integers(0, 4, 48)
WORDS = rng.integers(0, 30, (48, 7))
ROWS = rng.random((48, 6), dtype=np.float32)
TARGETS = (ROWS @ rng.random((6, 2), dtype=np.float32) + 0.1).astype(np.float32)
layers, losses, optimizers = keras.layers, keras.losses, keras.optimizers


def small(units=5):
    return keras.Sequential([layers.Input((6,)), layers.Dense(units, activation="tanh"), layers.Dense(2)])


def history(h):
    return {k: np.asarray(v, np.float64) for k, v in h.history.items()}


# ---- fit ------------------------------------------------------------------------------------------------------------------


@case
def fit_uneven(strategy):
    """A last batch that the replicas cannot share evenly, and validation."""
    with strategy.scope():
        model = small()
        model.compile(optimizers.SGD(0.1), "mse", metrics=["mae"])
    h = model.fit(ROWS[:45], TARGETS[:45], batch_size=16, epochs=2, shuffle=False, verbose=0, validation_data=(ROWS[:10], TARGETS[:10]))
    return {**history(h), **weights(model), "predict": model.predict(ROWS[:7], batch_size=4, verbose=0)}


@case
def fit_default(_):
    """No strategy at all."""
    model = keras.Sequential([layers.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(4)])
    model.compile(optimizers.AdamW(1e-2, clipnorm=0.5), losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    h = model.fit(IMAGES, LABELS, batch_size=20, epochs=2, shuffle=False, verbose=0)
    return {**history(h), **weights(model), "batch": np.asarray(model.train_on_batch(IMAGES[:8], LABELS[:8]))}


@case
def compiled_outside(strategy):
    """An optimizer that is made outside of the model's strategy, as scripts have it that go on with other rates."""
    with strategy.scope():
        model = small()
    model.compile(optimizers.SGD(0.1), "mse")
    h = model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0)
    return {**history(h), **weights(model)}


@case
def batch_norm(strategy):
    """Statistics of each replica, averaged."""
    with strategy.scope():
        model = keras.Sequential([layers.Input((8, 8, 3)), layers.Conv2D(4, 3), layers.BatchNormalization(), layers.ReLU(), layers.Flatten(), layers.Dense(4)])
        model.compile(optimizers.SGD(0.05, momentum=0.9), losses.SparseCategoricalCrossentropy(from_logits=True))
    return {**history(model.fit(IMAGES, LABELS, batch_size=16, epochs=2, shuffle=False, verbose=0)), **weights(model)}


@case
def batch_norm_synchronised(strategy):
    with strategy.scope():
        model = keras.Sequential([layers.Input((8, 8, 3)), layers.Conv2D(4, 3), layers.BatchNormalization(synchronized=True), layers.ReLU(),
                                  layers.Flatten(), layers.Dense(4)])
        model.compile(optimizers.SGD(0.05), losses.SparseCategoricalCrossentropy(from_logits=True))
    return {**history(model.fit(IMAGES, LABELS, batch_size=16, epochs=2, shuffle=False, verbose=0)), **weights(model)}


@case
def words(_):
    """Embedding, LSTM and GRU; averages of the weights that replace them every other step (MirroredStrategy cannot)."""
    model = keras.Sequential([layers.Input((7,)), layers.Embedding(30, 6), layers.LSTM(5, return_sequences=True), layers.GRU(4), layers.Dense(4)])
    model.compile(optimizers.RMSprop(1e-2, use_ema=True, ema_overwrite_frequency=2), losses.SparseCategoricalCrossentropy(from_logits=True))
    return {**history(model.fit(WORDS, LABELS, batch_size=16, epochs=1, shuffle=False, verbose=0)), **weights(model)}


@case
def words_of_replicas(_):
    """Words that come more than once, in one replica and in several: Adam takes each time by itself, but on a TPU."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())  # two of TensorFlow's with collectives clash
    with strategy.scope():
        model = keras.Sequential([layers.Input((7,)), layers.Embedding(30, 6), layers.GlobalAveragePooling1D(), layers.Dense(4)])
        model.compile(optimizers.Adam(1e-2), losses.SparseCategoricalCrossentropy(from_logits=True))
    return {**history(model.fit(WORDS // 6, LABELS, batch_size=16, epochs=2, shuffle=False, verbose=0)), **weights(model)}


@case
def words_of_uneven_batches(_):
    """The last batch has more words in one replica than in the other."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        model = keras.Sequential([layers.Input((7,)), layers.Embedding(30, 6, mask_zero=True), layers.GRU(5), layers.Dense(4)])
        model.compile(optimizers.Adam(1e-2), losses.SparseCategoricalCrossentropy(from_logits=True))
    return {**history(model.fit(WORDS[:41] // 3, LABELS[:41], batch_size=16, epochs=2, shuffle=False, verbose=0)), **weights(model)}


@case
def attention(strategy):
    class Block(layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")
            self.attend, self.norm = layers.MultiHeadAttention(2, 4, use_bias=False), layers.LayerNormalization()

        def call(self, x):
            return self.norm(x + self.scale * self.attend(x, x))
    with strategy.scope():
        inputs = keras.Input((8, 24))
        x = Block()(layers.Dense(8)(inputs))
        model = keras.Model(inputs, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))
        schedule = optimizers.schedules.CosineDecay(1e-2, 10)
        model.compile(optimizers.Adam(schedule, clipvalue=0.1), losses.SparseCategoricalCrossentropy(from_logits=True))
    return {**history(model.fit(IMAGES.reshape(48, 8, 24), LABELS, batch_size=16, epochs=1, shuffle=False, verbose=0)), **weights(model)}


@case
def steps_per_execution(_):
    """Several steps in a loop of the graph (MirroredStrategy cannot)."""
    model = small()
    model.compile(optimizers.Adam(1e-2), "mse", steps_per_execution=2)
    return {**history(model.fit(ROWS, TARGETS, batch_size=8, epochs=2, shuffle=False, verbose=0)), **weights(model)}


@case
def callbacks(strategy):
    """Callbacks that read, write and save the weights between steps."""
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(float(np.abs(self.model.get_weights()[0]).sum()))
            if batch == 1:
                self.model.layers[-1].bias.assign([0.25, -0.25])
    with tempfile.TemporaryDirectory() as folder:
        with strategy.scope():
            model = small()
            model.compile(optimizers.SGD(0.1), "mse")
        h = model.fit(ROWS, TARGETS, batch_size=16, epochs=3, shuffle=False, verbose=0, validation_data=(ROWS[:8], TARGETS[:8]), callbacks=[
            Watch(), keras.callbacks.ModelCheckpoint(folder + "/best.weights.h5", save_weights_only=True, save_best_only=True),
            keras.callbacks.EarlyStopping(patience=2), keras.callbacks.LearningRateScheduler(lambda e, lr: lr * 0.5),
            keras.callbacks.TensorBoard(folder + "/log", update_freq="epoch"), keras.callbacks.CSVLogger(folder + "/log.csv")])
        assert len(list(os.scandir(folder))) >= 3
    return {**history(h), **weights(model), "seen": np.array(seen)}


@case
def mixed_bfloat16(strategy):
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        with strategy.scope():
            model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(2, dtype="float32")])
            model.compile(optimizers.SGD(0.1), "mse")
        h = model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0)
        return {"bf16_" + k: v for k, v in {**history(h), **weights(model)}.items()}
    finally:
        keras.mixed_precision.set_global_policy("float32")


@case
def mixed_float16(strategy):
    """With the loss scaling that it brings."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        with strategy.scope():
            model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(2, dtype="float32")])
            model.compile(optimizers.SGD(0.1), "mse")
        h = model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0)
        scale = np.asarray(model.optimizer.dynamic_scale.numpy())
        return {"f16_" + k: v for k, v in {**history(h), **weights(model), "scale": scale}.items()}
    finally:
        keras.mixed_precision.set_global_policy("float32")


@case
def mixed_float16_where_one_replica_overflows(strategy):
    """Gradients of the first replica's rows alone pass f16's largest number: the step is left out on both, and the scale halved."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    scales = []
    try:
        with strategy.scope():
            model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(2, dtype="float32")])
            model.compile(optimizers.LossScaleOptimizer(optimizers.SGD(0.01), dynamic_growth_steps=3), "mse")
        targets = TARGETS.copy()
        targets[:8] *= 300
        note = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: scales.append(float(model.optimizer.dynamic_scale.numpy())))
        model.fit(ROWS, targets, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=[note])
        return {"f16_scales": np.array(scales), **{"f16_" + k: v for k, v in weights(model).items()}}
    finally:
        keras.mixed_precision.set_global_policy("float32")


@case
def gathered_from_replicas(strategy):
    """A contrastive loss against what all replicas have: all_gather along either axis, and its gradient."""
    w = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2))

    @tf.function
    def go(x):
        def replica(x):
            ctx = tf.distribute.get_replica_context()
            with tf.GradientTape() as tape:
                z = tf.math.l2_normalize(x @ w, 1)
                every, wide = ctx.all_gather(z, axis=0), ctx.all_gather({"z": z[:, :1]}, axis=1)["z"]
                n = tf.shape(z)[0]
                labels = tf.range(n) + n * ctx.replica_id_in_sync_group
                loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, z @ tf.transpose(every))) + tf.reduce_sum(wide ** 3)
            return loss, ctx.all_reduce("SUM", tape.gradient(loss, w)), every
        return strategy.run(replica, args=(x,))
    loss, gradient, every = go(strategy.experimental_distribute_values_from_function(lambda ctx: tf.constant(ROWS[4 * ctx.replica_id_in_sync_group:][:4])))
    local = strategy.experimental_local_results
    return {"loss": np.stack(local(loss)), "gradient": local(gradient)[-1].numpy(), "every": local(every)[-1].numpy()}


@case
def branches_that_exchange(strategy):
    """All replicas take the branch that the first one's condition says; one that exchanges nothing is each one's own."""
    @tf.function
    def go(x):
        def replica(x):
            ctx = tf.distribute.get_replica_context()
            own = tf.cond(tf.reduce_sum(x) > 3.0, lambda: x + 1.0, lambda: x - 1.0)
            if strategy.extended._use_merge_call():  # TensorFlow's own: outside of replicas, by the first one's
                def merged(s, x):
                    first = s.experimental_local_results(x)[0]
                    big = s.reduce("SUM", x, axis=None) if s.num_replicas_in_sync > 1 else x
                    return tf.cond(tf.reduce_sum(first) > 3.0, lambda: big, lambda: tf.zeros_like(big))
                both = ctx.merge_call(merged, args=(x,))
            else:
                both = tf.cond(tf.reduce_sum(x) > 3.0, lambda: ctx.all_reduce("SUM", x), lambda: tf.zeros_like(x))
            return own, both
        return strategy.run(replica, args=(x,))
    values = strategy.experimental_distribute_values_from_function
    out = {}
    for name, rows in (("first", (2.0, 1.0)), ("second", (1.0, 2.0)), ("none", (0.0, 0.0))):
        own, both = go(values(lambda ctx, rows=rows: tf.fill((2,), tf.constant(rows[ctx.replica_id_in_sync_group]))))
        out[name + "_own"] = np.stack([v.numpy() for v in strategy.experimental_local_results(own)])
        out[name + "_both"] = strategy.experimental_local_results(both)[-1].numpy()
    return out


@case
def own_train_step(strategy):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = layers.Dense(5, activation="relu"), layers.Dense(2)
            self.seen = keras.metrics.Mean(name="seen")

        def call(self, x):
            return self.b(self.a(x))

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True) - y)) / strategy.num_replicas_in_sync
            gradients = tape.gradient(loss, self.trainable_variables)
            gradients, _ = tf.clip_by_global_norm(gradients, 0.3)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.seen.update_state(loss)
            return {"seen": self.seen.result()}

        @property
        def metrics(self):
            return [self.seen]
    with strategy.scope():
        model = Model()
        model.build((None, 6))
        model.compile(optimizers.Adam(1e-2))
    return {**history(model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0)), **weights(model)}


# ---- loops of one's own -----------------------------------------------------------------------------------------------------


@case
def custom_loop(strategy):
    """The loop of TensorFlow's guide: global batch, metrics, test step; a last batch that leaves replicas with less."""
    size = 16
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((ROWS[:41], TARGETS[:41])).batch(size))
    with strategy.scope():
        model, optimizer = small(), optimizers.Adam(1e-2)
        optimizer.build(model.trainable_variables)
        mean, error = keras.metrics.Mean(), keras.metrics.MeanAbsoluteError()

    def train_step(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            out = model(x, training=True)
            loss = tf.nn.compute_average_loss(tf.reduce_mean(tf.square(out - y), -1), global_batch_size=size)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        error.update_state(y, out)
        return loss

    def test_step(inputs):
        x, y = inputs
        mean.update_state(tf.reduce_mean(tf.square(model(x, training=False) - y)))

    @tf.function
    def train(inputs):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train_step, args=(inputs,)), axis=None)

    @tf.function
    def test(inputs):
        strategy.run(test_step, args=(inputs,))
    seen = []
    for _ in range(2):
        seen += [float(train(batch)) for batch in data]
        test(next(iter(data)))
        seen += [float(mean.result()), float(error.result())]
        mean.reset_state()
        error.reset_state()
    return {"seen": np.array(seen), **weights(model), "iterations": np.asarray(optimizer.iterations.numpy())}


@case
def loop_in_graph(strategy):
    """The loop over the data is within the tf.function; what it uses of the graph around it."""
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((ROWS, TARGETS)).batch(16, drop_remainder=True))
    with strategy.scope():
        w = tf.Variable(tf.ones((6, 2)))
        steps = tf.Variable(0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

    @tf.function
    def epoch(iterator, rate):
        total = 0.0
        for _ in tf.range(3):
            scaled = rate * 0.5

            def step(inputs):
                x, y = inputs
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(x @ w - y))
                gradient = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, w))
                w.assign_sub(scaled * gradient)
                steps.assign_add(1)
                return loss
            total += strategy.reduce("MEAN", strategy.run(step, args=(next(iterator),)), axis=None)
        return total
    first = epoch(iter(data), tf.constant(0.1))
    second = epoch(iter(data), tf.constant(0.05))
    return {"total": np.array([first, second]), "w": w.numpy(), "steps": steps.numpy()}


@case
def replicas(strategy):
    """Ids, exchanges, values of each replica, variables that each replica has its own of."""
    n = strategy.num_replicas_in_sync
    with strategy.scope():
        count = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
        mean = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.MEAN)
        total = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)

    @tf.function
    def step(x):
        context = tf.distribute.get_replica_context()
        i = tf.cast(context.replica_id_in_sync_group, tf.float32)
        count.assign_add(i + 1)
        mean.assign(10 * i)
        total.assign_add(2 * i)
        whole = tf.cast(tf.cast(x, tf.int64) + 3, tf.int64)
        row = context.all_gather(tf.reshape(tf.cast(i, tf.float64), (1,)), axis=0)
        return row, x * 2, context.all_reduce("SUM", x), context.all_reduce("MEAN", {"a": i, "b": x})["a"], context.all_reduce("SUM", whole), i
    values = strategy.experimental_distribute_values_from_function(lambda c: tf.constant(float(c.replica_id_in_sync_group + 5)))
    row, twice, all_, ids, whole, each = strategy.run(step, args=(values,))
    local = strategy.experimental_local_results
    return {"twice": np.array(local(twice)), "all": np.array(local(all_)), "ids": np.array(local(ids)), "whole": np.array(local(whole)),
            "each": np.array(local(each)), "n": np.array(n), "row": np.array(local(row)), "count": count.numpy(), "mean": mean.numpy(), "total": total.numpy(),
            "gathered": strategy.gather(strategy.run(lambda x: tf.reshape(x, (1, 1)), args=(values,)), axis=0).numpy(),
            "reduced": np.array(strategy.reduce("MEAN", each, axis=None))}


@case
def merge_call(strategy):
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])

    @tf.function
    def run(x):
        def step(x):
            def merge(s, g):
                total = s.extended.reduce_to(tf.distribute.ReduceOp.SUM, g, v)
                s.extended.update(v, lambda a, b: a.assign_add(b), args=(total,))
                return total
            tf.distribute.get_replica_context().merge_call(merge, args=(x * v,))
            return tf.reduce_sum(v)
        return strategy.run(step, args=(x,))
    out = run(tf.constant(0.5))
    return {"v": v.numpy(), "out": np.array(strategy.experimental_local_results(out))}


@case
def from_function(strategy):
    """Data sets that a function makes for each input pipeline."""
    def make(context):
        batch = context.get_per_replica_batch_size(16)
        return tf.data.Dataset.from_tensor_slices(ROWS).map(lambda r: r * 2).batch(batch).prefetch(2)
    data = strategy.distribute_datasets_from_function(make)
    step = tf.function(lambda x: strategy.run(lambda x: tf.reduce_sum(x), args=(x,)))
    return {"sums": np.array([[float(v) for v in strategy.experimental_local_results(step(x))] for x in data])}


@case
def plain_function(_):
    """tf.function without a strategy, with variables made in its first call; and what the host sees of them."""
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones((6, 2)) * 0.1, name="w")
            return tf.tanh(x @ self.w)
    net = Net()
    optimizer = optimizers.SGD(0.5)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, [net.w]), [net.w]))
        return {"loss": loss, "name": None}
    net(ROWS[:2])
    optimizer.build([net.w])
    seen = []
    for i in range(4):
        seen.append(float(train(tf.constant(ROWS), tf.constant(TARGETS))["loss"]))
        net.w.assign_add(tf.ones((6, 2)) * 0.01)
        seen.append(float(tf.reduce_sum(net.w)))
    with tf.GradientTape() as tape:  # a tape around a function that devices have run
        out = tf.reduce_sum(net(tf.constant(ROWS)))
    return {"seen": np.array(seen), "w": net.w.numpy(), "gradient": tape.gradient(out, net.w).numpy()}


@case
def host_reads(strategy):
    """A graph of the host's that uses variables between programs."""
    with strategy.scope():
        v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def run():
        strategy.run(lambda: v.assign(v * 2))
        between = tf.reduce_sum(v)
        v.assign_add([1.0, 1.0, 1.0])
        strategy.run(lambda: v.assign(v * 3))
        return between, v.read_value(), tf.cond(between > 0, lambda: v[0] * 2, lambda: v[1])
    a, b, c = run()
    d = run()[0]
    return {"between": a.numpy(), "after": b.numpy(), "branch": c.numpy(), "again": d.numpy(), "v": v.numpy()}


@case
def gradients_of_branches(_):
    """A tf.function by itself: gradients through branches, also those in loops, are a program; a loop that nobody knows the length of is the host's."""
    v = tf.Variable(np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3))
    which = tf.Variable(0)
    x = tf.constant(ROWS[:5, :3])

    def per_row(row):
        if tf.reduce_sum(row) > 1.5:
            return tf.linalg.matvec(v, row)
        return -row

    @tf.function
    def branches():
        with tf.GradientTape() as tape:
            mapped = tf.reduce_sum(tf.map_fn(per_row, x) ** 2)
            chosen = tf.switch_case(tf.identity(which), [lambda: tf.reduce_sum(v), lambda: tf.reduce_sum(v * v * 3.0)])
            loss = mapped + chosen
        which.assign_add(1)
        return loss, tape.gradient(loss, v)

    @tf.function
    def open_loop(limit):
        with tf.GradientTape() as tape:
            total, i = tf.constant(0.0), tf.constant(0)
            while tf.logical_and(i < 9, total < limit):
                total += tf.reduce_sum(v * v) * tf.cast(i, tf.float32)
                i += 1
        return total, tape.gradient(total, v)

    made = [*branches(), *branches(), *open_loop(tf.constant(3.0))]
    return {f"{i}": np.asarray(m) for i, m in enumerate(made)}


@case
def gradients_of_a_loop_of_unknown_length(_):
    """The bridge makes no program of it, so it runs on the host; the tape that is asked twice takes the gradient of all that the loop takes."""
    v, step = tf.Variable(np.linspace(-0.4, 0.5, 25, dtype=np.float32).reshape(5, 5)), tf.function(lambda: v.assign(v * 0.5))

    @tf.function
    def grow(n):
        with tf.GradientTape(persistent=True) as tape:
            i, total = tf.constant(0), tf.constant(0.0)
            while i < n:
                total += tf.reduce_sum(v) ** 2 * tf.cast(i, tf.float32)
                i += 1
            twice = 2.0 * total
        return total, tape.gradient(total, v), tape.gradient(twice, v)
    out = {}
    for n in (3, 5):
        step()
        out.update({f"{what}{n}": value.numpy() for what, value in zip(("total", "gradient", "twice"), grow(tf.constant(n)), strict=True)})
    return out


@case
def order_in_graph(strategy):
    """Programs in loops, branches and functions of a graph, between the host's reads and writes; one that gives nothing but a variable's value."""
    with strategy.scope():
        v = tf.Variable(1.0)

    def double():
        v.assign(v * 2)

    def one_more():
        v.assign(v + 1)

    @tf.function
    def called():
        strategy.run(one_more)

    @tf.function
    def run():
        strategy.run(double)
        for _ in tf.range(3):
            strategy.run(one_more)
        seen = [v.read_value()]
        v.assign_add(10.0)
        for _ in tf.range(2):
            strategy.run(double)
        seen.append(v.read_value())
        v.assign_sub(1.0)
        called()
        seen.append(v.read_value())
        v.assign_add(0.5)
        if v > 0:
            called()
        return seen + [v.read_value()]
    return {"seen": np.array([run(), run()]), "v": v.numpy()}


@case
def too_few_batches(strategy):
    """A function's data sets have no batch for the last replica at the end."""
    data = strategy.distribute_datasets_from_function(lambda c: tf.data.Dataset.from_tensor_slices(ROWS[:40]).batch(8))
    step = tf.function(lambda x: strategy.run(tf.reduce_sum, args=(x,)))
    return {"sums": np.array([[float(v) for v in strategy.experimental_local_results(step(x))] for x in data])}


@case
def eager_reads(_):
    """Eager operations that take a variable as it is, after steps that left its value on a device."""
    table, optimizer = tf.Variable(ROWS), optimizers.Adagrad(0.1)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return loss
    seen = []
    for _ in range(3):
        seen += [step(tf.constant([1, 2, 2, 7])), tf.reduce_sum(table), tf.matmul(table, table, transpose_a=True)[0, 0], table[1, 1] * 2.0]
    return {"seen": np.array(seen)}


@case
def jit_compile(_):
    model = small()
    model.compile(optimizers.SGD(0.1), "mse", jit_compile=True)
    h = model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0)
    double = tf.function(lambda x: tf.sin(x) * 2, jit_compile=True)
    return {**history(h), **weights(model), "double": double(tf.constant(ROWS)).numpy()}


@case
def special_functions(_):
    """Functions that TensorFlow's bridge has no StableHLO for, gelu's among them, and their gradients."""
    @tf.function(jit_compile=True)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(tf.nn.gelu(x, approximate=False))
        return tf.math.erf(x), tf.math.erfc(x), tf.math.erfinv(x * 0.5), tf.math.asinh(x), tape.gradient(total, x)
    return {str(i): v.numpy() for i, v in enumerate(run(tf.constant(ROWS)))}


@case
def types_of_variables(_):
    """Complex ones among them."""
    types = (tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int64, tf.uint16, tf.complex64, tf.complex128)
    variables = [tf.Variable(tf.cast([1, 2, 3], t)) for t in types]

    @tf.function
    def step():
        for v in variables:
            v.assign(v + tf.cast(2, v.dtype))
        return [v * v for v in variables]
    step()
    return {f"{i}{k}": np.asarray(tf.cast(x, tf.complex64)) for k, xs in (("", step()), ("v", variables)) for i, x in enumerate(xs)}


@case
def said_in_steps(strategy):
    """tf.print and summaries within strategy.run, of each replica and of the first, also in loops and branches; results that are ragged and
    sparse."""
    with tempfile.TemporaryDirectory() as folder:
        writer, said = tf.summary.create_file_writer(folder), "file://" + folder + "/said"

        def step(x):
            i = tf.distribute.get_replica_context().replica_id_in_sync_group
            tf.print("x", tf.reduce_sum(x), i, output_stream=said)
            with writer.as_default(step=3):
                tf.summary.scalar("sum", tf.reduce_sum(x))
            return tf.RaggedTensor.from_row_lengths(x[:6, 0], [2, 1, 3]), tf.SparseTensor([[0, 0]], x[0, :1], (1, 2))

        def loop(x):
            for k in tf.range(3):
                if k > 0:
                    tf.print("x", k, tf.reduce_sum(x), output_stream=said)
                with writer.as_default(step=tf.cast(k, tf.int64)):
                    tf.summary.scalar("row", x[k, 0])
        ragged, sparse = tf.function(lambda x: strategy.run(step, args=(x,)))(tf.constant(ROWS))
        tf.function(lambda x: strategy.run(loop, args=(x,)))(tf.constant(ROWS))
        strategy.run(step, args=(tf.constant(2 * ROWS),))
        writer.flush()
        lines = sorted(line.split() for line in open(folder + "/said"))
        events = [(e.step, v) for name in os.listdir(folder) if "tfevents" in name
                  for e in tf.compat.v1.train.summary_iterator(os.path.join(folder, name)) for v in e.summary.value]
    first = lambda x: strategy.experimental_local_results(x)[0]  # noqa: E731
    return {"lines": np.array([[float(x) for x in line[1:]] for line in lines]), "ragged": first(ragged).to_tensor().numpy(),
            "sparse": tf.sparse.to_dense(first(sparse)).numpy(), "events": np.array([(step, tf.make_ndarray(v.tensor)) for step, v in events])}


@case
def ahead_of_steps(strategy):
    """What no device can have is the host's where it is known before the step: strings, tables, Python functions, selections."""
    with strategy.scope():
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], tf.constant([1, 2, 3], tf.int64)), 0)
        rows, w = tf.Variable(tf.reshape(tf.range(12.0) / 10, (4, 3))), tf.Variable(tf.ones((6, 2)) * 0.1)

    @tf.function
    def words(text):
        return table.lookup(tf.strings.split(text).to_tensor(default_value="", shape=[None, 3]))

    def step(text, x, y):
        ids = words(text)
        z = tf.ensure_shape(tf.numpy_function(lambda x: np.sort(x, 1) * np.float32(2), [x], tf.float32), [None, 6])
        z = tf.boolean_mask(z, y[:, 0] > 0.9)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.gather(rows, ids) ** 2) + tf.reduce_mean((z @ w) ** 2)
        for v, g in zip((rows, w), tape.gradient(loss, (rows, w))):
            v.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("SUM", tf.convert_to_tensor(g)))
        return loss, ids, tf.strings.length(text), text, tf.shape(z)[0]
    train = tf.function(lambda *batch: strategy.run(step, args=batch))
    data = tf.data.Dataset.from_tensor_slices((np.array(["a b", "c", "b b a", "q"] * 12), ROWS, TARGETS)).batch(20)
    out = {}
    for i, batch in enumerate(strategy.experimental_distribute_dataset(data)):
        for name, value in zip(("loss", "ids", "lengths", "text", "left"), train(*batch)):
            parts = [np.ravel(v.numpy()) for v in strategy.experimental_local_results(value)]
            out[f"{name}{i}"] = np.concatenate([[len(s) for s in p] for p in parts] if name == "text" else parts)
    return {**out, "rows": rows.numpy(), "w": w.numpy()}


@case
def ahead_of_functions(_):
    """The same without a strategy: in functions, and in a model that splits and looks up its words."""
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), 0)
    rows = tf.Variable(tf.ones((3, 2)))

    @tf.function
    def words(text, x):
        ids = table.lookup(text)
        y = tf.gather(rows, ids) * x
        rows.assign_add(tf.reshape(tf.range(6.0), (3, 2)))
        return tf.reduce_sum(y, 1), tf.strings.length(tf.strings.join([text, "!"]))
    out = {f"words{i}{k}": v.numpy() for i in range(2) for k, v in enumerate(words(tf.constant(["a", "b", "c"]), tf.constant(2.0)))}
    split = layers.TextVectorization(max_tokens=10, output_sequence_length=4)
    split.adapt(["a b c", "b c d"])
    model = keras.Sequential([layers.Input((), dtype="string"), split, layers.Embedding(10, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)])
    model.compile(optimizers.SGD(0.1), "mse")
    text = tf.data.Dataset.from_tensor_slices((np.array(["a b", "c d", "a d c", "b"] * 4, object), np.arange(16.0) % 4)).batch(8)
    return {**out, **history(model.fit(text, epochs=2, verbose=0)), "rows": rows.numpy()}


@case
def determinants(strategy):
    """Of matrices that each replica has, with their gradients."""
    with strategy.scope():
        w = tf.Variable(tf.eye(4) * 1.5)

    def step(x):
        with tf.GradientTape(persistent=True) as tape:
            det = tf.linalg.det(x @ w)
            sign, log = tf.linalg.slogdet(x @ w)
        return det, sign, log, tape.gradient(det, w), tape.gradient(log, w)
    given = tf.constant(IMAGES[:5, :4, :4, 0] + 2 * np.eye(4, dtype=np.float32))
    both = tf.function(lambda x: strategy.run(step, args=(x,)))(given)
    return {str(i): np.stack([t.numpy() for t in strategy.experimental_local_results(x)]) for i, x in enumerate(both)}


@case
def shapes_of_values(_):
    """Where a shape depends on values the host computes the step; where it is told (category encoding), the device does."""
    v = tf.Variable(2.0)

    @tf.function
    def selected(x):
        v.assign_add(1.0)
        return tf.reduce_sum(tf.boolean_mask(x, x > 0.5) * v)
    out = {"selected": np.array([selected(tf.constant(ROWS)) for _ in range(2)]), "v": v.numpy()}
    model = keras.Sequential([layers.Input((7,), dtype="int32"), layers.CategoryEncoding(30, output_mode="count"), layers.Dense(2)])
    model.compile("sgd", "mse", jit_compile=True)
    return {**out, **history(model.fit(WORDS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0)), **weights(model)}


@case
def made_again(strategy):
    """Functions that are made anew in each round of a loop, with what they take from around them."""
    with strategy.scope():
        v = tf.Variable(1.0)
    global RATE
    first = lambda x: float(strategy.experimental_local_results(x)[0])  # noqa: E731
    seen = []
    for k in (1.0, 2.0, 2.0, 3.0):
        RATE = k * 10

        def of_default(x, k=k):
            return x * k
        seen += [first(strategy.run(f, args=(tf.constant(2.0),))) for f in (of_default, lambda x: x * k, lambda x: x * RATE, lambda x: v.assign_add(x * 1.0))]
    return {"seen": np.array(seen)}


@case
def one_device(_):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = small()
        model.compile(optimizers.SGD(0.1), "mse")
    return {**history(model.fit(ROWS, TARGETS, batch_size=16, epochs=2, shuffle=False, verbose=0)), **weights(model)}


@case
def raw_operations(_):
    """Operations that take a variable's handle, as fused updates do: nothing else of the function reads the slots."""
    w, slots = tf.Variable(tf.ones((6, 2)) * 0.1), [tf.Variable(tf.zeros((6, 2))) for _ in range(2)]

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w - y))
        tf.raw_ops.ResourceApplyAdam(var=w.handle, m=slots[0].handle, v=slots[1].handle, beta1_power=0.9, beta2_power=0.999, lr=0.01,
                                     beta1=0.9, beta2=0.999, epsilon=1e-7, grad=tape.gradient(loss, w))
        return loss
    seen = [float(step(tf.constant(ROWS), tf.constant(TARGETS))) for _ in range(3)]
    return {"seen": np.array(seen), "w": w.numpy(), "slot": slots[0].numpy()}


@case
def shuffled(strategy):
    """The order in which data come is the same as without weft: nothing else draws from the same random numbers."""
    with strategy.scope():
        model = small()
        model.compile(optimizers.Adam(1e-2), "mse")
    first = model.fit(ROWS, TARGETS, batch_size=16, epochs=2, verbose=0)
    data = tf.data.Dataset.from_tensor_slices((ROWS, TARGETS)).shuffle(48).batch(16).prefetch(2)
    second = model.fit(data, epochs=2, verbose=0)
    return {**history(first), **{"second_" + k: v for k, v in history(second).items()}, **weights(model)}


# ---- saving -----------------------------------------------------------------------------------------------------------------


@case
def saving(strategy):
    """Keras files, weights, SavedModel, tf.train.Checkpoint: what a device has is what is saved, and comes back."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        with strategy.scope():
            model = small()
            model.compile(optimizers.Adam(1e-2), "mse")
        fit = dict(batch_size=16, epochs=1, shuffle=False, verbose=0)
        model.fit(ROWS, TARGETS, **fit)
        model.save(folder + "/m.keras")
        model.export(folder + "/exported", verbose=False)
        tf.saved_model.save(model, folder + "/saved")
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        path = checkpoint.save(folder + "/ckpt")
        out["before"] = model.predict(ROWS[:8], verbose=0)
        model.fit(ROWS, TARGETS, **fit)
        out.update(weights(model))
        checkpoint.restore(path).expect_partial()
        out["restored"] = model.predict(ROWS[:8], verbose=0)
        model.fit(ROWS, TARGETS, **fit)
        out.update({"again_" + k: v for k, v in weights(model).items()})
        with strategy.scope():
            loaded = keras.models.load_model(folder + "/m.keras")
        out["loaded"] = loaded.predict(ROWS[:8], verbose=0)
        exported = tf.saved_model.load(folder + "/exported")
        out["exported"] = exported.serve(tf.constant(ROWS[:8])).numpy()
    np.testing.assert_allclose(out["loaded"], out["before"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out["restored"], out["before"], rtol=1e-5, atol=1e-6)
    return out


def main():
    out = {}
    strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local"))
    for name in sys.argv[2:] or CASES:
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        start = time.perf_counter()
        try:
            got = CASES[name](strategy)
        except Exception:
            got = {"error": np.array(traceback.format_exc()[-3000:])}
            print(name, got["error"], file=sys.stderr)
        print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        out.update({f"{name}/{k}": v for k, v in got.items()})
    np.savez(sys.argv[1], **out)
    print("{}")


if __name__ == "__main__":
    main()
