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
