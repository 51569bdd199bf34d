# cmake --install: the tool, the headers, the static libraries, a CMake package for find_package(shardpack), and the libraries of a
# pyarrow wheel in a folder of their own, where no other program finds them.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/shardpack)
set(arrow_folder ${CMAKE_INSTALL_LIBDIR}/shardpack)
set(arrow_library_names "")
if(SHARDPACK_ARROW_LIBRARIES)
  install(FILES ${SHARDPACK_ARROW_LIBRARIES} DESTINATION ${arrow_folder})
  file(RELATIVE_PATH from_tool /${CMAKE_INSTALL_BINDIR} /${arrow_folder})
  set_target_properties(shardpack_tool PROPERTIES INSTALL_RPATH "$ORIGIN/${from_tool}")
  foreach(library ${SHARDPACK_ARROW_LIBRARIES})
    cmake_path(GET library FILENAME name)
    list(APPEND arrow_library_names ${name})
  endforeach()
endif()

install(TARGETS shardpack_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS shardpack shardpack_base shardpack_core shardpack_exec shardpack_io shardpack_jobs shardpack_report
  EXPORT shardpackTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/shardpack DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/generated/shardpack/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardpack)

install(EXPORT shardpackTargets NAMESPACE shardpack:: DESTINATION ${package_folder})
configure_package_config_file(cmake/shardpackConfig.cmake.in ${PROJECT_BINARY_DIR}/shardpackConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS arrow_folder)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardpackConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardpackConfig.cmake ${PROJECT_BINARY_DIR}/shardpackConfigVersion.cmake
  cmake/find-clp.cmake cmake/find-zstd.cmake DESTINATION ${package_folder})
