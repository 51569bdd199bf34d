# The committed table of packing quality, and the published row counts where their histograms are at hand.
add_executable(quality_table ${PROJECT_SOURCE_DIR}/bench/quality/quality_table.cpp ${PROJECT_SOURCE_DIR}/bench/quality/histograms.cpp)
target_include_directories(quality_table PRIVATE ${PROJECT_SOURCE_DIR}/bench ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(quality_table PRIVATE SHARDPACK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_link_libraries(quality_table PRIVATE shardpack::core fmt::fmt)

foreach(part generated published)
  add_test(NAME quality_${part} COMMAND quality_table ${PROJECT_SOURCE_DIR}/bench/quality/results.csv --check ${part})
  set_tests_properties(quality_${part} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
add_test(NAME published_rows COMMAND test_core "[published]")
set_tests_properties(published_rows PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: no shared data")
