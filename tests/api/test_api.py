"""libweft as a C program calls it, through ctypes: programs of several devices, what a trainer reports."""
import ctypes
import math
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from conftest import BUILD  # noqa: E402

P = ctypes.c_void_p
F32 = 11
TWO = b"""module @sum attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
    %0 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


class Progress(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("step", "steps", "epoch")] + \
               [(n, ctypes.c_double) for n in ("loss", "accuracy", "examples_per_s", "seconds_left", "input_wait")] + [("test", ctypes.c_int)]


CALL = ctypes.CFUNCTYPE(None, P, ctypes.POINTER(Progress))


class Options(ctypes.Structure):
    _fields_ = [("model", ctypes.c_char_p), ("data", ctypes.c_char_p), ("batch", ctypes.c_int64), ("steps", ctypes.c_int64),
                ("epochs", ctypes.c_double), ("learning_rate", ctypes.c_double), ("seed", ctypes.c_uint64), ("bf16", ctypes.c_int),
                ("layers", ctypes.c_int), ("length", ctypes.c_int64), ("bpe_dir", ctypes.c_char_p), ("out_dir", ctypes.c_char_p),
                ("resume", ctypes.c_char_p), ("init", ctypes.c_char_p), ("replicas", ctypes.c_int), ("overwrite", ctypes.c_int),
                ("progress", CALL), ("user", P)]


@pytest.fixture(scope="module")
def weft():
    lib = ctypes.CDLL(str(BUILD / "libweft.so"))
    lib.weft_error_message.restype = ctypes.c_char_p

    def call(name, *args):
        f = getattr(lib, name)
        f.restype = P
        e = f(*args)
        if e:
            raise RuntimeError(lib.weft_error_message(P(e)).decode())
    return lib, call


def test_two_devices(weft):
    lib, call = weft
    client, program = P(), P()
    call("weft_client_open", None, b"cpu:2", ctypes.byref(client))
    call("weft_compile", client, TWO, ctypes.c_size_t(len(TWO)), ctypes.byref(program))
    assert lib.weft_program_processes(program) == 2 and lib.weft_program_outputs(program) == 1
    args, outs = (P * 2)(), (P * 2)()
    for d, part in enumerate(([1, 2], [3, 4])):
        x, b = np.array(part, np.float32), P()
        call("weft_buffer_new", client, d, F32, 1, (ctypes.c_int64 * 1)(2), x.ctypes.data_as(P), ctypes.byref(b))
        args[d] = b
    call("weft_execute", program, args, 1, outs)
    got = []
    for d in range(2):
        y = np.empty(2, np.float32)
        call("weft_buffer_read", P(outs[d]), y.ctypes.data_as(P), ctypes.c_size_t(8))
        got += list(y)
        lib.weft_buffer_free(P(outs[d]))
        lib.weft_buffer_free(P(args[d]))
    assert got == [4, 3, 2, 1]
    lib.weft_program_free(program)
    lib.weft_client_close(client)
    call("weft_client_open", None, b"cpu", ctypes.byref(client))
    with pytest.raises(RuntimeError, match="2 partitions"):
        call("weft_compile", client, TWO, ctypes.c_size_t(len(TWO)), ctypes.byref(program))
    lib.weft_client_close(client)


def test_progress_is_of_results(weft):
    """Steps and finished evaluations; no lines of an evaluation that goes on."""
    lib, call = weft
    client, options, seen = P(), Options(), []
    call("weft_client_open", None, b"cpu", ctypes.byref(client))
    call("weft_train_defaults", b"mlp", ctypes.byref(options))
    options.data, options.batch, options.steps, options.layers = b"synthetic", 32, 3, 8
    options.progress = CALL(lambda user, p: seen.append((p[0].step, p[0].test, p[0].loss)))
    call("weft_train", client, ctypes.byref(options), ctypes.create_string_buffer(256))
    lib.weft_client_close(client)
    assert [(step, test) for step, test, _ in seen] == [(1, 0), (2, 0), (3, 0), (3, 1)]
    assert all(math.isfinite(loss) and loss > 0 for _, _, loss in seen)


def test_calls_that_make_no_sense(weft, tmp_path):
    """Refused in words, where they crashed or were believed."""
    lib, call = weft
    client, buffer, network, text = P(), P(), P(), ctypes.c_char_p()
    call("weft_client_open", None, b"cpu:2", ctypes.byref(client))
    lib.weft_client_device_kind.restype = ctypes.c_char_p
    assert lib.weft_client_device_kind(client, 0) == b"cpu" and lib.weft_client_device_kind(client, 99) == b""
    x = np.zeros(4, np.float32)

    def new(device, kind, dims, data):
        call("weft_buffer_new", client, device, kind, len(dims), (ctypes.c_int64 * len(dims))(*dims), data, ctypes.byref(buffer))

    for args, say in (((7, F32, [4], P(x.ctypes.data)), "no device 7: they are 0 to 1"), ((0, 77, [4], P(x.ctypes.data)), "number 77"),
                      ((0, F32, [-4], P(x.ctypes.data)), "the size -4"), ((0, F32, [4], None), "without data")):
        with pytest.raises(RuntimeError, match=say):
            new(*args)
    program, outs = P(), (P * 2)()
    call("weft_compile", client, TWO, ctypes.c_size_t(len(TWO)), ctypes.byref(program))
    with pytest.raises(RuntimeError, match="argument 0 of process 0 is no buffer"):
        call("weft_execute", program, (P * 2)(), 1, outs)
    lib.weft_program_free(program)
    options, result = Options(), (ctypes.c_double * 8)()
    with pytest.raises(RuntimeError, match="no model is named"):
        call("weft_train_defaults", None, ctypes.byref(options))
    call("weft_train_defaults", b"lstm", ctypes.byref(options))
    (tmp_path / "t.txt").write_text("to be or not to be " * 200)
    options.data, options.batch, options.steps, options.layers, options.length = f"text:{tmp_path / 't.txt'}".encode(), 4, 2, 8, 16
    options.out_dir = str(tmp_path / "run").encode()
    for field, value, say in (("steps", -3, "-3 steps"), ("learning_rate", -1.0, "rate of -1"), ("learning_rate", math.nan, "rate of"), ("model", None, "no model")):
        kept = getattr(options, field)
        setattr(options, field, value)
        with pytest.raises(RuntimeError, match=say):
            call("weft_train", client, ctypes.byref(options), result)
        setattr(options, field, kept)
    call("weft_train", client, ctypes.byref(options), result)
    call("weft_network_open", client, str(tmp_path / "run").encode(), ctypes.byref(network))
    for examples in (0, -1):
        with pytest.raises(RuntimeError, match=f"{examples} examples"):
            call("weft_network_forward", network, ctypes.c_int64(examples), P(x.ctypes.data), P(x.ctypes.data))
    for tokens, temperature, top_p, prompt, say in ((0, 1, 0, b"to", "0 tokens"), (3, -1, 0, b"to", "temperature -1"), (3, 1, 2, b"to", "top_p 2"), (3, 1, 0, None, "no prompt")):
        with pytest.raises(RuntimeError, match=say):
            call("weft_network_generate", network, prompt, ctypes.c_int64(tokens), ctypes.c_double(temperature), ctypes.c_int64(0), ctypes.c_double(top_p),
                 ctypes.c_uint64(1), ctypes.byref(text))
    with pytest.raises(RuntimeError, match="0 examples"):
        call("weft_network_export", network, str(tmp_path / "out").encode(), ctypes.c_int64(0))
    lib.weft_network_close(network)
    lib.weft_client_close(client)
