# Of the project itself: layers, generated data, the bundled sample, the installed package, what the documents show.
set(house ${CMAKE_CURRENT_SOURCE_DIR}/house)
add_test(NAME house_include_edges COMMAND ${SHARDPACK_PYTHON} ${house}/include_edges.py ${PROJECT_SOURCE_DIR})
add_test(NAME house_generate COMMAND ${SHARDPACK_PYTHON} ${house}/generate_test.py ${PROJECT_SOURCE_DIR}/data/generate.py)
add_test(NAME house_sample COMMAND ${SHARDPACK_PYTHON} ${PROJECT_SOURCE_DIR}/data/make_sample.py --check)
