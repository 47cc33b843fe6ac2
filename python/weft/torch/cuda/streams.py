"""torch.cuda.Stream and torch.cuda.Event on a device that has one queue: everything is in order, events read the device's clock."""
import contextlib

import weft
from weft.torch.cuda.device import sync


class Stream:
    """The one queue there is, by whatever name."""
    device_index, cuda_stream, stream_id, priority = 0, 0, 0, 0

    def __init__(self, *args, **kwargs):
        pass

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self):
        sync()

    def query(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __eq__(self, other):
        return isinstance(other, Stream)

    def __hash__(self):
        return 0


class Event:
    """A moment of the device's clock: on a virtual GPU elapsed_time is the model's, whatever this machine took."""

    def __init__(self, *args, **kwargs):
        self.seconds = None

    def record(self, stream=None):
        sync()
        self.seconds = weft.virtual_time()

    def elapsed_time(self, end):
        if self.seconds is None or end.seconds is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end.seconds - self.seconds) * 1e3

    def wait(self, stream=None):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True


ONE = Stream()


def answers():
    """What torch.cuda has about them."""
    return {
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "stream": lambda stream: contextlib.nullcontext(),
        "StreamContext": lambda stream: contextlib.nullcontext(),
        "current_stream": lambda device=None: ONE,
        "default_stream": lambda device=None: ONE,
        "set_stream": lambda stream: None,
    }
