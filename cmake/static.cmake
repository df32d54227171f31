# HANGSCOPE_STATIC: the command has all libraries in itself, the C library included, and starts on any Linux of its machine.
# Where Debian has no static library, hangscope does without: libipt (--version -v says so).
option(HANGSCOPE_STATIC "Link the command statically" OFF)
set(HANGSCOPE_FMT fmt::fmt)
if(HANGSCOPE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(PKG_CONFIG_ARGN --static)  # and what the libraries need
  set(HANGSCOPE_FMT fmt::fmt-header-only)
endif()
