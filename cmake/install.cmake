# cmake --install: the tool, the headers, the static libraries, and a CMake package for find_package(shardpack).
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/shardpack)

install(TARGETS shardpack_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS shardpack shardpack_base shardpack_core shardpack_exec shardpack_io shardpack_jobs shardpack_report
  EXPORT shardpackTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/shardpack DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/generated/shardpack/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardpack)

install(EXPORT shardpackTargets NAMESPACE shardpack:: DESTINATION ${package_folder})
configure_package_config_file(cmake/shardpackConfig.cmake.in ${PROJECT_BINARY_DIR}/shardpackConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardpackConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardpackConfig.cmake ${PROJECT_BINARY_DIR}/shardpackConfigVersion.cmake
  cmake/find-clp.cmake cmake/find-zstd.cmake DESTINATION ${package_folder})
