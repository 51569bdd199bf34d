# Whole runs in which one system call fails, or the process or the machine ends. The tool's own system calls are not linked: those of
# this folder are in their place.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/faults/*.cpp)
shardpack_code_test(faults test_faults ${sources})
