# hangscope_gtest(PROGRAM TIMEOUT): one ctest for each suite of a program of GoogleTest's. One for each case would
# start a process for each, which takes the sanitizers longer than most cases do. What became of each case is in the
# build folder, in gtest/PROGRAM.SUITE.xml, where scripts/count-tests reads it.
#
# A case with a process of its own by hand: PROGRAM --gtest_filter=SUITE.CASE
set(hangscope_list_suites ${CMAKE_CURRENT_LIST_DIR}/list_suites.py)

function(hangscope_gtest PROGRAM TIMEOUT)
  if(CMAKE_CROSSCOMPILING)  # it cannot be asked here (arm64/run asks it in its root)
    return()
  endif()
  set(listed ${CMAKE_CURRENT_BINARY_DIR}/${PROGRAM}_suites.cmake)
  add_custom_command(TARGET ${PROGRAM} POST_BUILD
    COMMAND ${Python3_EXECUTABLE} ${hangscope_list_suites} $<TARGET_FILE:${PROGRAM}> ${PROGRAM} ${TIMEOUT}
            ${PROJECT_BINARY_DIR}/gtest ${listed}
    BYPRODUCTS ${listed} VERBATIM)
  # As long as it is not built, ctest says so by this name.
  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/${PROGRAM}_include.cmake)
  file(WRITE ${include_file} "if(EXISTS \"${listed}\")\n  include(\"${listed}\")\nelse()\n"
                             "  add_test(${PROGRAM}_NOT_BUILT ${PROGRAM}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()
