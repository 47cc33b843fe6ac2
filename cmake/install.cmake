# Installing. The wheel holds the same in Python's package: weft/libpjrt_weft.so, weft/bin, weft/lib, weft/include.
#
#   LIBDIR/weft/libpjrt_weft.so   the engine: PJRT plugin and command
#   BINDIR/weft                   starts the command
#   LIBDIR/libweft.so             include/weft.h for C programs, found by pkg-config and by find_package(weft)
include(CMakePackageConfigHelpers)

# weft.pc finds its prefix from where it lies, so that a tree can be moved.
function(write_pc libdir)
  string(REGEX REPLACE "[^/]+" ".." up ${libdir}/pkgconfig)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/weft.pc @ONLY CONTENT "prefix=\${pcfiledir}/${up}
libdir=\${prefix}/${libdir}
includedir=\${prefix}/include

Name: weft
Description: PJRT client and trainer in C
Version: ${PROJECT_VERSION}
Libs: -L\${libdir} -lweft
Cflags: -I\${includedir}
")
endfunction()

# ---- what `make install` and the wheel build ----------------------------------------------------------------------------------------
add_custom_target(products)
foreach(product pjrt_weft weft_bin weft)
  if(TARGET ${product})
    add_dependencies(products ${product})
  endif()
endforeach()

if(SKBUILD)
  write_pc(lib)
  set_target_properties(pjrt_weft PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS pjrt_weft LIBRARY DESTINATION weft)
  install(TARGETS weft_bin RUNTIME DESTINATION weft/bin)
  install(TARGETS weft LIBRARY DESTINATION weft/lib)
  install(FILES include/weft.h DESTINATION weft/include)
  install(FILES ${CMAKE_BINARY_DIR}/gen/weft.pc DESTINATION weft/lib/pkgconfig)
  install(FILES python/weft_hook.pth DESTINATION .) # WEFT_DEVICE turns TensorFlow's programs to weft (python/weft/hook.py)
  if(WEFT_DNNL)
    file(GLOB dnnl_libraries ${WEFT_DNNL}/lib/*.so.*) # with the OpenMP it asks for
    install(FILES ${dnnl_libraries} DESTINATION weft)
  endif()
  if(WEFT_LICENSES) # of what is inside
    install(DIRECTORY ${WEFT_LICENSES} DESTINATION weft)
  endif()
  return()
endif()

if(TARGET weft_bin AND TARGET pjrt_weft)
  # Manual pages are what the verbs answer to --help. The stamp stands for all of them.
  add_custom_command(OUTPUT man/stamp COMMAND ${CMAKE_COMMAND} -DWEFT=$<TARGET_FILE:weft_bin> -DVERSION=${PROJECT_VERSION}
                     -DOUT=${CMAKE_BINARY_DIR}/man -P ${CMAKE_SOURCE_DIR}/cmake/man.cmake
                     DEPENDS weft_bin pjrt_weft cmake/man.cmake)
  add_custom_target(man ALL DEPENDS man/stamp)
  add_dependencies(products man)
endif()

# ---- and installs ----------------------------------------------------------------------------------------------------------
if(TARGET pjrt_weft)
  install(TARGETS pjrt_weft LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft)
endif()
if(TARGET weft_bin)
  install(TARGETS weft_bin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET man)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
endif()
if(TARGET weft)
  write_pc(${CMAKE_INSTALL_LIBDIR})
  target_include_directories(weft INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS weft EXPORT weft LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES include/weft.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${CMAKE_BINARY_DIR}/gen/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
  install(EXPORT weft NAMESPACE weft:: FILE weftConfig.cmake DESTINATION ${config_folder})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/gen/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/gen/weftConfigVersion.cmake DESTINATION ${config_folder})
endif()
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
