# Against other software's readers and writers.
set(interop ${CMAKE_CURRENT_SOURCE_DIR}/interop)
foreach(source read_shards write_packed_sample)
  add_executable(interop_${source} ${interop}/${source}.cpp)
  target_include_directories(interop_${source} PRIVATE ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(interop_${source} PRIVATE shardpack)
endforeach()
add_test(NAME interop_read COMMAND ${SHARDPACK_PYTHON} ${interop}/read_test.py $<TARGET_FILE:interop_read_shards>)
set(sample ${CMAKE_CURRENT_BINARY_DIR}/interop_sample)
add_test(NAME interop_native_layout COMMAND ${SHARDPACK_PYTHON} ${interop}/native_layout.py
  --write-with $<TARGET_FILE:interop_write_packed_sample> ${sample} ${sample}.tokens)
add_test(NAME interop_masks COMMAND ${SHARDPACK_PYTHON} ${interop}/verify_oracle_test.py $<TARGET_FILE:shardpack_tool>)
set_tests_properties(interop_masks PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME interop_certificate COMMAND ${SHARDPACK_PYTHON} ${interop}/certificate_test.py $<TARGET_FILE:shardpack_tool>)

# What docs/formats.md shows as a reader of pack --as index.
add_test(NAME interop_index COMMAND ${SHARDPACK_PYTHON} ${interop}/index_test.py $<TARGET_FILE:shardpack_tool>
  ${PROJECT_SOURCE_DIR}/data/generate.py ${PROJECT_SOURCE_DIR}/docs/formats.md)
set_tests_properties(interop_index PROPERTIES SKIP_RETURN_CODE 77)

add_test(NAME interop_columns COMMAND ${SHARDPACK_PYTHON} ${interop}/columns_test.py $<TARGET_FILE:shardpack_tool>)

# The whole tool from outside: a ctest entry for each case, so that they run side by side.
foreach(case formats_agree units_stay_together groups_never_mix threads_change_nothing listing_changes_nothing content_is_kept faults_are_found truncation_is_refused
    tails_add_up short_rows_hold)
  add_test(NAME interop_pack_${case} COMMAND ${SHARDPACK_PYTHON} ${interop}/pack_test.py $<TARGET_FILE:shardpack_tool>
    ${PROJECT_SOURCE_DIR}/data/generate.py ${case})
  set_tests_properties(interop_pack_${case} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()

# What trainers read: with the pyarrow that the tool was built with.
set(python_of_arrow ${SHARDPACK_PYTHON})
if(SHARDPACK_ARROW_FROM STREQUAL "wheel")
  set(python_of_arrow ${SHARDPACK_ARROW_PYTHON})
endif()
foreach(case each_preset options_that_change_rows carried_columns nothing_to_pack damage_is_found megatron_rows bridge_rows interrupted_runs_go_on)
  add_test(NAME interop_presets_${case} COMMAND ${python_of_arrow} ${interop}/presets_test.py $<TARGET_FILE:shardpack_tool> ${case})
  set_tests_properties(interop_presets_${case} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()

# And back: what was changed in it is found, and the sources come out.
add_executable(interop_restate_manifest ${interop}/restate_manifest.cpp)
target_link_libraries(interop_restate_manifest PRIVATE test_main)
foreach(case tampering_hf tampering_mlm tampering_trl tampering_llamafactory tampering_axolotl tampering_torchtune tampering_maxtext
    tampering_bridge tampering_megatron sources_come_back policies_are_undone rows_are_shown)
  add_test(NAME interop_presets_${case} COMMAND ${python_of_arrow} ${interop}/presets_back_test.py $<TARGET_FILE:shardpack_tool>
    $<TARGET_FILE:interop_restate_manifest> ${case})
  set_tests_properties(interop_presets_${case} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()

# What users of packed data have hit elsewhere: tests/cases.md.
add_test(NAME interop_cases COMMAND ${python_of_arrow} ${interop}/cases_test.py $<TARGET_FILE:shardpack_tool>)

foreach(case fields cuts native formats_agree arrays weights partners refusals)
  add_test(NAME interop_bert_${case} COMMAND ${python_of_arrow} ${interop}/bert_test.py $<TARGET_FILE:shardpack_tool> ${case})
  set_tests_properties(interop_bert_${case} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()

add_test(NAME interop_sweep COMMAND ${SHARDPACK_PYTHON} ${interop}/sweep_test.py $<TARGET_FILE:shardpack_tool>
  ${PROJECT_SOURCE_DIR}/data/generate.py)
set_tests_properties(interop_sweep PROPERTIES SKIP_RETURN_CODE 77)

# Ports of the random-LTD selection, as docs/ltd.md shows them.
add_executable(interop_ltd_select ${interop}/ltd_select.cpp)
target_link_libraries(interop_ltd_select PRIVATE shardpack)
add_test(NAME interop_ltd_port COMMAND ${SHARDPACK_PYTHON} ${interop}/ltd_port_test.py numpy ${PROJECT_SOURCE_DIR}/docs/ltd.md
  $<TARGET_FILE:interop_ltd_select>)
foreach(case toy plans windows packed_rows refusals)
  add_test(NAME interop_ltd_batches_${case} COMMAND ${SHARDPACK_PYTHON} ${interop}/ltd_batches_test.py $<TARGET_FILE:shardpack_tool>
    ${PROJECT_SOURCE_DIR}/docs/ltd.md numpy ${case})
endforeach()
foreach(case strategies threads_change_nothing long_sequences few_sequences shards_and_rows labels write_shards same_shards shard_faults outputs_are_whole)
  add_test(NAME interop_batch_${case} COMMAND ${SHARDPACK_PYTHON} ${interop}/batch_test.py $<TARGET_FILE:shardpack_tool> ${case})
endforeach()

# Arrow and Parquet, with the pyarrow of the build's own virtual environment.
if(NOT SHARDPACK_ARROW_FROM STREQUAL "none")
  set(arrow_python ${SHARDPACK_PYTHON})
  if(EXISTS ${SHARDPACK_ARROW_PYTHON})
    set(arrow_python ${SHARDPACK_ARROW_PYTHON})
  endif()
  foreach(case layouts slices codecs masks nulls_and_groups carried_columns datasets indices_tables indices_of_bad_rows faults
      truncated)
    add_test(NAME interop_arrow_${case} COMMAND ${arrow_python} ${interop}/arrow_test.py $<TARGET_FILE:shardpack_tool> ${case})
    set_tests_properties(interop_arrow_${case} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endif()
