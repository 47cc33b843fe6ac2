"""Keras on JAX: one device, keras.distribution's DataParallel and ModelParallel on eight. Prints histories as JSON."""
import json

import jax
import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x, y = rng.random((64, 8, 8, 1), dtype=np.float32), rng.integers(0, 10, 64)
distribution = keras.distribution


def fit(prepare):
    keras.utils.set_random_seed(0)
    prepare()
    model = keras.Sequential([
        keras.layers.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Flatten(),
        keras.layers.Dense(16, activation="relu", name="wide"), keras.layers.Dropout(0.2), keras.layers.Dense(10)])
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    loss = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0).history["loss"]
    return [*loss, float(np.abs(model.predict(x, batch_size=32, verbose=0)).sum())]


def model_parallel():
    mesh = distribution.DeviceMesh((2, 4), ["batch", "model"], devices=distribution.list_devices())
    layout = distribution.LayoutMap(mesh)
    layout["wide/kernel"] = (None, "model")
    layout["wide/bias"] = ("model",)
    distribution.set_distribution(distribution.ModelParallel(layout_map=layout, batch_dim_name="batch"))


out = {"one": fit(lambda: None)}
assert len(jax.devices()) == 8
out["data"] = fit(lambda: distribution.set_distribution(distribution.DataParallel(devices=distribution.list_devices())))
out["model"] = fit(model_parallel)
print(json.dumps(out))
