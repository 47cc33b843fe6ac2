"""Keras on its PyTorch backend: fit, predict, save and load on the device that KERAS_TORCH_DEVICE names. Prints what it got as JSON."""
import json
import tempfile

import keras
import numpy as np

layers, rng = keras.layers, np.random.default_rng(0)
x, y = rng.random((48, 8, 8, 3), dtype=np.float32), rng.integers(0, 4, 48)
model = keras.Sequential([layers.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(), layers.MaxPooling2D(),
                          layers.Flatten(), layers.Dense(4)])
# a device draws other weights than the CPU
model.set_weights([0.3 * rng.standard_normal(w.shape).astype("f") if w.ndim > 1 else w for w in model.get_weights()])
model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0, validation_data=(x[:8], y[:8])).history
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/m.keras")
    loaded = keras.models.load_model(folder + "/m.keras")
print(json.dumps({"device": model.layers[0].kernel.value.device.type, "numbers": {
    **history, "predicted": model.predict(x[:5], verbose=0).tolist(), "loaded": loaded.predict(x[:5], verbose=0).tolist(),
    "evaluated": loaded.evaluate(x, y, verbose=0)}}))
