# hangscope_add_simulation(), and the cache options that switch its recording on: docs/cmake.md.

cmake_policy(PUSH)
cmake_policy(VERSION 3.18)

option(HANGSCOPE_RING_TRACE "Run simulations under hangscope" OFF)
set(HANGSCOPE_RING_TRACE_SIZE 500M CACHE STRING "Bytes of disk for a simulation's ring, before _KEEP multiplies them")
set(HANGSCOPE_RING_TRACE_KEEP 3 CACHE STRING "How many times HANGSCOPE_RING_TRACE_SIZE a simulation's ring takes")

# hangscope_add_simulation(NAME name COMMAND program [argument...]
#   [ELF file|target] [TRACE_STREAM stream] [WORKING_DIRECTORY folder] [DEPENDS dependency...]
#   [STALL time] [ON_HANG what] [SIZE size] [KEEP number] [PREFIX path] [OPTIONS option...]
#   [COMMENT text] [ARGS argument...])
#
# Adds a target that runs the command: as it is, or under `hangscope run` if HANGSCOPE_RING_TRACE is on.
#
# Words become source text of CMake as soon as they are read, for cmake_parse_arguments and lists lose
# empty words and join what lies between brackets.
function(hangscope_add_simulation)
  set(keywords NAME COMMAND ELF TRACE_STREAM WORKING_DIRECTORY DEPENDS STALL ON_HANG SIZE KEEP PREFIX
               OPTIONS COMMENT ARGS)
  foreach(keyword IN LISTS keywords)
    set(arg_${keyword} "")
  endforeach()
  set(keyword "")
  set(i 0)
  while(i LESS ARGC)
    set(word "${ARGV${i}}")
    math(EXPR i "${i} + 1")
    if(NOT keyword STREQUAL "ARGS" AND word IN_LIST keywords)
      set(keyword "${word}")
    elseif(keyword STREQUAL "COMMAND" AND arg_COMMAND STREQUAL "")
      set(arg_COMMAND "${word}")
    elseif(keyword MATCHES "^(COMMAND|ARGS)$")
      _hangscope_append_argument(arg_ARGS "${word}")
    elseif(keyword MATCHES "^(DEPENDS|OPTIONS)$")
      _hangscope_append_quoted(arg_${keyword} "${word}")
    elseif(keyword STREQUAL "" OR NOT arg_${keyword} STREQUAL "")
      message(FATAL_ERROR "hangscope_add_simulation: unexpected argument '${word}'")
    else()
      set(arg_${keyword} "${word}")
    endif()
  endwhile()
  if(arg_NAME STREQUAL "" OR arg_COMMAND STREQUAL "")
    message(FATAL_ERROR "hangscope_add_simulation needs NAME and COMMAND, for example "
                        "hangscope_add_simulation(NAME simulate COMMAND qemu-system-riscv32 -kernel fw.elf)")
  endif()

  # The ELF is built first if it is a target, recorded or not.
  if(TARGET "${arg_ELF}")
    _hangscope_append_quoted(arg_DEPENDS "${arg_ELF}")
    set(arg_ELF "$<TARGET_FILE:${arg_ELF}>")
  endif()
  set(command "")
  if(HANGSCOPE_RING_TRACE)
    _hangscope_append_recorder(command)
    _hangscope_append_program(command "${arg_COMMAND}")
  else()
    _hangscope_append_quoted(command "${arg_COMMAND}")
  endif()
  _hangscope_add_target("${command}${arg_ARGS}")
endfunction()

# Appends words to a variable, as source text that stands for exactly them.
function(_hangscope_append_quoted variable)
  set(text "${${variable}}")
  math(EXPR last "${ARGC} - 1")
  foreach(i RANGE 1 ${last})
    set(level =)
    string(FIND "${ARGV${i}}" "]${level}" found)
    while(NOT found EQUAL -1)
      string(APPEND level =)
      string(FIND "${ARGV${i}}" "]${level}" found)
    endwhile()
    string(APPEND text " [${level}[\n${ARGV${i}}]${level}]") # That first newline does not count.
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# An argument of the command that add_custom_target would take for a keyword of its own is hidden in a
# generator expression.
function(_hangscope_append_argument code word)
  if(word MATCHES "\n")
    message(FATAL_ERROR "hangscope_add_simulation: an argument with a newline in it reaches no command: '${word}'")
  endif()
  set(foreign_keywords ARGS BYPRODUCTS COMMAND COMMAND_EXPAND_LISTS COMMENT DEPENDS JOB_POOL
                       JOB_SERVER_AWARE SOURCES USES_TERMINAL VERBATIM WORKING_DIRECTORY)
  if(word IN_LIST foreign_keywords)
    set(word "$<1:${word}>")
  endif()
  _hangscope_append_quoted(${code} "${word}")
  set(${code} "${${code}}" PARENT_SCOPE)
endfunction()

# Like CMake does for the first word of a COMMAND: the file of an executable target, behind its
# emulator if it needs one.
function(_hangscope_append_program code program)
  set(type "")
  if(TARGET "${program}")
    get_target_property(type "${program}" TYPE)
  endif()
  if(type STREQUAL "EXECUTABLE")
    get_target_property(emulator "${program}" CROSSCOMPILING_EMULATOR)
    get_target_property(imported "${program}" IMPORTED)
    if(emulator AND CMAKE_CROSSCOMPILING AND NOT imported)
      _hangscope_append_quoted(${code} ${emulator})
    endif()
    set(program "$<TARGET_FILE:${program}>")
  endif()
  _hangscope_append_quoted(${code} "${program}")
  set(${code} "${${code}}" PARENT_SCOPE)
endfunction()

# `hangscope run` with its options, from the caller's arg_*.
function(_hangscope_append_recorder code)
  if(NOT TARGET hangscope::hangscope)
    message(FATAL_ERROR "hangscope_add_simulation(NAME ${arg_NAME}): there is no target hangscope::hangscope "
                        "in this folder; call find_package(hangscope) here or above")
  endif()
  foreach(keyword IN ITEMS SIZE KEEP)
    if(arg_${keyword} STREQUAL "")
      set(arg_${keyword} "${HANGSCOPE_RING_TRACE_${keyword}}")
    endif()
  endforeach()
  if(arg_PREFIX STREQUAL "")
    set(arg_PREFIX "trace/${arg_NAME}")
  endif()
  if(NOT arg_PREFIX MATCHES "^(/|\\$<)")
    set(arg_PREFIX "${CMAKE_CURRENT_BINARY_DIR}/${arg_PREFIX}")
  endif()
  _hangscope_append_quoted(${code} "$<TARGET_FILE:hangscope::hangscope>" run)
  set(option_TRACE_STREAM --capture)
  foreach(keyword IN ITEMS PREFIX SIZE KEEP TRACE_STREAM ELF STALL ON_HANG)
    if(NOT DEFINED option_${keyword})
      string(TOLOWER "--${keyword}" option_${keyword})
      string(REPLACE _ - option_${keyword} "${option_${keyword}}")
    endif()
    if(NOT arg_${keyword} STREQUAL "")
      _hangscope_append_quoted(${code} ${option_${keyword}} "${arg_${keyword}}")
    endif()
  endforeach()
  string(APPEND ${code} "${arg_OPTIONS}")
  _hangscope_append_quoted(${code} --)
  set(${code} "${${code}}" PARENT_SCOPE)
endfunction()

# Adds the target that runs the quoted words of `command`; the rest is from the caller's arg_*.
function(_hangscope_add_target command)
  set(code "add_custom_target(")
  _hangscope_append_quoted(code "${arg_NAME}")
  string(APPEND code " COMMAND${command}")
  if(NOT arg_DEPENDS STREQUAL "")
    string(APPEND code " DEPENDS${arg_DEPENDS}")
  endif()
  foreach(keyword IN ITEMS WORKING_DIRECTORY COMMENT)
    if(NOT arg_${keyword} STREQUAL "")
      string(APPEND code " ${keyword}")
      _hangscope_append_quoted(code "${arg_${keyword}}")
    endif()
  endforeach()
  # The terminal: without it Ninja holds the output back until the end, and nothing can be typed.
  cmake_language(EVAL CODE "${code} VERBATIM USES_TERMINAL)")
endfunction()

cmake_policy(POP)
