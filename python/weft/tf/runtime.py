"""The plugin as this process holds it: opened when it is first needed, one for all strategies; what runs hold a lock."""
import os
import sys
import threading

import weft
from weft.tf import pjrt

LOCK = threading.RLock()  # programs, and the variables' values on devices
_client = None
_said = set()


def client():
    """The open plugin."""
    global _client
    with LOCK:
        if _client is None:
            _client = pjrt.Client(weft.library_path())
    return _client


def join(job):
    """Opens the plugin as one of several processes (a pjrt.Job), once; returns when all have come."""
    global _client
    with LOCK:
        if _client is not None and _client.job == job:
            return
        if _client is not None:
            if _client.compiled or _client.job:
                raise RuntimeError("weft: MultiWorkerMirroredStrategy must be made at the program's start: before its first strategy, "
                                   "variable and tf.function that runs on a device")
            _client.close()
        _client = None
        _client = pjrt.Client(weft.library_path(), job)


def processes():
    """Processes that compute together; 1: this one alone."""
    return _client.job.processes if _client is not None and _client.job else 1


def opened():
    """The plugin if something has used it, else None."""
    return _client


def count():
    """Devices there are."""
    return len(client().devices)


def device_type():
    """What TensorFlow calls such devices: "TPU", "GPU", or "CPU"."""
    kind = client().kind()
    if kind.startswith("TPU"):
        return "TPU"
    return "CPU" if os.environ.get("WEFT_DEVICE", "cpu").partition(":")[0] in ("cpu", "interp", "null") else "GPU"


def say(text):
    """A sentence for the user, on stderr, once."""
    if text not in _said:
        _said.add(text)
        print(f"weft: {text}", file=sys.stderr)


def on_host(why):
    """Says that something stays with TensorFlow. why: a trace.NotCompiled."""
    say(str(why).removeprefix("weft: ").split("\n")[0] + "; it runs on the host")
