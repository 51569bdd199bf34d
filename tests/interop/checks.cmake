# Against other software's readers and writers.
set(interop ${CMAKE_CURRENT_SOURCE_DIR}/interop)
add_executable(interop_read_shards ${interop}/read_shards.cpp)
target_include_directories(interop_read_shards PRIVATE ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(interop_read_shards PRIVATE shardpack)
add_test(NAME interop_read COMMAND ${SHARDPACK_PYTHON} ${interop}/read_test.py $<TARGET_FILE:interop_read_shards>)
