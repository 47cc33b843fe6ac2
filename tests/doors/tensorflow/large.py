"""A step that needs more memory than a TPU v5e has. Prints what is said of it, as JSON."""
import json

import keras
import numpy as np
import tensorflow as tf


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.up, self.down = keras.layers.Dense(1 << 17, activation="relu"), keras.layers.Dense(10)

    def call(self, x):
        h = self.up(x)  # what is too large
        return self.down(tf.tanh(h) * 2.0)


scale = tf.Variable(2.0)


@tf.function
def strings(x):
    return tf.strings.as_string(x * scale)


def selected(x):
    return tf.boolean_mask(x, x * scale > 0)


def refusal(function):
    """Why a TPUStrategy does not run it."""
    try:
        tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver("local")).run(function, args=(tf.constant([1.0]),))
    except ValueError as e:
        return str(e)


model = Net()
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
try:
    model.fit(np.ones((1 << 15, 32), "f"), np.zeros(1 << 15, "i"), batch_size=1 << 15, verbose=0)
except tf.errors.ResourceExhaustedError as e:
    said = str(e)
print(json.dumps({"said": said, "refused": refusal(strings), "selected": refusal(selected)}))
