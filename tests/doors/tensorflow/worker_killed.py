"""A worker of three dies in the middle of Keras's fit: the others print the error that ends theirs, and when."""
import json
import os
import signal
import time

import keras
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
died = os.environ["DIED"]


class Die(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 2 and strategy.cluster_resolver.task_id == 2:
            with open(died, "w") as file:
                file.write(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)


with strategy.scope():
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((np.ones((48, 6), "f"), np.ones((48, 2), "f"))).batch(6).repeat()
try:
    model.fit(data, steps_per_epoch=1000, verbose=0, callbacks=[Die()])
except tf.errors.OpError as e:
    print(json.dumps({"said": str(e), "after": time.time() - float(open(died).read())}))
