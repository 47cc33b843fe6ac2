# Libraries from outside, in two ways:
#
#   weft_outside   shared, as the system has them: for tests and fuzzers, which are many
#   weft_inside    as archives where there are any: for the products. None of their names leaves the file they are linked
#                  into, so other libraries in the process (TensorFlow brings an LLVM of its own) neither see nor replace them.
#                  weft_data_inside is the part that reads data sets and checkpoints.
#
# WEFT_STATIC    AUTO: the archives that are there; ON: one that is missing is an error (the wheel); OFF: none
# WEFT_DNNL      a folder with an oneDNN (include, lib) that is installed beside the plugin, as tools/wheel.sh makes it; without
#                it the system's is loaded when it is first used
# LLVM_CONFIG    which LLVM, 19 or newer
set(WEFT_STATIC AUTO CACHE STRING "archives of LLVM, BLAS and others in the products: AUTO, ON, OFF")
set(WEFT_DNNL "" CACHE PATH "oneDNN that goes into the wheel")

add_library(weft_outside INTERFACE)
add_library(weft_inside INTERFACE)
add_library(weft_data_inside INTERFACE)

# inside_or(TARGET NAME SHARED ARCHIVE...): the archives, or the shared library where one of them is missing.
function(inside_or target name shared)
  set(missing FALSE)
  foreach(archive IN LISTS ARGN)
    if(NOT EXISTS "${archive}")
      set(missing TRUE)
    endif()
  endforeach()
  if(WEFT_STATIC STREQUAL "OFF" OR missing OR NOT ARGN)
    if(WEFT_STATIC STREQUAL "ON")
      message(FATAL_ERROR "WEFT_STATIC=ON, and there is no archive of ${name} (${ARGN})")
    endif()
    message(STATUS "${name}: ${shared}")
    target_link_libraries(${target} INTERFACE ${shared})
  else()
    message(STATUS "${name}: inside")
    target_link_libraries(${target} INTERFACE ${ARGN})
  endif()
endfunction()

# The archive of one of the compiler's own libraries.
function(compiler_archive name out)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${name}.a OUTPUT_VARIABLE path
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${out} "${path}" PARENT_SCOPE) # its bare name when it is not there
endfunction()

# lib<name>.so as <NAME>_LIB, lib<name>.a as <NAME>_ARCHIVE.
function(outside_library name)
  string(TOUPPER ${name} var)
  find_library(${var}_LIB NAMES ${name} PATH_SUFFIXES ${ARGN})
  find_library(${var}_ARCHIVE NAMES lib${name}.a PATH_SUFFIXES ${ARGN})
  if(NOT ${var}_LIB)
    message(FATAL_ERROR "lib${name} is missing (tools/setup.sh build)")
  endif()
endfunction()

# ---- LLVM: its C interface ----------------------------------------------------------------------------------------------
find_program(LLVM_CONFIG NAMES llvm-config-19 llvm-config-20 llvm-config-21 llvm-config llvm-config-64
             PATHS /usr/lib/llvm-19/bin /usr/lib/llvm-20/bin /usr/lib/llvm-21/bin)
function(llvm_config out)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE said RESULT_VARIABLE failed)
  string(STRIP "${text}" text)
  if(failed)
    set(text "")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()
llvm_config(llvm_version --version)
string(REGEX MATCH "^[0-9]+" llvm_major "${llvm_version}")
if(NOT llvm_major OR llvm_major LESS 19)
  message(FATAL_ERROR "LLVM 19 or newer is needed; ${LLVM_CONFIG} is of '${llvm_version}' (-DLLVM_CONFIG=...)")
endif()
llvm_config(LLVM_C_DIR --includedir)
llvm_config(llvm_folder --libdir)
find_library(LLVM_LIB NAMES LLVM-${llvm_major} LLVM PATHS ${llvm_folder} NO_DEFAULT_PATH)
llvm_config(llvm_archives --link-static --libfiles native nativecodegen passes)
separate_arguments(llvm_archives)
find_library(ZSTD_ARCHIVE NAMES libzstd.a)
outside_library(z)
message(STATUS "LLVM ${llvm_version}")
inside_or(weft_inside LLVM "${LLVM_LIB}" ${llvm_archives} ${ZSTD_ARCHIVE} ${Z_ARCHIVE})

# ---- oneDNN, 2 or 3: loaded when it is first used ------------------------------------------------------------------------
set(dnnl_source src/dev/cpu/conv/dnnl.c)
if(WEFT_DNNL)
  find_path(DNNL_DIR dnnl.h PATHS ${WEFT_DNNL}/include NO_DEFAULT_PATH)
  file(GLOB DNNL_LIB ${WEFT_DNNL}/lib/libdnnl*.so.*)
  set_source_files_properties(${dnnl_source} PROPERTIES COMPILE_DEFINITIONS WEFT_DNNL_SERIAL)
else()
  find_path(DNNL_DIR dnnl.h)
  find_library(DNNL_LIB dnnl)
endif()
if(NOT DNNL_DIR OR NOT DNNL_LIB)
  message(FATAL_ERROR "oneDNN is missing (tools/setup.sh build)")
endif()
execute_process(COMMAND ${CMAKE_READELF} -d ${DNNL_LIB} OUTPUT_VARIABLE dnnl_dynamic ERROR_QUIET)
string(REGEX MATCH "libdnnl[-a-z]*\\.so[.0-9]*" dnnl_soname "${dnnl_dynamic}") # libdnnl.so.2, or .so.3.7 in Debian 13
set_property(SOURCE ${dnnl_source} APPEND PROPERTY COMPILE_DEFINITIONS "WEFT_DNNL_SONAME=\"${dnnl_soname}\"")
message(STATUS "oneDNN: ${dnnl_soname}, loaded when it is used")

# ---- BLAS with LAPACK: one thread a call, the pool divides the work (blas/blas.h) ------------------------------------------
outside_library(openblas openblas-pthread)
find_path(OPENBLAS_DIR cblas.h PATH_SUFFIXES x86_64-linux-gnu/openblas-pthread openblas-pthread openblas)
execute_process(COMMAND ${CMAKE_NM} -D ${OPENBLAS_LIB} OUTPUT_VARIABLE openblas_names ERROR_QUIET)
if(NOT openblas_names MATCHES " exec_blas")
  message(FATAL_ERROR "${OPENBLAS_LIB} is the serial build of OpenBLAS: calls from several threads at once give wrong numbers. "
                      "Install libopenblas-pthread-dev (tools/setup.sh build), and start from an empty build folder")
endif()
target_link_options(weft_inside INTERFACE -Wl,--wrap=blas_thread_init) # blas/blas.c
target_link_options(weft_inside INTERFACE -Wl,-u,_gfortran_concat_string) # blas/fortran.c
set(fortran_archives) # in case LAPACK calls more of them
foreach(name gfortran quadmath)
  compiler_archive(${name} archive)
  if(EXISTS "${archive}")
    list(APPEND fortran_archives ${archive})
  endif()
endforeach()
inside_or(weft_inside OpenBLAS "${OPENBLAS_LIB}" ${OPENBLAS_ARCHIVE} ${fortran_archives})

compiler_archive(stdc++ stdcxx_archive)
inside_or(weft_inside libstdc++ stdc++ ${stdcxx_archive})

# ---- data sets, checkpoints, XLA's messages: shared, since some of Debian's archives are not for shared libraries ---------------
foreach(name lzma jpeg cjson protobuf-c utf8proc)
  string(TOUPPER ${name} var)
  outside_library(${name})
endforeach()
inside_or(weft_data_inside zlib "${Z_LIB}" ${Z_ARCHIVE})
inside_or(weft_data_inside LZMA "${LZMA_LIB}" ${LZMA_ARCHIVE})
target_link_libraries(weft_data_inside INTERFACE ${JPEG_LIB} ${CJSON_LIB} ${UTF8PROC_LIB} ${PROTOBUF-C_LIB})

target_link_libraries(weft_inside INTERFACE weft_data_inside Threads::Threads dl m)
target_link_libraries(weft_outside INTERFACE ${PROTOBUF-C_LIB} ${LLVM_LIB} ${OPENBLAS_LIB} ${LZMA_LIB} ${JPEG_LIB} ${CJSON_LIB} ${UTF8PROC_LIB} ${Z_LIB}
                      Threads::Threads dl m)

# ---- older systems ---------------------------------------------------------------------------------------------------------
# WEFT_OLD_GLIBC=ON: what is built on a newer glibc runs from 2.27 on (the wheel; x86-64 only).
option(WEFT_OLD_GLIBC "products run on glibc 2.27, whatever is here" OFF)
if(WEFT_OLD_GLIBC)
  add_library(weft_old_glibc OBJECT cmake/old_glibc.c)
  file(STRINGS cmake/old_glibc.c old_names REGEX "^OLD\\(")
  list(TRANSFORM old_names REPLACE "^OLD\\(([a-z_0-9]+),.*" "-Wl,--wrap=\\1")
  find_library(OLD_PTHREAD NAMES libpthread.so.0 REQUIRED)
  find_library(OLD_DL NAMES libdl.so.2 REQUIRED)
endif()
function(for_old_glibc target)
  if(WEFT_OLD_GLIBC)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:weft_old_glibc>)
    target_link_options(${target} PRIVATE ${old_names} -Wl,--push-state,--no-as-needed ${OLD_PTHREAD} ${OLD_DL} -Wl,--pop-state)
  endif()
endfunction()

# hide_names(TARGET MAP): a product shows the names in cmake/MAP and no others.
function(hide_names target map)
  set(map ${CMAKE_SOURCE_DIR}/cmake/${map})
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,--exclude-libs,ALL -Wl,--gc-sections
                      -Wl,--as-needed -Wl,--build-id)
  if(NOT WEFT_SANITIZE) # whose functions are the program's
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
  for_old_glibc(${target})
endfunction()
