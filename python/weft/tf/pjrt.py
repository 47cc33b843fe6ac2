"""weft's plugin from Python: the part of PJRT's C ABI that this package calls, by ctypes.

    client = Client(weft.library_path())
    program = client.compile(stablehlo_text, replicas=8)
    outs = program.run(args)      # args, outs: uint64 arrays [replica, argument], addresses of PJRT_Buffer

A buffer is an address (int) that its owner gives back with Client.free. All calls may come from any thread; those that compute
or copy let other Python threads run meanwhile.
"""
import ctypes as C
import os
import typing

import ml_dtypes
import numpy as np

_POINTER, _SIZE, _INT, _I64, _BOOL = C.c_void_p, C.c_size_t, C.c_int, C.c_int64, C.c_bool
_KINDS = {"p": _POINTER, "n": _SIZE, "i": _INT, "l": _I64, "b": _BOOL}

# Functions of the table: position, and the fields of their argument after struct_size and extension_start (letter: kind).
_FUNCTIONS = {
    "Error_Destroy": (0, "p:error"),
    "Error_Message": (1, "p:error p:message n:message_size"),
    "Error_GetCode": (2, "p:error i:code"),
    "Plugin_Initialize": (3, ""),
    "Event_Destroy": (5, "p:event"),
    "Event_Await": (8, "p:event"),
    "Client_Create": (10, "p:options n:num_options p:get p:get_arg p:put p:put_arg p:client p:try_get p:try_get_arg"),
    "Client_Destroy": (11, "p:client"),
    "Client_Devices": (15, "p:client p:devices n:num_devices"),
    "Client_AddressableDevices": (16, "p:client p:devices n:num_devices"),
    "Client_Compile": (20, "p:client p:program p:options n:options_size p:executable"),
    "Client_BufferFromHostBuffer": (22, "p:client p:data i:type p:dims n:num_dims p:strides n:num_strides i:semantics "
                                        "p:device p:memory p:layout p:done p:buffer"),
    "DeviceDescription_Id": (23, "p:description i:id"),
    "DeviceDescription_ProcessIndex": (24, "p:description i:process"),
    "DeviceDescription_Kind": (26, "p:description p:kind n:kind_size"),
    "Device_GetDescription": (29, "p:device p:description"),
    "Device_MemoryStats": (34, "p:device l:bytes_in_use l:peak_bytes_in_use b:peak_is_set l:num_allocs b:num_allocs_is_set "
                               "l:largest_alloc_size b:largest_is_set l:bytes_limit b:bytes_limit_is_set l:bytes_reserved "
                               "b:reserved_is_set l:peak_bytes_reserved b:peak_reserved_is_set l:reservable b:reservable_is_set "
                               "l:largest_free b:largest_free_is_set l:pool_bytes b:pool_is_set l:peak_pool b:peak_pool_is_set"),
    "Executable_NumOutputs": (44, "p:executable n:num_outputs"),
    "LoadedExecutable_Destroy": (50, "p:executable"),
    "LoadedExecutable_GetExecutable": (51, "p:loaded p:executable"),
    "LoadedExecutable_Execute": (55, "p:executable p:options p:arguments n:num_devices n:num_args p:outputs p:events p:device"),
    "Buffer_Destroy": (58, "p:buffer"),
    "Buffer_ToHostBuffer": (70, "p:buffer p:layout p:to n:to_size p:event"),
    "Executable_OutputDimensions": (91, "p:executable n:num_outputs p:dims p:dim_sizes"),
    "Device_ClearMemoryStats": (135, "p:device"),
}


_VOID = ("Error_Destroy", "Error_Message")  # return nothing; the others an error or NULL


def _struct(name, fields, extension=True):
    list_ = [("struct_size", _SIZE), ("extension", _POINTER)][:1 + extension]
    list_ += [(f.partition(":")[2], _KINDS[f.partition(":")[0]]) for f in fields.split()]
    return type(name, (C.Structure,), {"_fields_": list_})


_ARGS = {name: _struct(name, fields) for name, (_, fields) in _FUNCTIONS.items()}
_Program = _struct("Program", "p:code n:code_size p:format n:format_size")
_NamedValue = _struct("NamedValue", "p:name n:name_size i:type p:value n:value_size")  # value: a number, or a string's address
_ExecuteOptions = _struct("ExecuteOptions", "p:send p:recv n:num_send n:num_recv i:launch_id p:not_donated n:num_not_donated")

_CALL = C.CFUNCTYPE(_POINTER, _POINTER)
_TABLE_START = 16 + 24  # struct_size, extension_start; the version, a struct of its own

# PJRT_Buffer_Type of the types that TensorFlow and numpy (with ml_dtypes) have in common
TYPES = {np.dtype(t): code for code, t in {
    1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16, 8: np.uint32, 9: np.uint64,
    10: np.float16, 11: np.float32, 12: np.float64, 13: ml_dtypes.bfloat16, 14: np.complex64, 15: np.complex128,
    16: ml_dtypes.float8_e5m2, 17: ml_dtypes.float8_e4m3fn}.items()}

_CODES = {1: "CANCELLED", 3: "INVALID_ARGUMENT", 4: "DEADLINE_EXCEEDED", 5: "NOT_FOUND", 8: "RESOURCE_EXHAUSTED",
          9: "FAILED_PRECONDITION", 10: "ABORTED", 12: "UNIMPLEMENTED", 13: "INTERNAL", 14: "UNAVAILABLE"}
_PROFILER = 1  # PJRT_Extension_Type
_DURING_CALL = 0  # PJRT_HostBufferSemantics: the array is read before the call returns


class Error(RuntimeError):
    """What the plugin said. code: the name of PJRT's error code, RESOURCE_EXHAUSTED when memory does not suffice."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


class OutOfMemory(Error, MemoryError):
    """A device's memory does not suffice. TensorFlow makes ResourceExhaustedError of a MemoryError."""


# ---- the few protos of compile options, written by hand ----------------------------------------------------------------------


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _number(field, n):
    return _varint(field << 3) + _varint(n)


def _message(field, content):
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _compile_options(devices):
    """CompileOptionsProto of a program with one replica on each of the devices (their ids)."""
    ids = _message(3, _message(1, b"".join(map(_varint, devices))))
    assignment = _number(1, len(devices)) + _number(2, 1) + ids
    return _message(3, _number(4, len(devices)) + _number(5, 1) + _message(9, assignment))


# ---- the client -----------------------------------------------------------------------------------------------------------


class Job(typing.NamedTuple):
    """Several processes that compute together: this one's number, how many there are, HOST:PORT where the first one listens."""
    process: int
    processes: int
    coordinator: str


def _create_options(job):
    """PJRT_NamedValue of a job; and what they point into."""
    strings = [b"num_nodes", b"node_id", b"coordinator", job.coordinator.encode()]
    at = [C.cast(C.c_char_p(s), _POINTER).value for s in strings]
    options = (_NamedValue * 3)()
    for option, name, where, value in zip(options, strings, at, (job.processes, job.process, at[3])):
        option.struct_size, option.name, option.name_size, option.type = C.sizeof(_NamedValue), where, len(name), 1
        option.value, option.value_size = value, 1
    options[2].type, options[2].value_size = 0, len(strings[3])
    return options, strings


class Client:
    """The plugin's devices. WEFT_DEVICE says which. job: the processes that this one computes with; returns when all have come."""

    def __init__(self, path, job=None):
        # Names of TensorFlow's libraries that the process has already must not replace the plugin's own.
        self._library = C.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self._library.GetPjrtApi.restype = _POINTER
        self.table = table = self._library.GetPjrtApi() + _TABLE_START
        self._functions = {name: _CALL(_POINTER.from_address(table + 8 * slot).value) for name, (slot, _) in _FUNCTIONS.items()}
        self.call("Plugin_Initialize")
        options, _kept = _create_options(job) if job else ((), ())
        self._client = self.call("Client_Create", options=C.addressof(options) if job else 0, num_options=len(options)).client
        self.job, self.compiled = job, 0
        self.devices = self._list("Client_AddressableDevices")
        self._ids = [self._id(device) for device in self.devices]
        # those of all processes, the first one's first
        self.all_ids = [i for _, i in sorted((self._process(d), self._id(d)) for d in self._list("Client_Devices"))]
        self._destroy, self._destroy_args = self._functions["Buffer_Destroy"], C.c_uint64 * 3

    def close(self):
        self.call("Client_Destroy", client=self._client)

    @property
    def first(self):
        """The place of this process's first device among those of all."""
        return self.all_ids.index(self._ids[0])

    def first_of_each(self):
        """The first device of each process, as compile takes them."""
        return self.all_ids[::len(self.devices)]

    def _list(self, function):
        found = self.call(function, client=self._client)
        return list((_POINTER * found.num_devices).from_address(found.devices))

    def _description(self, device):
        return self.call("Device_GetDescription", device=device).description

    def _id(self, device):
        return self.call("DeviceDescription_Id", description=self._description(device)).id

    def _process(self, device):
        return self.call("DeviceDescription_ProcessIndex", description=self._description(device)).process

    def call(self, name, **fields):
        """Calls a function of the table; returns its struct with what it filled in. Errors become Error."""
        args = _ARGS[name](struct_size=C.sizeof(_ARGS[name]), **fields)
        error = self._functions[name](C.addressof(args))
        if error and name not in _VOID:
            self._raise(error)
        return args

    def _raise(self, error):
        said = self.call("Error_Message", error=error)
        text = C.string_at(said.message, said.message_size).decode(errors="replace")
        code = self.call("Error_GetCode", error=error).code
        self.call("Error_Destroy", error=error)
        kind = OutOfMemory if _CODES.get(code) == "RESOURCE_EXHAUSTED" else Error
        raise kind(text, _CODES.get(code, str(code)))

    def kind(self):
        """The devices' kind: "TPU v3", "NVIDIA A100-SXM4-40GB", "cpu"."""
        said = self.call("DeviceDescription_Kind", description=self._description(self.devices[0]))
        return C.string_at(said.kind, said.kind_size).decode()

    def memory(self, device):
        """Device_MemoryStats of a device (its position): bytes_in_use, peak_bytes_in_use, bytes_limit."""
        return self.call("Device_MemoryStats", device=self.devices[device])

    def clear_memory_peak(self, device):
        self.call("Device_ClearMemoryStats", device=self.devices[device])

    def put(self, array, device):
        """A copy of the array on a device. array: C order, of a type in TYPES."""
        dims = (_I64 * array.ndim)(*array.shape)
        args = self.call("Client_BufferFromHostBuffer", client=self._client, data=array.ctypes.data, type=TYPES[array.dtype],
                         dims=C.addressof(dims), num_dims=array.ndim, semantics=_DURING_CALL, device=self.devices[device])
        if args.done:
            self._wait(args.done)
        return args.buffer

    def read(self, buffer, shape, dtype):
        """The buffer's numbers as a new array. shape, dtype: the buffer's own. Waits until they are there."""
        array = np.empty(shape, dtype)
        args = self.call("Buffer_ToHostBuffer", buffer=buffer, to=array.ctypes.data, to_size=array.nbytes)
        if args.event:
            self._wait(args.event)
        return array

    def free(self, buffers):
        """Gives buffers back: an iterable of addresses."""
        size, function = 24, self._destroy
        args = self._destroy_args(size, 0, 0)
        at = C.addressof(args)
        for buffer in buffers:
            args[2] = buffer
            function(at)

    def _wait(self, event):
        try:
            self.call("Event_Await", event=event)
        finally:
            self.call("Event_Destroy", event=event)

    def compile(self, text, devices, ids=None):
        """A program (StableHLO as text or bytecode) for one replica on each of the devices, given by their positions. ids: with devices
        of other processes; then `devices` are those of this one, in the same order."""
        code = text if isinstance(text, bytes) else text.encode()
        options = _compile_options([self._ids[d] for d in devices] if ids is None else ids)
        program = _Program(struct_size=C.sizeof(_Program), code=C.cast(code, _POINTER), code_size=len(code),
                           format=C.cast(b"mlir", _POINTER), format_size=4)
        args = self.call("Client_Compile", client=self._client, program=C.addressof(program),
                         options=C.cast(options, _POINTER), options_size=len(options))
        self.compiled += 1
        return Executable(self, args.executable, devices)


class Profiler:
    """A recording of the plugin: what its devices did, and when."""

    def __init__(self, client):
        at = _POINTER.from_address(client.table - _TABLE_START + 8).value  # struct_size, type, next
        while at and C.c_int32.from_address(at + 8).value != _PROFILER:
            at = _POINTER.from_address(at + 16).value
        if not at:
            raise Error("the plugin has no profiler", "UNIMPLEMENTED")
        self._functions = _POINTER.from_address(at + 24).value + 16
        self._profiler = self._call("create", "p:options n:options_size p:profiler").profiler
        self._call("start", "p:profiler", profiler=self._profiler)

    def _call(self, name, fields, **values):
        slot = ("error_destroy", "error_message", "error_get_code", "create", "destroy", "start", "stop", "collect_data").index(name)
        made = _struct(name, fields, extension=False)
        args = made(struct_size=C.sizeof(made), **values)
        if _CALL(_POINTER.from_address(self._functions + 8 * slot).value)(C.addressof(args)):
            raise Error(f"the plugin's profiler: {name} failed", "INTERNAL")
        return args

    def stop(self):
        """The recording as a serialized XSpace."""
        self._call("stop", "p:profiler", profiler=self._profiler)
        said = self._call("collect_data", "p:profiler p:buffer n:buffer_size", profiler=self._profiler)
        space = C.string_at(said.buffer, said.buffer_size)
        self._call("destroy", "p:profiler", profiler=self._profiler)
        return space


class Executable:
    """A compiled program."""

    def __init__(self, client, address, devices):
        self._client, self._address, self.devices = client, address, tuple(devices)
        inner = client.call("LoadedExecutable_GetExecutable", loaded=address).executable
        self.outputs = client.call("Executable_NumOutputs", executable=inner).num_outputs
        self._inner = inner
        self._options = _ExecuteOptions(struct_size=C.sizeof(_ExecuteOptions))

    def output_shapes(self):
        said = self._client.call("Executable_OutputDimensions", executable=self._inner)
        sizes = list((_SIZE * said.num_outputs).from_address(said.dim_sizes)) if said.num_outputs else []
        dims = iter((_I64 * sum(sizes)).from_address(said.dims) if sum(sizes) else ())
        return [tuple(next(dims) for _ in range(n)) for n in sizes]

    def run(self, arguments):
        """Runs all replicas. arguments: uint64 [replica, argument], C order. Returns uint64 [replica, output]: new buffers, whose
        numbers may come later (read waits)."""
        return self._run(arguments, None)

    def run_one(self, arguments, device):
        """Runs the replica of one device (its position): uint64 [1, argument]. Replicas that exchange values must all be run,
        of this program or of others with the same exchanges."""
        return self._run(arguments, self._client.devices[device])

    def _run(self, arguments, device):
        n, n_args = arguments.shape
        outs = np.zeros((n, self.outputs), np.uint64)
        rows_in = arguments.ctypes.data + 8 * n_args * np.arange(n, dtype=np.uint64)
        rows_out = outs.ctypes.data + 8 * self.outputs * np.arange(n, dtype=np.uint64)
        self._client.call("LoadedExecutable_Execute", executable=self._address, options=C.addressof(self._options),
                          arguments=rows_in.ctypes.data, num_devices=n, num_args=n_args, outputs=rows_out.ctypes.data,
                          device=device)
        return outs
