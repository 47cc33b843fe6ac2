"""Runs a program written for a TPU on TensorFlow itself: truth.py PROGRAM REPLICAS. TPUStrategy becomes MirroredStrategy on as many
virtual CPUs, the cluster is none."""
import runpy
import sys

import tensorflow as tf

replicas = int(sys.argv[2])
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0],
                                           [tf.config.LogicalDeviceConfiguration()] * replicas)
Mirrored = tf.distribute.MirroredStrategy


class TPUStrategy(Mirrored):
    def __init__(self, resolver=None):
        super().__init__([f"CPU:{i}" for i in range(replicas)])
        self.extended.num_hosts = 1  # what Keras asks of a TPU's


tf.distribute.TPUStrategy = TPUStrategy
tf.distribute.cluster_resolver.TPUClusterResolver = lambda tpu=None: None
tf.config.experimental_connect_to_cluster = tf.tpu.experimental.initialize_tpu_system = lambda resolver: None
program, sys.argv = sys.argv[1], [sys.argv[1], *sys.argv[3:]]
runpy.run_path(program, run_name="__main__")
