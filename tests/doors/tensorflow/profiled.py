"""A recording of a few steps by TensorFlow's profiler into argv[1], and what the devices say of their memory. No strategy: the default."""
import json
import sys

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Input((256,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(10)])
model.compile(keras.optimizers.Adam(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.ones((256, 256), np.float32), np.zeros(256, np.int64)
model.fit(x, y, batch_size=64, verbose=0)
with tf.profiler.experimental.Profile(sys.argv[1]):
    loss = model.fit(x, y, batch_size=64, verbose=0).history["loss"]
info = tf.config.experimental.get_memory_info(tf.config.list_logical_devices()[1].name)
print(json.dumps({"loss": loss, "current": info["current"], "limit": info["limit"], "devices": [d.name for d in tf.config.list_logical_devices()]}))
