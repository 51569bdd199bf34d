# The tool as a user meets it: scripts with their expected output, and a terminal.
add_test(NAME cli_cases COMMAND ${SHARDPACK_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/run.py --tool $<TARGET_FILE:shardpack_tool>)
add_test(NAME cli_terminal COMMAND ${SHARDPACK_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/pty_test.py $<TARGET_FILE:shardpack_tool>)
set_tests_properties(cli_terminal PROPERTIES RUN_SERIAL TRUE SKIP_RETURN_CODE 77)  # it looks at the clock
