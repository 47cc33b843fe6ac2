"""Programs of workers that train together (MultiWorkerMirroredStrategy): workers.py OUT [NAME...] writes OUT.WORKER.npz. TF_CONFIG says
which worker this is; without it TensorFlow's MirroredStrategy computes the same in one process (REPLICAS). Each case returns arrays; one
that fails is noted by its error."""
import json
import os
import pathlib
import sys
import tempfile
import traceback

import keras
import numpy as np
import tensorflow as tf

from common import CASES, case, weights

TF_CONFIG = json.loads(os.environ.get("TF_CONFIG", '{"cluster": {"worker": [""]}, "task": {"index": 0}}'))
WORKER, WORKERS = TF_CONFIG["task"]["index"], len(TF_CONFIG["cluster"]["worker"])
rng = np.random.default_rng(0)
ROWS = rng.random((48, 6), dtype=np.float32)
TARGETS = (ROWS @ rng.random((6, 2), dtype=np.float32) + 0.1).astype(np.float32)
IMAGES = rng.random((32, 8, 8, 3), dtype=np.float32)
LABELS = rng.integers(0, 4, 32)
layers, losses, optimizers = keras.layers, keras.losses, keras.optimizers


def small():
    return keras.Sequential([layers.Input((6,)), layers.Dense(5, activation="tanh"), layers.Dense(2)])


def batches(*arrays, size=16):
    return tf.data.Dataset.from_tensor_slices(arrays).batch(size)


@case
def custom_loop(strategy):
    """The loop of TensorFlow's guide; a last batch that leaves workers with less."""
    data = strategy.experimental_distribute_dataset(batches(ROWS[:41], TARGETS[:41]))
    with strategy.scope():
        model, optimizer = small(), optimizers.Adam(1e-2)
        optimizer.build(model.trainable_variables)
        error = keras.metrics.MeanAbsoluteError()

    def train_step(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            out = model(x, training=True)
            loss = tf.nn.compute_average_loss(tf.reduce_mean(tf.square(out - y), -1), global_batch_size=16)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        error.update_state(y, out)
        return loss

    @tf.function
    def train(inputs):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train_step, args=(inputs,)), axis=None)
    seen = []
    for _ in range(2):
        seen += [float(train(batch)) for batch in data]
        seen.append(float(error.result()))
        error.reset_state()
    return {"seen": np.array(seen), **weights(model), "iterations": np.asarray(optimizer.iterations.numpy())}


@case
def loop_in_graph(strategy):
    data = strategy.experimental_distribute_dataset(batches(ROWS, TARGETS).repeat())
    with strategy.scope():
        w = tf.Variable(tf.ones((6, 2)))

    @tf.function
    def epoch(iterator):
        total = 0.0
        for _ in tf.range(3):
            def step(inputs):
                x, y = inputs
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(x @ w - y))
                w.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, w)))
                return loss
            total += strategy.reduce("MEAN", strategy.run(step, args=(next(iterator),)), axis=None)
        return total
    iterator = iter(data)
    return {"total": np.array([epoch(iterator), epoch(iterator)]), "w": w.numpy()}


@case
def fit(strategy):
    """Keras's loop, with validation and callbacks."""
    with strategy.scope():
        model = small()
        model.compile(optimizers.SGD(0.1), "mse")
    data = batches(ROWS[:44], TARGETS[:44]).repeat()
    with tempfile.TemporaryDirectory() as folder:
        h = model.fit(data, steps_per_epoch=3, epochs=3, verbose=0,
                      validation_data=batches(ROWS[:32], TARGETS[:32]), callbacks=[
                          keras.callbacks.ModelCheckpoint(folder + "/best.weights.h5", save_weights_only=True),
                          keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5), keras.callbacks.EarlyStopping(patience=2)])
    return {**{k: np.asarray(v, np.float64) for k, v in h.history.items()}, **weights(model),
            "evaluate": np.asarray(model.evaluate(batches(ROWS[:32], TARGETS[:32]), verbose=0))}


@case
def batch_norm(strategy):
    with strategy.scope():
        model = keras.Sequential([layers.Input((8, 8, 3)), layers.Conv2D(4, 3), layers.BatchNormalization(), layers.ReLU(), layers.Flatten(), layers.Dense(4)])
        model.compile(optimizers.SGD(0.05, momentum=0.9), losses.SparseCategoricalCrossentropy(from_logits=True))
    h = model.fit(batches(IMAGES, LABELS), epochs=2, verbose=0)
    return {"loss": np.asarray(h.history["loss"]), **weights(model), "predict": np.concatenate(model.predict(batches(IMAGES[:20]), verbose=0))}


def in_several(function):
    """Of what several workers do: checked in place."""
    return case(function) if WORKERS > 1 else function


@in_several
def replicas(strategy):
    """Ids, exchanges, values of each replica, parts of unequal length, variables that each replica has its own of."""
    n, equal = strategy.num_replicas_in_sync, np.testing.assert_array_equal
    with strategy.scope():
        count = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
        mean = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.MEAN)
        total = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
        drawn = tf.Variable(np.float32(WORKER + 7))
    values = strategy.experimental_distribute_values_from_function(lambda c: tf.constant(float(c.replica_id_in_sync_group + 5)))

    @tf.function
    def step(x):
        context = tf.distribute.get_replica_context()
        i = tf.cast(context.replica_id_in_sync_group, tf.float32)
        count.assign_add(i + 1)
        mean.assign(10 * i)
        total.assign_add(2 * i)
        return context.all_reduce("SUM", x), context.all_gather(tf.reshape(i, (1,)), axis=0), i
    all_, row, i = strategy.run(step, args=(values,))
    first = lambda x: np.array(strategy.experimental_local_results(x)[0])  # noqa: E731
    ids, whole = np.arange(n), strategy.run(lambda: tf.constant([3, 4], tf.int64))
    equal(first(all_), (ids + 5).sum())
    equal(first(row), ids)
    equal((count.numpy(), mean.numpy(), total.numpy(), drawn.numpy()), ((ids + 1).sum(), 10 * ids.mean(), 1 + 2 * ids.mean(), 7))
    equal((strategy.reduce("SUM", i, axis=None), strategy.reduce("MEAN", i, axis=None)), (ids.sum(), ids.mean()))
    equal(strategy.reduce("SUM", whole, axis=None), [3 * n, 4 * n])
    workers = np.arange(WORKERS) + 1
    part = tf.ones((WORKER + 1, 2)) * (WORKER + 1.0)
    equal(strategy.gather(part, axis=0)[:, 1], np.repeat(workers, workers))
    np.testing.assert_allclose(strategy.reduce("MEAN", part, axis=0)[0], np.repeat(workers, workers).mean(), rtol=1e-6)
    return {}


@in_several
def from_function(strategy):
    """Data sets that a function makes; the first worker has more than the others, who go on with nothing."""
    def make(context):
        i = context.input_pipeline_id
        assert (i, context.num_input_pipelines) == (WORKER, WORKERS)
        rows = ROWS[10 * i:10 * i + (8 if i else 12)]
        return tf.data.Dataset.from_tensor_slices(rows).batch(4).map(lambda r: tf.cast(r, tf.float64))
    data = strategy.distribute_datasets_from_function(make)

    @tf.function
    def step(x):
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(x,)), axis=None)
    total = sum(float(step(x)) for x in data)
    want = sum(ROWS[10 * i:10 * i + (8 if i else 12)].astype(np.float64).sum() for i in range(WORKERS))
    np.testing.assert_allclose(total, want, rtol=1e-12)
    return {}


@case
def checkpoint(strategy):
    """As TensorFlow's guide has it: all save, the first worker's is kept; all restore it."""
    folder = pathlib.Path(os.environ["SHARED"])
    with strategy.scope():
        model = small()
        model.compile(optimizers.Adam(1e-2), "mse")
    data = batches(ROWS[:32], TARGETS[:32])
    model.fit(data, epochs=1, verbose=0)
    saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    assert strategy.extended.should_checkpoint == (WORKER == 0)
    saved.write(str(folder / f"{WORKER}"))
    before = weights(model)
    model.fit(data, epochs=1, verbose=0)
    saved.restore(str(folder / "0")).expect_partial()
    for name, w in weights(model).items():
        np.testing.assert_allclose(w, before[name], atol=1e-7)
    model.fit(data, epochs=1, verbose=0)
    return weights(model)


def main():
    if WORKERS > 1:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    else:
        n = int(os.environ["REPLICAS"])
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * n)
        strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(n)])
    out = {}
    for name in sys.argv[2:] or CASES:
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        try:
            got = CASES[name](strategy)
        except Exception:
            got = {"error": np.array(traceback.format_exc()[-3000:])}
            print(name, got["error"], file=sys.stderr)
        print(name, file=sys.stderr, flush=True)
        out.update({f"{name}/{k}": v for k, v in {"done": np.array(1), **got}.items()})
    np.savez(f"{sys.argv[1]}.{WORKER}.npz", **out)
    print("{}")


if __name__ == "__main__":
    main()
