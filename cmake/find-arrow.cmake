# The target shardpack_arrow: Apache Arrow C++ with Parquet, or nothing behind it. Sets SHARDPACK_ARROW_FROM to `system`, `wheel` or
# `none`, and Arrow_VERSION. SHARDPACK_ARROW says what is wanted: AUTO (take what is there), ON (an error when nothing is), OFF.
# The wheel's libparquet exports a simdjson of its own, of another version, so it has to come after ours on every link line: programs
# link these libraries through shardpack_io, and take no more than SHARDPACK_ARROW_HEADERS from here.
# `wheel`: Python's pyarrow carries both libraries with their headers; ./dev puts it into build/arrow-venv.
set(SHARDPACK_ARROW AUTO CACHE STRING "Apache Arrow and Parquet: AUTO, ON or OFF")
set_property(CACHE SHARDPACK_ARROW PROPERTY STRINGS AUTO ON OFF)
set(SHARDPACK_ARROW_PYTHON ${PROJECT_SOURCE_DIR}/build/arrow-venv/bin/python
  CACHE FILEPATH "Python whose pyarrow is used where there is no Arrow C++ package")
if(EXISTS ${PROJECT_SOURCE_DIR}/build/arrow-venv.log)  # written anew when ./dev tries again
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/build/arrow-venv.log)
endif()
set(shardpack_arrow_oldest 24)  # the first whose Parquet reader returns results

add_library(shardpack_arrow INTERFACE IMPORTED)
set(SHARDPACK_ARROW_FROM none)
set(SHARDPACK_ARROW_LIBRARIES "")  # files that an installation takes along
if(NOT SHARDPACK_ARROW STREQUAL "OFF")
  find_package(Arrow CONFIG QUIET)
  find_package(Parquet CONFIG QUIET)
  if(TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared AND Arrow_VERSION VERSION_GREATER_EQUAL shardpack_arrow_oldest)
    set(SHARDPACK_ARROW_FROM system)
    target_link_libraries(shardpack_arrow INTERFACE Parquet::parquet_shared Arrow::arrow_shared)
    get_target_property(SHARDPACK_ARROW_HEADERS Arrow::arrow_shared INTERFACE_INCLUDE_DIRECTORIES)
  else()
    execute_process(COMMAND ${SHARDPACK_ARROW_PYTHON} -c
      "import os, pyarrow as p; print(p.__version__, os.path.dirname(p.__file__), p.get_include(), sep=';')"
      RESULT_VARIABLE failed OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(failed STREQUAL "0")
      list(GET answer 0 Arrow_VERSION)
      list(GET answer 1 folder)
      list(GET answer 2 headers)
      file(GLOB files ${folder}/libparquet.so.* ${folder}/libarrow.so.*)
      list(FILTER files INCLUDE REGEX "\\.so\\.[0-9]+$")  # the names that the libraries call themselves
      list(LENGTH files count)
      if(count EQUAL 2 AND Arrow_VERSION VERSION_GREATER_EQUAL shardpack_arrow_oldest)
        set(SHARDPACK_ARROW_FROM wheel)
        set(SHARDPACK_ARROW_LIBRARIES ${files})
        set(SHARDPACK_ARROW_HEADERS ${headers})
        target_link_libraries(shardpack_arrow INTERFACE ${files})
        target_include_directories(shardpack_arrow SYSTEM INTERFACE ${headers})
      endif()
    endif()
  endif()
endif()

if(SHARDPACK_ARROW_FROM STREQUAL "none")
  set(Arrow_VERSION none)
  if(SHARDPACK_ARROW STREQUAL "ON")
    message(FATAL_ERROR "SHARDPACK_ARROW is ON, but there is neither an Arrow and Parquet C++ package (${shardpack_arrow_oldest} or "
      "newer) nor a pyarrow in ${SHARDPACK_ARROW_PYTHON}; ./dev build makes the latter")
  endif()
endif()
message(STATUS "Arrow and Parquet: ${SHARDPACK_ARROW_FROM} ${Arrow_VERSION}")
