/* pjrt_abi: the PJRT C ABI, declared by ourselves: what a plugin exports and what a client calls.
 * One header for both sides.
 *
 * Sources     the public interface of openxla/xla (names and meaning) and measurements of layouts
 *             and behaviour of ABI 0.75 to 0.116. pjrt_abi_test.c checks offsets and sizes (ABI
 *             0.114).
 * Layout      every argument struct begins with struct_size and extension_start. struct_size is the
 *             end of the last field, not sizeof (IsReady: 25): PJRT_X_Args_STRUCT_SIZE. A callee
 *             checks that struct_size covers the fields it reads or writes (PJRT_HAS); callers of
 *             other versions are shorter or longer.
 * Growth      PJRT_SLOTS lists the table in order; a new slot is appended there, its struct below.
 */
#ifndef WEFT_PJRT_ABI_PJRT_ABI_H
#define WEFT_PJRT_ABI_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 112 /* what weft's plugin reports and what its client was written for */

/* ---- the table ------------------------------------------------------------------------------ */

/* X(name): returns PJRT_Error *; V(name): nothing. Slot i lies at byte 40 + 8 * i of PJRT_Api. */
/* clang-format off */
#define PJRT_SLOTS(V, X)                                                                         \
  V(Error_Destroy) V(Error_Message) X(Error_GetCode) X(Plugin_Initialize) X(Plugin_Attributes)   \
  X(Event_Destroy) X(Event_IsReady) X(Event_Error) X(Event_Await) X(Event_OnReady)              \
  X(Client_Create) X(Client_Destroy) X(Client_PlatformName) X(Client_ProcessIndex)               \
  X(Client_PlatformVersion) X(Client_Devices) X(Client_AddressableDevices)                       \
  X(Client_LookupDevice) X(Client_LookupAddressableDevice) X(Client_AddressableMemories)        \
  X(Client_Compile) X(Client_DefaultDeviceAssignment) X(Client_BufferFromHostBuffer)             \
  X(DeviceDescription_Id) X(DeviceDescription_ProcessIndex) X(DeviceDescription_Attributes)     \
  X(DeviceDescription_Kind) X(DeviceDescription_DebugString) X(DeviceDescription_ToString)       \
  X(Device_GetDescription) X(Device_IsAddressable) X(Device_LocalHardwareId)                    \
  X(Device_AddressableMemories) X(Device_DefaultMemory) X(Device_MemoryStats) X(Memory_Id)       \
  X(Memory_Kind) X(Memory_DebugString) X(Memory_ToString) X(Memory_AddressableByDevices)        \
  X(Executable_Destroy) X(Executable_Name) X(Executable_NumReplicas) X(Executable_NumPartitions) \
  X(Executable_NumOutputs) X(Executable_SizeOfGeneratedCodeInBytes)                             \
  X(Executable_GetCostAnalysis) X(Executable_OutputMemoryKinds) X(Executable_OptimizedProgram)   \
  X(Executable_Serialize) X(LoadedExecutable_Destroy) X(LoadedExecutable_GetExecutable)         \
  X(LoadedExecutable_AddressableDevices) X(LoadedExecutable_Delete)                              \
  X(LoadedExecutable_IsDeleted) X(LoadedExecutable_Execute) X(Executable_DeserializeAndLoad)    \
  X(LoadedExecutable_Fingerprint) X(Buffer_Destroy) X(Buffer_ElementType) X(Buffer_Dimensions)  \
  X(Buffer_UnpaddedDimensions) X(Buffer_DynamicDimensionIndices) X(Buffer_GetMemoryLayout)       \
  X(Buffer_OnDeviceSizeInBytes) X(Buffer_Device) X(Buffer_Memory) X(Buffer_Delete)              \
  X(Buffer_IsDeleted) X(Buffer_CopyToDevice) X(Buffer_ToHostBuffer) X(Buffer_IsOnCpu)           \
  X(Buffer_ReadyEvent) X(Buffer_UnsafePointer) X(Buffer_IncreaseExternalReferenceCount)          \
  X(Buffer_DecreaseExternalReferenceCount) X(Buffer_OpaqueDeviceMemoryDataPointer)              \
  X(CopyToDeviceStream_Destroy) X(CopyToDeviceStream_AddChunk) X(CopyToDeviceStream_TotalBytes) \
  X(CopyToDeviceStream_GranuleSize) X(CopyToDeviceStream_CurrentBytes)                           \
  X(TopologyDescription_Create) X(TopologyDescription_Destroy)                                  \
  X(TopologyDescription_PlatformName) X(TopologyDescription_PlatformVersion)                     \
  X(TopologyDescription_GetDeviceDescriptions) X(TopologyDescription_Serialize)                 \
  X(TopologyDescription_Attributes) X(Compile) X(Executable_OutputElementTypes)                 \
  X(Executable_OutputDimensions) X(Buffer_CopyToMemory) X(Client_CreateViewOfDeviceBuffer)      \
  X(Executable_Fingerprint) X(Client_TopologyDescription) X(Executable_GetCompiledMemoryStats)   \
  X(Memory_Kind_Id) X(ExecuteContext_Create) X(ExecuteContext_Destroy) X(Buffer_CopyRawToHost)   \
  X(AsyncHostToDeviceTransferManager_Destroy) X(AsyncHostToDeviceTransferManager_TransferData)   \
  X(Client_CreateBuffersForAsyncHostToDevice) X(AsyncHostToDeviceTransferManager_RetrieveBuffer) \
  X(AsyncHostToDeviceTransferManager_Device) X(AsyncHostToDeviceTransferManager_BufferCount)     \
  X(AsyncHostToDeviceTransferManager_BufferSize)                                                 \
  X(AsyncHostToDeviceTransferManager_SetBufferError)                                             \
  X(AsyncHostToDeviceTransferManager_AddMetadata) X(Client_DmaMap) X(Client_DmaUnmap)            \
  X(Client_CreateUninitializedBuffer) X(Client_UpdateGlobalProcessInfo)                          \
  X(TopologyDescription_Deserialize) X(Client_CreateAliasBuffer) X(Client_FulfillAliasBuffer)    \
  X(LoadedExecutable_GetDeviceAssignment) X(Client_CreateErrorBuffer)                           \
  X(AsyncHostToDeviceTransferManager_TransferLiteral) X(Buffer_CopyRawToHostFuture)              \
  X(Device_PoisonExecution) X(Device_CreateAsyncTrackingEvent) X(AsyncTrackingEvent_Destroy)    \
  X(Executable_GetCompileOptions) X(Buffer_DonateWithControlDependency) X(Event_Create)         \
  X(Event_Set) X(Device_GetAttributes) X(Client_Load)                                           \
  X(LoadedExecutable_AddressableDeviceLogicalIds) X(Buffer_Bitcast) X(Error_ForEachPayload)    \
  X(TopologyDescription_Fingerprint) X(Executable_ParameterMemoryKinds)                          \
  X(Device_ClearMemoryStats) X(TopologyDescription_MakeCanonicalShapeForMemorySpace)             \
  X(TopologyDescription_GetMemorySpaceKindIds)
/* clang-format on */
#define PJRT_SLOT_COUNT 138

/* ---- objects: opaque to the other side ------------------------------------------------------ */

typedef struct PJRT_Error PJRT_Error;   /* first word: PJRT_Error_FunctionTable */
typedef struct PJRT_Memory PJRT_Memory; /* first word: PJRT_Memory_FunctionTable or NULL (0.105+) */
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;
typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_Buffer PJRT_Buffer;
typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;
typedef struct PJRT_AsyncHostToDeviceTransferManager PJRT_AsyncHostToDeviceTransferManager;
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
typedef struct PJRT_TransferMetadata PJRT_TransferMetadata;
typedef struct PJRT_MultiSliceConfig PJRT_MultiSliceConfig;
typedef struct PJRT_MemoryDescription PJRT_MemoryDescription;
/* Owners of returned bytes: the caller gives them to the deleter that came along, once. */
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;
typedef struct PJRT_SerializedCompileOptions PJRT_SerializedCompileOptions;
typedef struct PJRT_SerializedTopology PJRT_SerializedTopology;
typedef struct PJRT_SerializedShape PJRT_SerializedShape;
typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;

/* ---- enumerations --------------------------------------------------------------------------- */

typedef enum PJRT_Error_Code { /* the numbers of absl and gRPC */
                               PJRT_Error_Code_OK = 0,
                               PJRT_Error_Code_CANCELLED = 1,
                               PJRT_Error_Code_UNKNOWN = 2,
                               PJRT_Error_Code_INVALID_ARGUMENT = 3,
                               PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
                               PJRT_Error_Code_NOT_FOUND = 5,
                               PJRT_Error_Code_ALREADY_EXISTS = 6,
                               PJRT_Error_Code_PERMISSION_DENIED = 7,
                               PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
                               PJRT_Error_Code_FAILED_PRECONDITION = 9,
                               PJRT_Error_Code_ABORTED = 10,
                               PJRT_Error_Code_OUT_OF_RANGE = 11,
                               PJRT_Error_Code_UNIMPLEMENTED = 12,
                               PJRT_Error_Code_INTERNAL = 13,
                               PJRT_Error_Code_UNAVAILABLE = 14,
                               PJRT_Error_Code_DATA_LOSS = 15,
                               PJRT_Error_Code_UNAUTHENTICATED = 16
} PJRT_Error_Code;

/* Element types: the numbers of weft's DType (base/base.h). */
typedef enum PJRT_Buffer_Type {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_PRED = 1,
  PJRT_Buffer_Type_S8 = 2,
  PJRT_Buffer_Type_S16 = 3,
  PJRT_Buffer_Type_S32 = 4,
  PJRT_Buffer_Type_S64 = 5,
  PJRT_Buffer_Type_U8 = 6,
  PJRT_Buffer_Type_U16 = 7,
  PJRT_Buffer_Type_U32 = 8,
  PJRT_Buffer_Type_U64 = 9,
  PJRT_Buffer_Type_F16 = 10,
  PJRT_Buffer_Type_F32 = 11,
  PJRT_Buffer_Type_F64 = 12,
  PJRT_Buffer_Type_BF16 = 13,
  PJRT_Buffer_Type_C64 = 14,
  PJRT_Buffer_Type_C128 = 15,
  PJRT_Buffer_Type_F8E5M2 = 16,
  PJRT_Buffer_Type_F8E4M3FN = 17,
  PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
  PJRT_Buffer_Type_F8E5M2FNUZ = 19,
  PJRT_Buffer_Type_F8E4M3FNUZ = 20,
  PJRT_Buffer_Type_S4 = 21,
  PJRT_Buffer_Type_U4 = 22,
  PJRT_Buffer_Type_TOKEN = 23,
  PJRT_Buffer_Type_S2 = 24,
  PJRT_Buffer_Type_U2 = 25,
  PJRT_Buffer_Type_F8E4M3 = 26,
  PJRT_Buffer_Type_F8E3M4 = 27,
  PJRT_Buffer_Type_F8E8M0FNU = 28,
  PJRT_Buffer_Type_F4E2M1FN = 29,
  PJRT_Buffer_Type_S1 = 30,
  PJRT_Buffer_Type_U1 = 31,
  PJRT_Buffer_Type_F6E2M3FN = 32,
  PJRT_Buffer_Type_F6E3M2FN = 33
} PJRT_Buffer_Type;

typedef enum PJRT_HostBufferSemantics {
  PJRT_HostBufferSemantics_IMMUTABLE_ONLY_DURING_CALL = 0,
  PJRT_HostBufferSemantics_IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1,
  PJRT_HostBufferSemantics_IMMUTABLE_ZERO_COPY = 2,
  PJRT_HostBufferSemantics_MUTABLE_ZERO_COPY = 3
} PJRT_HostBufferSemantics;

typedef enum PJRT_NamedValue_Type {
  PJRT_NamedValue_STRING = 0,
  PJRT_NamedValue_INT64 = 1,
  PJRT_NamedValue_INT64_LIST = 2,
  PJRT_NamedValue_FLOAT = 3,
  PJRT_NamedValue_BOOL = 4
} PJRT_NamedValue_Type;

typedef enum PJRT_Buffer_MemoryLayout_Type {
  PJRT_Buffer_MemoryLayout_Type_TILED = 0,
  PJRT_Buffer_MemoryLayout_Type_STRIDES = 1
} PJRT_Buffer_MemoryLayout_Type;

typedef enum PJRT_Extension_Type {
  PJRT_Extension_Type_GPU_CUSTOM_CALL = 0,
  PJRT_Extension_Type_PROFILER = 1,
  PJRT_Extension_Type_CUSTOM_PARTITIONER = 2,
  PJRT_Extension_Type_STREAM = 3,
  PJRT_Extension_Type_LAYOUTS = 4,
  PJRT_Extension_Type_FFI = 5,
  PJRT_Extension_Type_MEMORY_DESCRIPTIONS = 6,
  PJRT_Extension_Type_TRITON = 7,
  PJRT_Extension_Type_RAW_BUFFER = 8,
  PJRT_Extension_Type_PHASE_COMPILE = 9,
  PJRT_Extension_Type_SHARDINGS = 19,
  PJRT_Extension_Type_ABI_VERSION = 20
} PJRT_Extension_Type;

/* ---- common parts --------------------------------------------------------------------------- */

typedef struct PJRT_Extension_Base {
  size_t struct_size;
  int32_t type; /* PJRT_Extension_Type */
  struct PJRT_Extension_Base *next;
} PJRT_Extension_Base;

#define PJRT_HEAD     \
  size_t struct_size; \
  PJRT_Extension_Base *extension_start

/* The end of `field`: what struct_size says when `field` is the last one. */
#define PJRT_END(T, field) (offsetof(T, field) + sizeof(((T *)0)->field))
/* Does the caller's struct cover `field`? */
#define PJRT_HAS(args, T, field) ((args)->struct_size >= PJRT_END(T, field))
/* Declares PJRT_<name>_Args and its PJRT_<name>_Args_STRUCT_SIZE. */
#define PJRT_ARGS(name, last, ...)    \
  typedef struct PJRT_##name##_Args { \
    PJRT_HEAD;                        \
    __VA_ARGS__                       \
  } PJRT_##name##_Args;               \
  enum { PJRT_##name##_Args_STRUCT_SIZE = PJRT_END(PJRT_##name##_Args, last) };

typedef struct PJRT_Api_Version {
  PJRT_HEAD;
  int32_t major_version;
  int32_t minor_version;
} PJRT_Api_Version;

typedef struct PJRT_NamedValue {
  PJRT_HEAD;
  const char *name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char *string_value;
    int64_t int64_value;
    const int64_t *int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size; /* length of the string or list, else 1 */
} PJRT_NamedValue;

typedef struct PJRT_Buffer_MemoryLayout_Tiled {
  PJRT_HEAD;
  const int64_t *minor_to_major;
  size_t minor_to_major_size;
  const int64_t *tile_dims;
  const size_t *tile_dim_sizes;
  size_t num_tiles;
} PJRT_Buffer_MemoryLayout_Tiled;
typedef struct PJRT_Buffer_MemoryLayout_Strides {
  PJRT_HEAD;
  const int64_t *byte_strides;
  size_t num_byte_strides;
} PJRT_Buffer_MemoryLayout_Strides;
typedef struct PJRT_Buffer_MemoryLayout {
  PJRT_HEAD;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
} PJRT_Buffer_MemoryLayout;

typedef struct PJRT_ShapeSpec {
  PJRT_HEAD;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
} PJRT_ShapeSpec;

typedef struct PJRT_Program {
  PJRT_HEAD;
  char *code; /* not NUL-terminated */
  size_t code_size;
  const char *format; /* "mlir" (bytecode or text), "hlo", "hlo_with_config" */
  size_t format_size;
} PJRT_Program;

typedef struct PJRT_Chunk {
  void *data;
  size_t size;
  void (*deleter)(void *data, void *arg);
  void *deleter_arg;
} PJRT_Chunk;

typedef struct PJRT_LogicalDeviceIds {
  int32_t replica;
  int32_t partition;
} PJRT_LogicalDeviceIds;

typedef struct PJRT_ProcessInfo {
  size_t struct_size;
  int32_t task_id;
  uint64_t incarnation_id;
  int32_t state;
  int32_t error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_ProcessInfo;

typedef struct PJRT_LoadOptions {
  size_t struct_size;
  const char *computation_origin;
  size_t computation_origin_size;
  PJRT_MultiSliceConfig *multi_slice_config;
} PJRT_LoadOptions;

/* ---- callbacks: all may be called from any thread ------------------------------------------- */

typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error *error, void *user_arg); /* takes the error */
typedef void (*PJRT_Error_PayloadVisitor)(const char *key, size_t key_size, const char *value,
                                          size_t value_size, void *user_arg);
typedef PJRT_Error *(*PJRT_CallbackError)(PJRT_Error_Code code, const char *message,
                                          size_t message_size);
typedef PJRT_Error *(*PJRT_SendCallback)(PJRT_Chunk *chunk, PJRT_CallbackError *callback_error,
                                         size_t total_size_in_bytes, bool done, void *user_arg);
typedef void (*PJRT_RecvCallback)(PJRT_CopyToDeviceStream *stream, void *user_arg);
typedef struct PJRT_SendCallbackInfo {
  int64_t channel_id;
  void *user_arg;
  PJRT_SendCallback send_callback;
} PJRT_SendCallbackInfo;
typedef struct PJRT_RecvCallbackInfo {
  int64_t channel_id;
  void *user_arg;
  PJRT_RecvCallback recv_callback;
} PJRT_RecvCallbackInfo;

PJRT_ARGS(KeyValueGetCallback, value_deleter_callback, const char *key; size_t key_size;
          int32_t timeout_in_ms; PJRT_CallbackError * callback_error; void *user_arg; char *value;
          size_t value_size; void (*value_deleter_callback)(char *value);)
PJRT_ARGS(KeyValueTryGetCallback, value_deleter_callback, const char *key; size_t key_size;
          PJRT_CallbackError * callback_error; void *user_arg; char *value; size_t value_size;
          void (*value_deleter_callback)(char *value);)
PJRT_ARGS(KeyValuePutCallback, user_arg, const char *key; size_t key_size; const char *value;
          size_t value_size; PJRT_CallbackError * callback_error; void *user_arg;)
typedef PJRT_Error *(*PJRT_KeyValueGetCallback)(PJRT_KeyValueGetCallback_Args *args);
typedef PJRT_Error *(*PJRT_KeyValueTryGetCallback)(PJRT_KeyValueTryGetCallback_Args *args);
typedef PJRT_Error *(*PJRT_KeyValuePutCallback)(PJRT_KeyValuePutCallback_Args *args);

typedef struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size;
  void *callback_data;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  void *dst;
} PJRT_Buffer_CopyRawToHostFuture_Callback_Args;
typedef struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
  size_t struct_size;
  void *callback_data;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_Buffer_DonateWithControlDependency_Callback_Args;

/* 80 bytes (to call_location) from older callers. */
typedef struct PJRT_ExecuteOptions {
  PJRT_HEAD;
  PJRT_SendCallbackInfo **send_callbacks;
  PJRT_RecvCallbackInfo **recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int32_t launch_id;
  const int64_t *non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext *context;
  const char *call_location;
  size_t num_tasks;
  int *task_ids;
  int64_t *incarnation_ids;
  PJRT_MultiSliceConfig *multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  void **hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
} PJRT_ExecuteOptions;

/* ---- errors --------------------------------------------------------------------------------- */

PJRT_ARGS(Error_Destroy, error, PJRT_Error *error;)
PJRT_ARGS(Error_Message, message_size, const PJRT_Error *error; const char *message;
          size_t message_size;)
PJRT_ARGS(Error_GetCode, code, const PJRT_Error *error; PJRT_Error_Code code;)
PJRT_ARGS(Error_ForEachPayload, user_arg, const PJRT_Error *error;
          PJRT_Error_PayloadVisitor visitor; void *user_arg;)

/* ---- the plugin ----------------------------------------------------------------------------- */

PJRT_ARGS(Plugin_Initialize, extension_start, )
PJRT_ARGS(Plugin_Attributes, num_attributes, const PJRT_NamedValue *attributes;
          size_t num_attributes;)

/* ---- events --------------------------------------------------------------------------------- */

PJRT_ARGS(Event_Destroy, event, PJRT_Event *event;)
PJRT_ARGS(Event_IsReady, is_ready, PJRT_Event *event; bool is_ready;)
PJRT_ARGS(Event_Error, event, PJRT_Event *event;)
PJRT_ARGS(Event_Await, event, PJRT_Event *event;)
PJRT_ARGS(Event_OnReady, user_arg, PJRT_Event *event; PJRT_Event_OnReadyCallback callback;
          void *user_arg;)
PJRT_ARGS(Event_Create, event, PJRT_Event *event;)
PJRT_ARGS(Event_Set, error_message_size, PJRT_Event *event; PJRT_Error_Code error_code;
          const char *error_message; size_t error_message_size;)

/* ---- client --------------------------------------------------------------------------------- */

PJRT_ARGS(Client_Create, kv_try_get_user_arg, const PJRT_NamedValue *create_options;
          size_t num_options; PJRT_KeyValueGetCallback kv_get_callback; void *kv_get_user_arg;
          PJRT_KeyValuePutCallback kv_put_callback; void *kv_put_user_arg; PJRT_Client * client;
          PJRT_KeyValueTryGetCallback kv_try_get_callback; void *kv_try_get_user_arg;)
PJRT_ARGS(Client_Destroy, client, PJRT_Client *client;)
PJRT_ARGS(Client_PlatformName, platform_name_size, PJRT_Client *client; const char *platform_name;
          size_t platform_name_size;)
PJRT_ARGS(Client_ProcessIndex, process_index, PJRT_Client *client; int32_t process_index;)
PJRT_ARGS(Client_PlatformVersion, platform_version_size, PJRT_Client *client;
          const char *platform_version; size_t platform_version_size;)
PJRT_ARGS(Client_Devices, num_devices, PJRT_Client *client; PJRT_Device *const *devices;
          size_t num_devices;)
PJRT_ARGS(Client_AddressableDevices, num_addressable_devices, PJRT_Client *client;
          PJRT_Device *const *addressable_devices; size_t num_addressable_devices;)
PJRT_ARGS(Client_LookupDevice, device, PJRT_Client *client; int32_t id; PJRT_Device * device;)
PJRT_ARGS(Client_LookupAddressableDevice, addressable_device, PJRT_Client *client;
          int32_t local_hardware_id; PJRT_Device * addressable_device;)
PJRT_ARGS(Client_AddressableMemories, num_addressable_memories, PJRT_Client *client;
          PJRT_Memory *const *addressable_memories; size_t num_addressable_memories;)
PJRT_ARGS(Client_Compile, executable, PJRT_Client *client; const PJRT_Program *program;
          const char *compile_options; size_t compile_options_size;
          PJRT_LoadedExecutable * executable;)
PJRT_ARGS(Client_DefaultDeviceAssignment, default_assignment, PJRT_Client *client;
          int32_t num_replicas; int32_t num_partitions; size_t default_assignment_size;
          int *default_assignment;)
PJRT_ARGS(Client_BufferFromHostBuffer, buffer, PJRT_Client *client; const void *data;
          PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims; const int64_t *byte_strides;
          size_t num_byte_strides; PJRT_HostBufferSemantics host_buffer_semantics;
          PJRT_Device * device; PJRT_Memory * memory; PJRT_Buffer_MemoryLayout * device_layout;
          PJRT_Event * done_with_host_buffer; PJRT_Buffer * buffer;)
PJRT_ARGS(Client_CreateViewOfDeviceBuffer, memory, PJRT_Client *client; void *device_buffer_ptr;
          const int64_t *dims; size_t num_dims; PJRT_Buffer_Type element_type;
          PJRT_Buffer_MemoryLayout * layout; PJRT_Device * device;
          void (*on_delete_callback)(void *device_buffer_ptr, void *user_arg);
          void *on_delete_callback_arg; int64_t stream; PJRT_Buffer * buffer; PJRT_Memory * memory;)
PJRT_ARGS(Client_TopologyDescription, topology, PJRT_Client *client;
          PJRT_TopologyDescription * topology;)
PJRT_ARGS(Client_CreateBuffersForAsyncHostToDevice, transfer_manager, PJRT_Client *client;
          PJRT_ShapeSpec * shape_specs; size_t num_shape_specs;
          PJRT_Buffer_MemoryLayout * *device_layouts; size_t num_device_layouts;
          PJRT_Memory * memory; PJRT_AsyncHostToDeviceTransferManager * transfer_manager;)
PJRT_ARGS(Client_DmaMap, size, PJRT_Client *client; void *data; size_t size;)
PJRT_ARGS(Client_DmaUnmap, data, PJRT_Client *client; void *data;)
PJRT_ARGS(Client_CreateUninitializedBuffer, buffer, PJRT_Client *client; const int64_t *shape_dims;
          size_t shape_num_dims; PJRT_Buffer_Type shape_element_type;
          PJRT_Buffer_MemoryLayout * shape_layout; PJRT_Device * device; PJRT_Memory * memory;
          PJRT_Buffer * buffer;)
PJRT_ARGS(Client_UpdateGlobalProcessInfo, num_process_infos, PJRT_Client *client;
          PJRT_ProcessInfo * process_infos; size_t num_process_infos;)
PJRT_ARGS(Client_CreateAliasBuffer, fulfill_alias_buffer_cb, PJRT_Client *client;
          PJRT_Memory * memory; const int64_t *shape_dims; size_t shape_num_dims;
          PJRT_Buffer_Type shape_element_type; PJRT_Buffer_MemoryLayout * shape_layout;
          PJRT_Buffer * alias_buffer; PJRT_FulfillAliasBufferCallback * fulfill_alias_buffer_cb;)
PJRT_ARGS(Client_FulfillAliasBuffer, fulfill_alias_buffer_cb, PJRT_Client *client;
          PJRT_Buffer * buffer; PJRT_Error_Code status_code; const char *error_message;
          size_t error_message_size; PJRT_FulfillAliasBufferCallback * fulfill_alias_buffer_cb;)
PJRT_ARGS(Client_CreateErrorBuffer, num_payload, PJRT_Client *client; PJRT_Error_Code error_code;
          const char *error_message; size_t error_message_size; const int64_t *shape_dims;
          size_t shape_num_dims; PJRT_Buffer_Type shape_element_type;
          PJRT_Buffer_MemoryLayout * shape_layout; PJRT_Memory * memory; PJRT_Buffer * buffer;
          void *payload; size_t num_payload;)
PJRT_ARGS(Client_Load, loaded_executable, PJRT_Client *client; PJRT_Executable * executable;
          const char *compile_options; size_t compile_options_size;
          PJRT_LoadedExecutable * loaded_executable;)

/* ---- devices and memories ------------------------------------------------------------------- */

PJRT_ARGS(DeviceDescription_Id, id, PJRT_DeviceDescription *device_description; int32_t id;)
PJRT_ARGS(DeviceDescription_ProcessIndex, process_index, PJRT_DeviceDescription *device_description;
          int32_t process_index;)
PJRT_ARGS(DeviceDescription_Attributes, attributes, PJRT_DeviceDescription *device_description;
          size_t num_attributes; const PJRT_NamedValue *attributes;)
PJRT_ARGS(DeviceDescription_Kind, device_kind_size, PJRT_DeviceDescription *device_description;
          const char *device_kind; size_t device_kind_size;)
PJRT_ARGS(DeviceDescription_DebugString, debug_string_size,
          PJRT_DeviceDescription *device_description;
          const char *debug_string; size_t debug_string_size;)
PJRT_ARGS(DeviceDescription_ToString, to_string_size, PJRT_DeviceDescription *device_description;
          const char *to_string; size_t to_string_size;)
PJRT_ARGS(Device_GetDescription, device_description, PJRT_Device *device;
          PJRT_DeviceDescription * device_description;)
PJRT_ARGS(Device_IsAddressable, is_addressable, PJRT_Device *device; bool is_addressable;)
PJRT_ARGS(Device_LocalHardwareId, local_hardware_id, PJRT_Device *device;
          int32_t local_hardware_id;)
PJRT_ARGS(Device_AddressableMemories, num_memories, PJRT_Device *device;
          PJRT_Memory *const *memories; size_t num_memories;)
PJRT_ARGS(Device_DefaultMemory, memory, PJRT_Device *device; PJRT_Memory * memory;)
PJRT_ARGS(Device_MemoryStats, peak_allocated_bytes_is_set, PJRT_Device *device;
          int64_t bytes_in_use; int64_t peak_bytes_in_use; bool peak_bytes_in_use_is_set;
          int64_t num_allocs; bool num_allocs_is_set; int64_t largest_alloc_size;
          bool largest_alloc_size_is_set; int64_t bytes_limit; bool bytes_limit_is_set;
          int64_t bytes_reserved; bool bytes_reserved_is_set; int64_t peak_bytes_reserved;
          bool peak_bytes_reserved_is_set; int64_t bytes_reservable_limit;
          bool bytes_reservable_limit_is_set; int64_t largest_free_block_bytes;
          bool largest_free_block_bytes_is_set; int64_t pool_bytes; bool pool_bytes_is_set;
          int64_t peak_pool_bytes; bool peak_pool_bytes_is_set; int64_t peak_allocated_bytes;
          bool peak_allocated_bytes_is_set;)
PJRT_ARGS(Device_PoisonExecution, num_payload, PJRT_Device *device; int32_t launch_id;
          PJRT_Error_Code error_code; const char *error_message; size_t error_message_size;
          bool poisoned; void *payload; size_t num_payload;)
PJRT_ARGS(Device_CreateAsyncTrackingEvent, event, PJRT_Device *device; const char *description;
          size_t description_size; PJRT_AsyncTrackingEvent * event;)
PJRT_ARGS(Device_GetAttributes, attributes_deleter, PJRT_Device *device;
          const PJRT_NamedValue *attributes; size_t num_attributes;
          PJRT_Device_Attributes * device_attributes;
          void (*attributes_deleter)(PJRT_Device_Attributes *);)
PJRT_ARGS(Device_ClearMemoryStats, device, PJRT_Device *device;)
PJRT_ARGS(Memory_Id, id, PJRT_Memory *memory; int32_t id;)
PJRT_ARGS(Memory_Kind, kind_size, PJRT_Memory *memory; const char *kind; size_t kind_size;)
PJRT_ARGS(Memory_DebugString, debug_string_size, PJRT_Memory *memory; const char *debug_string;
          size_t debug_string_size;)
PJRT_ARGS(Memory_ToString, to_string_size, PJRT_Memory *memory; const char *to_string;
          size_t to_string_size;)
PJRT_ARGS(Memory_AddressableByDevices, num_devices, PJRT_Memory *memory;
          PJRT_Device *const *devices; size_t num_devices;)
PJRT_ARGS(Memory_Kind_Id, kind_id, PJRT_Memory *memory; int32_t kind_id;)

/* ---- programs ------------------------------------------------------------------------------- */

PJRT_ARGS(Executable_Destroy, executable, PJRT_Executable *executable;)
PJRT_ARGS(Executable_Name, executable_name_size, PJRT_Executable *executable;
          const char *executable_name; size_t executable_name_size;)
PJRT_ARGS(Executable_NumReplicas, num_replicas, PJRT_Executable *executable; size_t num_replicas;)
PJRT_ARGS(Executable_NumPartitions, num_partitions, PJRT_Executable *executable;
          size_t num_partitions;)
PJRT_ARGS(Executable_NumOutputs, num_outputs, PJRT_Executable *executable; size_t num_outputs;)
PJRT_ARGS(Executable_SizeOfGeneratedCodeInBytes, size_in_bytes, PJRT_Executable *executable;
          int64_t size_in_bytes;)
PJRT_ARGS(Executable_GetCostAnalysis, properties, PJRT_Executable *executable;
          size_t num_properties; const PJRT_NamedValue *properties;)
PJRT_ARGS(Executable_OutputMemoryKinds, memory_kind_sizes, PJRT_Executable *executable;
          size_t num_outputs; const char *const *memory_kinds; const size_t *memory_kind_sizes;)
PJRT_ARGS(Executable_OptimizedProgram, program, PJRT_Executable *executable;
          PJRT_Program * program;)
PJRT_ARGS(Executable_Serialize, serialized_executable_deleter, PJRT_Executable *executable;
          const char *serialized_bytes; size_t serialized_bytes_size;
          PJRT_SerializedExecutable * serialized_executable;
          void (*serialized_executable_deleter)(PJRT_SerializedExecutable *);)
PJRT_ARGS(Executable_DeserializeAndLoad, load_options, PJRT_Client *client;
          const char *serialized_executable; size_t serialized_executable_size;
          PJRT_LoadedExecutable * loaded_executable;
          const char *overridden_serialized_compile_options;
          size_t overridden_serialized_compile_options_size; PJRT_LoadOptions * load_options;)
PJRT_ARGS(Executable_OutputElementTypes, num_output_types, PJRT_Executable *executable;
          PJRT_Buffer_Type * output_types; size_t num_output_types;)
PJRT_ARGS(Executable_OutputDimensions, dim_sizes, PJRT_Executable *executable; size_t num_outputs;
          const int64_t *dims; const size_t *dim_sizes;)
PJRT_ARGS(Executable_Fingerprint, executable_fingerprint_size, PJRT_Executable *executable;
          const char *executable_fingerprint; size_t executable_fingerprint_size;)
PJRT_ARGS(Executable_GetCompiledMemoryStats, peak_unpadded_heap_bytes, PJRT_Executable *executable;
          int64_t generated_code_size_in_bytes; int64_t argument_size_in_bytes;
          int64_t output_size_in_bytes; int64_t alias_size_in_bytes; int64_t temp_size_in_bytes;
          int64_t host_generated_code_size_in_bytes; int64_t host_argument_size_in_bytes;
          int64_t host_output_size_in_bytes; int64_t host_alias_size_in_bytes;
          int64_t host_temp_size_in_bytes; int64_t peak_memory_in_bytes;
          int64_t total_size_in_bytes; int64_t total_allocation_bytes;
          int64_t indefinite_allocations; int64_t peak_unpadded_heap_bytes;)
PJRT_ARGS(Executable_GetCompileOptions, serialized_compile_options_deleter,
          PJRT_Executable *executable;
          const char *serialized_bytes; size_t serialized_bytes_size;
          PJRT_SerializedCompileOptions * serialized_compile_options;
          void (*serialized_compile_options_deleter)(PJRT_SerializedCompileOptions *);)
PJRT_ARGS(Executable_ParameterMemoryKinds, memory_kind_sizes, PJRT_Executable *executable;
          size_t num_parameters; const char *const *memory_kinds; const size_t *memory_kind_sizes;)
PJRT_ARGS(LoadedExecutable_Destroy, executable, PJRT_LoadedExecutable *executable;)
PJRT_ARGS(LoadedExecutable_GetExecutable, executable, PJRT_LoadedExecutable *loaded_executable;
          PJRT_Executable * executable;)
PJRT_ARGS(LoadedExecutable_AddressableDevices, num_addressable_devices,
          PJRT_LoadedExecutable *executable;
          PJRT_Device *const *addressable_devices; size_t num_addressable_devices;)
PJRT_ARGS(LoadedExecutable_Delete, executable, PJRT_LoadedExecutable *executable;)
PJRT_ARGS(LoadedExecutable_IsDeleted, is_deleted, PJRT_LoadedExecutable *executable;
          bool is_deleted;)
PJRT_ARGS(LoadedExecutable_Execute, execute_device, PJRT_LoadedExecutable *executable;
          PJRT_ExecuteOptions * options; PJRT_Buffer *const *const *argument_lists;
          size_t num_devices; size_t num_args; PJRT_Buffer * *const *output_lists;
          PJRT_Event * *device_complete_events; PJRT_Device * execute_device;)
PJRT_ARGS(LoadedExecutable_Fingerprint, executable_fingerprint_size,
          PJRT_LoadedExecutable *executable;
          const char *executable_fingerprint; size_t executable_fingerprint_size;)
PJRT_ARGS(LoadedExecutable_GetDeviceAssignment, serialized_device_assignment_deleter,
          PJRT_LoadedExecutable *executable;
          const char *serialized_bytes; size_t serialized_bytes_size;
          PJRT_DeviceAssignmentSerialized * serialized_device_assignment;
          void (*serialized_device_assignment_deleter)(PJRT_DeviceAssignmentSerialized *);)
PJRT_ARGS(LoadedExecutable_AddressableDeviceLogicalIds, num_addressable_device_logical_ids,
          PJRT_LoadedExecutable *executable;
          PJRT_LogicalDeviceIds * addressable_device_logical_ids;
          size_t num_addressable_device_logical_ids;)
PJRT_ARGS(ExecuteContext_Create, context, PJRT_ExecuteContext *context;)
PJRT_ARGS(ExecuteContext_Destroy, context, PJRT_ExecuteContext *context;)

/* ---- compilation without a client ----------------------------------------------------------- */

PJRT_ARGS(Compile, executable, PJRT_TopologyDescription *topology; const PJRT_Program *program;
          const char *compile_options; size_t compile_options_size; PJRT_Client * client;
          PJRT_Executable * executable;)

/* ---- buffers -------------------------------------------------------------------------------- */

PJRT_ARGS(Buffer_Destroy, buffer, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_ElementType, type, PJRT_Buffer *buffer; PJRT_Buffer_Type type;)
PJRT_ARGS(Buffer_Dimensions, num_dims, PJRT_Buffer *buffer; const int64_t *dims; size_t num_dims;)
PJRT_ARGS(Buffer_UnpaddedDimensions, num_dims, PJRT_Buffer *buffer; const int64_t *unpadded_dims;
          size_t num_dims;)
PJRT_ARGS(Buffer_DynamicDimensionIndices, num_dynamic_dims, PJRT_Buffer *buffer;
          const size_t *dynamic_dim_indices; size_t num_dynamic_dims;)
PJRT_ARGS(Buffer_GetMemoryLayout, layout, PJRT_Buffer *buffer; PJRT_Buffer_MemoryLayout layout;)
PJRT_ARGS(Buffer_OnDeviceSizeInBytes, on_device_size_in_bytes, PJRT_Buffer *buffer;
          size_t on_device_size_in_bytes;)
PJRT_ARGS(Buffer_Device, device, PJRT_Buffer *buffer; PJRT_Device * device;)
PJRT_ARGS(Buffer_Memory, memory, PJRT_Buffer *buffer; PJRT_Memory * memory;)
PJRT_ARGS(Buffer_Delete, buffer, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_IsDeleted, is_deleted, PJRT_Buffer *buffer; bool is_deleted;)
PJRT_ARGS(Buffer_CopyToDevice, dst_buffer, PJRT_Buffer *buffer; PJRT_Device * dst_device;
          PJRT_Buffer * dst_buffer;)
PJRT_ARGS(Buffer_ToHostBuffer, event, PJRT_Buffer *src; PJRT_Buffer_MemoryLayout * host_layout;
          void *dst; size_t dst_size; PJRT_Event * event;)
PJRT_ARGS(Buffer_IsOnCpu, is_on_cpu, PJRT_Buffer *buffer; bool is_on_cpu;)
PJRT_ARGS(Buffer_ReadyEvent, event, PJRT_Buffer *buffer; PJRT_Event * event;)
PJRT_ARGS(Buffer_UnsafePointer, buffer_pointer, PJRT_Buffer *buffer; size_t buffer_pointer;)
PJRT_ARGS(Buffer_IncreaseExternalReferenceCount, buffer, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_DecreaseExternalReferenceCount, buffer, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr, PJRT_Buffer *buffer;
          void *device_memory_ptr;)
PJRT_ARGS(Buffer_CopyToMemory, dst_buffer, PJRT_Buffer *buffer; PJRT_Memory * dst_memory;
          PJRT_Buffer * dst_buffer;)
PJRT_ARGS(Buffer_CopyRawToHost, event, PJRT_Buffer *buffer; void *dst; int64_t offset;
          int64_t transfer_size; PJRT_Event * event;)
PJRT_ARGS(Buffer_CopyRawToHostFuture, future_ready_callback, PJRT_Buffer *buffer; int64_t offset;
          int64_t transfer_size; PJRT_Event * event; void *callback_data;
          void (*future_ready_callback)(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *);)
PJRT_ARGS(
    Buffer_DonateWithControlDependency, out_buffer, PJRT_Buffer *buffer; void *callback_data;
    void (*dependency_ready_callback)(PJRT_Buffer_DonateWithControlDependency_Callback_Args *);
    PJRT_Buffer * out_buffer;)
PJRT_ARGS(Buffer_Bitcast, out_buffer, PJRT_Buffer *buffer; PJRT_Buffer_Type element_type;
          const int64_t *dims; size_t num_dims; PJRT_Buffer_MemoryLayout * device_layout;
          PJRT_Buffer * out_buffer;)

/* ---- copy streams and transfer managers ----------------------------------------------------- */

PJRT_ARGS(CopyToDeviceStream_Destroy, stream, PJRT_CopyToDeviceStream *stream;)
PJRT_ARGS(CopyToDeviceStream_AddChunk, transfer_complete, PJRT_CopyToDeviceStream *stream;
          PJRT_Chunk * chunk; PJRT_Event * transfer_complete;)
PJRT_ARGS(CopyToDeviceStream_TotalBytes, total_bytes, PJRT_CopyToDeviceStream *stream;
          int64_t total_bytes;)
PJRT_ARGS(CopyToDeviceStream_GranuleSize, granule_size_in_bytes, PJRT_CopyToDeviceStream *stream;
          int64_t granule_size_in_bytes;)
PJRT_ARGS(CopyToDeviceStream_CurrentBytes, current_bytes, PJRT_CopyToDeviceStream *stream;
          int64_t current_bytes;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_Destroy, transfer_manager,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          int32_t buffer_index; const void *data; int64_t offset; int64_t transfer_size;
          bool is_last_transfer; PJRT_Event * done_with_h2d_transfer;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          int32_t buffer_index; PJRT_Buffer * buffer_out;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_Device, device_out,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          PJRT_Device * device_out;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_BufferCount, buffer_count,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          size_t buffer_count;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_BufferSize, buffer_size,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          int32_t buffer_index; size_t buffer_size;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_SetBufferError, error_message_size,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          int32_t buffer_index; PJRT_Error_Code error_code; const char *error_message;
          size_t error_message_size;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_AddMetadata, num_metadata,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          PJRT_TransferMetadata * transfer_metadata; size_t num_metadata;)
PJRT_ARGS(AsyncHostToDeviceTransferManager_TransferLiteral, done_with_h2d_transfer,
          PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
          int32_t buffer_index; const void *data; const int64_t *shape_dims; size_t shape_num_dims;
          PJRT_Buffer_Type shape_element_type; PJRT_Buffer_MemoryLayout * shape_layout;
          PJRT_Event * done_with_h2d_transfer;)
PJRT_ARGS(AsyncTrackingEvent_Destroy, event, PJRT_AsyncTrackingEvent *event;)

/* ---- topologies ----------------------------------------------------------------------------- */

PJRT_ARGS(TopologyDescription_Create, topology, const char *topology_name;
          size_t topology_name_size; const PJRT_NamedValue *create_options; size_t num_options;
          PJRT_TopologyDescription * topology;)
PJRT_ARGS(TopologyDescription_Destroy, topology, PJRT_TopologyDescription *topology;)
PJRT_ARGS(TopologyDescription_PlatformName, platform_name_size, PJRT_TopologyDescription *topology;
          const char *platform_name; size_t platform_name_size;)
PJRT_ARGS(TopologyDescription_PlatformVersion, platform_version_size,
          PJRT_TopologyDescription *topology;
          const char *platform_version; size_t platform_version_size;)
PJRT_ARGS(TopologyDescription_GetDeviceDescriptions, num_descriptions,
          PJRT_TopologyDescription *topology;
          PJRT_DeviceDescription *const *descriptions; size_t num_descriptions;)
PJRT_ARGS(TopologyDescription_Serialize, serialized_topology_deleter,
          PJRT_TopologyDescription *topology;
          const char *serialized_bytes; size_t serialized_bytes_size;
          PJRT_SerializedTopology * serialized_topology;
          void (*serialized_topology_deleter)(PJRT_SerializedTopology *);)
PJRT_ARGS(TopologyDescription_Attributes, num_attributes, PJRT_TopologyDescription *topology;
          const PJRT_NamedValue *attributes; size_t num_attributes;)
PJRT_ARGS(TopologyDescription_Deserialize, topology, const char *serialized_topology;
          size_t serialized_topology_size; PJRT_TopologyDescription * topology;)
PJRT_ARGS(TopologyDescription_Fingerprint, fingerprint, PJRT_TopologyDescription *topology;
          size_t fingerprint;)
PJRT_ARGS(TopologyDescription_MakeCanonicalShapeForMemorySpace, serialized_shape_deleter,
          PJRT_TopologyDescription *topology;
          int32_t memory_space_kind_id; const int64_t *dims; size_t num_dims;
          PJRT_Buffer_Type element_type; PJRT_Buffer_MemoryLayout * layout;
          PJRT_SerializedShape * serialized_shape; size_t serialized_shape_size;
          void (*serialized_shape_deleter)(PJRT_SerializedShape *);)
PJRT_ARGS(TopologyDescription_GetMemorySpaceKindIds, num_memory_space_kind_ids,
          PJRT_TopologyDescription *topology;
          const int *memory_space_kind_ids; size_t num_memory_space_kind_ids;)

/* ---- the table as a struct ------------------------------------------------------------------ */

typedef struct PJRT_Api {
  PJRT_HEAD;
  PJRT_Api_Version pjrt_api_version;
#define PJRT_V(name) void (*PJRT_##name)(PJRT_##name##_Args * args);
#define PJRT_X(name) PJRT_Error *(*PJRT_##name)(PJRT_##name##_Args * args);
  PJRT_SLOTS(PJRT_V, PJRT_X)
#undef PJRT_V
#undef PJRT_X
} PJRT_Api;

/* The one symbol a plugin exports. */
#define PJRT_ENTRY "GetPjrtApi"
typedef const PJRT_Api *(*PJRT_GetApiFn)(void);
/* May the slot be called? A shorter table ends before it. */
#define PJRT_API_HAS(api, name) \
  ((api)->struct_size >= PJRT_END(PJRT_Api, PJRT_##name) && (api)->PJRT_##name != NULL)

/* ---- first words of PJRT_Error and PJRT_Memory ---------------------------------------------- */

typedef struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base *extension_start;
  void (*destroy)(PJRT_Error *error);
  void (*message)(const PJRT_Error *error, const char **message, size_t *message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error *error);
  void (*for_each_payload)(const PJRT_Error *error, PJRT_Error_PayloadVisitor visitor, void *arg);
} PJRT_Error_FunctionTable;

typedef struct PJRT_Memory_FunctionTable {
  PJRT_HEAD;
  size_t instance_struct_size;
  void *(*get_user_data)(PJRT_Memory *memory, const void *key);
  void (*set_user_data)(PJRT_Memory *memory, const void *key, void *data, void (*dtor)(void *));
} PJRT_Memory_FunctionTable;

/* ---- extensions ----------------------------------------------------------------------------- */

PJRT_ARGS(DeviceDescription_MemoryDescriptions, default_memory_index,
          PJRT_DeviceDescription *device_description;
          const PJRT_MemoryDescription *const *memory_descriptions; size_t num_memory_descriptions;
          size_t default_memory_index;)
PJRT_ARGS(Layouts_MemoryLayout_Destroy, layout, PJRT_Layouts_MemoryLayout *layout;)
PJRT_ARGS(Layouts_MemoryLayout_Serialize, serialized_layout_deleter,
          PJRT_Layouts_MemoryLayout *layout;
          const char *serialized_bytes; size_t serialized_bytes_size;
          PJRT_Layouts_SerializedLayout * serialized_layout;
          void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout *);)
PJRT_ARGS(Layouts_PJRT_Buffer_MemoryLayout, layout, PJRT_Buffer *buffer;
          PJRT_Layouts_MemoryLayout * layout;)
PJRT_ARGS(Layouts_PJRT_Client_GetDefaultLayout, layout, PJRT_Client *client; PJRT_Buffer_Type type;
          const int64_t *dims; size_t num_dims; PJRT_Layouts_MemoryLayout * layout;)
PJRT_ARGS(Layouts_PJRT_Executable_GetOutputLayouts, layouts, PJRT_Executable *executable;
          size_t num_outputs; PJRT_Layouts_MemoryLayout * *layouts;)
PJRT_ARGS(Layouts_PJRT_Executable_GetParameterLayouts, layouts, PJRT_Executable *executable;
          size_t num_parameters; PJRT_Layouts_MemoryLayout * *layouts;)
PJRT_ARGS(Layouts_PJRT_Topology_GetDefaultLayout, layout,
          PJRT_TopologyDescription *topology_description;
          PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims;
          PJRT_Layouts_MemoryLayout * layout;)
PJRT_ARGS(MemoryDescription_Kind, kind_id, const PJRT_MemoryDescription *memory_description;
          const char *kind; size_t kind_size; int32_t kind_id;)
PJRT_ARGS(Shardings_PJRT_Executable_OutputShardings, sharding_sizes, PJRT_Executable *executable;
          size_t num_outputs; const char *const *shardings; const size_t *sharding_sizes;)
PJRT_ARGS(Shardings_PJRT_Executable_ParameterShardings, sharding_sizes, PJRT_Executable *executable;
          size_t num_parameters; const char *const *shardings; const size_t *sharding_sizes;)

#define PJRT_EXT_SLOT(name) PJRT_Error *(*PJRT_##name)(PJRT_##name##_Args * args)

typedef struct PJRT_Layouts_Extension { /* 72 bytes before 0.93 */
  PJRT_Extension_Base base;
  PJRT_EXT_SLOT(Layouts_MemoryLayout_Destroy);
  PJRT_EXT_SLOT(Layouts_MemoryLayout_Serialize);
  PJRT_EXT_SLOT(Layouts_PJRT_Client_GetDefaultLayout);
  PJRT_EXT_SLOT(Layouts_PJRT_Buffer_MemoryLayout);
  PJRT_EXT_SLOT(Layouts_PJRT_Topology_GetDefaultLayout);
  PJRT_EXT_SLOT(Layouts_PJRT_Executable_GetOutputLayouts);
  PJRT_EXT_SLOT(Layouts_PJRT_Executable_GetParameterLayouts);
} PJRT_Layouts_Extension;

/* Each sharding is a serialized OpSharding; length 0: replicated. */
typedef struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_EXT_SLOT(Shardings_PJRT_Executable_ParameterShardings);
  PJRT_EXT_SLOT(Shardings_PJRT_Executable_OutputShardings);
} PJRT_Shardings_Extension;

typedef struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_EXT_SLOT(DeviceDescription_MemoryDescriptions);
  PJRT_EXT_SLOT(MemoryDescription_Kind);
} PJRT_MemoryDescriptions_Extension;

/* ---- the profiler: a table of its own, with errors of its own. Callers do not all set
 * struct_size. create, start, stop, collect_data, destroy, in this order. collect_data with buffer
 * NULL points it to the plugin's bytes (an XSpace), which live until destroy, and sets the size;
 * with a buffer it copies them there. */

typedef struct PLUGIN_Profiler PLUGIN_Profiler;
typedef struct PLUGIN_Profiler_Error PLUGIN_Profiler_Error;
typedef struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void *priv;
  PLUGIN_Profiler_Error *error;
} PLUGIN_Profiler_Error_Destroy_Args;
typedef struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void *priv;
  PLUGIN_Profiler_Error *error;
  const char *message;
  size_t message_size;
} PLUGIN_Profiler_Error_Message_Args;
typedef struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void *priv;
  PLUGIN_Profiler_Error *error;
  int code;
} PLUGIN_Profiler_Error_GetCode_Args;
typedef struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char *options; /* a serialized ProfileOptions */
  size_t options_size;
  PLUGIN_Profiler *profiler;
} PLUGIN_Profiler_Create_Args;
typedef struct PLUGIN_Profiler_Args { /* of start, stop and destroy */
  size_t struct_size;
  PLUGIN_Profiler *profiler;
} PLUGIN_Profiler_Args;
typedef struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler *profiler;
  uint8_t *buffer;
  size_t buffer_size_in_bytes;
} PLUGIN_Profiler_CollectData_Args;
typedef struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void *priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args *a);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args *a);
  PLUGIN_Profiler_Error *(*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args *a);
  PLUGIN_Profiler_Error *(*create)(PLUGIN_Profiler_Create_Args *a);
  PLUGIN_Profiler_Error *(*destroy)(PLUGIN_Profiler_Args *a);
  PLUGIN_Profiler_Error *(*start)(PLUGIN_Profiler_Args *a);
  PLUGIN_Profiler_Error *(*stop)(PLUGIN_Profiler_Args *a);
  PLUGIN_Profiler_Error *(*collect_data)(PLUGIN_Profiler_CollectData_Args *a);
} PLUGIN_Profiler_Api;

/* Of a plugin: its profiler. Callers put such a node, without a table, into extension_start of
 * Compile and Execute. */
typedef struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  const PLUGIN_Profiler_Api *profiler_api;
  int64_t traceme_context_id;
} PJRT_Profiler_Extension;

#endif
