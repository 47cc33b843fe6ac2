"""Gradients of embeddings over replicas whose batches are of unequal length: an exchange is of arrays of one shape.

A program that replicas of unequal shapes may run takes one more argument, `room`, which has no elements: each replica fills the rows that it
gives up to room's length, by rows of zeros for a word that it has. It returns an array without elements as well, as long as its own rows:
of those the longest is the room, when replicas come with shapes that differ. 0 where they do not.
"""
import contextlib
import threading

import numpy as np
import tensorflow as tf

_here = threading.local()
SPEC = tf.TensorSpec([None, 0], tf.float32)


def of(length):
    return np.zeros((length, 0), np.float32)


@contextlib.contextmanager
def within(tensor):
    """Around what a program computes; tensor: its room. Gives the lengths of what is exchanged, as they are found."""
    before = getattr(_here, "room", None)
    lengths = []
    _here.room = tensor, lengths
    try:
        yield lengths
    finally:
        _here.room = before


def longest(lengths):
    """The program's result that says how long its own rows are."""
    length = tf.reduce_max(tf.stack(lengths)) if lengths else tf.constant(0)
    return tf.zeros(tf.stack([length, 0]))


def filled(values, indices):
    """Rows and the words that they are of, filled up to the room of the program."""
    if getattr(_here, "room", None) is None:
        return values, indices
    tensor, lengths = _here.room
    length = tf.shape(indices)[0]
    if length.graph is tensor.graph:
        lengths.append(length)
    more = tf.maximum(tf.shape(tensor)[0] - length, 0)
    values = tf.concat([values, tf.zeros(tf.concat([[more], tf.shape(values)[1:]], 0), values.dtype)], 0)
    word = tf.reduce_max(tf.concat([indices[:1], tf.zeros([1], indices.dtype)], 0))  # 0 for a replica without any
    return values, tf.concat([indices, tf.fill([more], word)], 0)
