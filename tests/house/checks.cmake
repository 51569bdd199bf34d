add_test(NAME house_include_edges COMMAND ${SHARDPACK_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/house/include_edges.py ${PROJECT_SOURCE_DIR})
