# The manual pages and the completions for shells, as the command prints them, beside each hangscope that is built: in the
# folder that its property HANGSCOPE_MANUAL names. Not under sanitizers; compiled for another machine it takes
# CMAKE_CROSSCOMPILING_EMULATOR.
set(manual ${PROJECT_BINARY_DIR}/manual)
find_program(HANGSCOPE_GZIP gzip)
mark_as_advanced(HANGSCOPE_GZIP)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(manual "")
elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "No manual pages and no completions: hangscope prints them, and nothing here runs it "
                 "(CMAKE_CROSSCOMPILING_EMULATOR)")
  set(manual "")
elseif(NOT HANGSCOPE_GZIP)
  message(STATUS "No manual pages and no completions: there is no gzip")
  set(manual "")
endif()

if(manual)
  # A step of the executable, not a target of its own: where that is built alone it can be installed all the same.
  add_custom_command(TARGET hangscope POST_BUILD
    COMMAND ${CMAKE_COMMAND} "-DHANGSCOPE=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:hangscope>"
            -DGZIP=${HANGSCOPE_GZIP} -DFOLDER=${manual} -P ${PROJECT_SOURCE_DIR}/cmake/write_manual.cmake
    COMMENT "Writing the manual pages and completions" VERBATIM)
endif()
set_target_properties(hangscope PROPERTIES HANGSCOPE_MANUAL "${manual}")
