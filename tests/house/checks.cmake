# Of the project itself: layers, generated data, the bundled sample, the installed package, what the documents show.
set(house ${CMAKE_CURRENT_SOURCE_DIR}/house)
add_test(NAME house_include_edges COMMAND ${SHARDPACK_PYTHON} ${house}/include_edges.py ${PROJECT_SOURCE_DIR})
add_test(NAME house_std_includes COMMAND ${SHARDPACK_PYTHON} ${house}/std_includes.py ${PROJECT_SOURCE_DIR})
add_test(NAME house_cases COMMAND ${SHARDPACK_PYTHON} ${house}/cases_test.py ${PROJECT_SOURCE_DIR})
add_test(NAME house_generate COMMAND ${SHARDPACK_PYTHON} ${house}/generate_test.py ${PROJECT_SOURCE_DIR}/data/generate.py)
add_test(NAME house_sample COMMAND ${SHARDPACK_PYTHON} ${PROJECT_SOURCE_DIR}/data/make_sample.py --check)
if(TARGET shardpack_tool)
  add_test(NAME house_consumer COMMAND ${SHARDPACK_PYTHON} ${house}/consumer_test.py ${PROJECT_BINARY_DIR}
    ${CMAKE_CURRENT_SOURCE_DIR}/consumer ${CMAKE_CXX_COMPILER} "${CMAKE_CXX_FLAGS}")
  foreach(document README.md docs/batching.md docs/cli.md docs/cluster.md docs/crash-safety.md docs/ltd.md docs/formats.md docs/design.md docs/CONTRIBUTING.md)
    string(MAKE_C_IDENTIFIER ${document} name)
    add_test(NAME house_shown_in_${name} COMMAND ${SHARDPACK_PYTHON} ${house}/readme_test.py ${PROJECT_SOURCE_DIR}/${document}
      $<TARGET_FILE_DIR:shardpack_tool> ${PROJECT_SOURCE_DIR})
  endforeach()
endif()
