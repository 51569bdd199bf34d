# The bytes of outputs, pinned: every compiler and build type gives them (architecture rule 6).
if(TARGET shardpack_tool)
  add_test(NAME golden_same_bytes COMMAND ${SHARDPACK_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/golden/same_bytes.py
    ${PROJECT_SOURCE_DIR}/data/generate.py ${CMAKE_CURRENT_SOURCE_DIR}/golden/outputs.txt $<TARGET_FILE:shardpack_tool>)
endif()
