# Whole runs in which one system call fails, or the process or the machine ends. The tool's own system calls are not linked: those of
# this folder are in their place. Files in memory where there is such a place: it is about order, not about disks.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/faults/*.cpp)
shardpack_code_test(faults test_faults ${sources})
if(EXISTS /dev/shm)
  set_tests_properties(faults PROPERTIES ENVIRONMENT TMPDIR=/dev/shm)
endif()
if(TARGET shardpack_tool)
  add_test(NAME faults_real COMMAND ${SHARDPACK_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/faults/real_faults.py
    $<TARGET_FILE:shardpack_tool> ${PROJECT_SOURCE_DIR}/data/generate.py --kills 10)
endif()
