# The versions of everything linked, for `shardpack version`: as the packages say, xxHash (which has none) from its header.
file(STRINGS ${XXHASH_INCLUDE_DIR}/xxhash.h lines REGEX "^ *# *define XXH_VERSION_(MAJOR|MINOR|RELEASE) +[0-9]+")
string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
list(JOIN numbers "." xxHash_VERSION)

set(ZLIB_VERSION ${ZLIB_VERSION_STRING})  # the name that FindZLIB has always set
if(NOT zstd_VERSION)
  set(zstd_VERSION ${shardpack_libzstd_VERSION})  # found by pkg-config
endif()

set(SHARDPACK_LINKED_VERSIONS "")
foreach(library Arrow CLI11 Clp Eigen3 fmt nlohmann_json simdjson spdlog xxHash ZLIB zstd)
  string(APPEND SHARDPACK_LINKED_VERSIONS "    {\"${library}\", \"${${library}_VERSION}\"},\n")
endforeach()
configure_file(src/cli/linked_versions.h.in ${PROJECT_BINARY_DIR}/generated/cli/linked_versions.h @ONLY)
