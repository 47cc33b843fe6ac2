"""The program people write for a TPU: nothing in it knows of weft. Prints its history as JSON."""
import json

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.random((512, 14, 14, 1), dtype=np.float32)
y = rng.integers(0, 10, 512)

resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="my-tpu")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)

tf.keras.utils.set_random_seed(0)
with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Input((14, 14, 1)),
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dense(10),
    ])
    model.compile(optimizer=tf.keras.optimizers.Adam(),
                  loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=[tf.keras.metrics.SparseCategoricalAccuracy()])
history = model.fit(x, y, epochs=2, batch_size=128, shuffle=False, verbose=0).history
evaluation = model.evaluate(x, y, batch_size=128, verbose=0)
prediction = model.predict(x[:64], batch_size=32, verbose=0)
print(json.dumps({"replicas": strategy.num_replicas_in_sync, "cores": len(tf.config.list_logical_devices("TPU")),
                  "loss": history["loss"], "accuracy": history["sparse_categorical_accuracy"], "evaluation": evaluation,
                  "prediction": float(np.abs(prediction).sum())}))
