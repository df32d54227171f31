# hangscope_harden(): for the targets of this folder, what Debian's packages are built with, too: guarded stacks, checked
# copies, addresses that nobody can guess or write over. Not under sanitizers, which check more.
option(HANGSCOPE_HARDEN "Build with guarded stacks, checked copies, full RELRO and as PIE" ON)

function(hangscope_harden)
  if(NOT HANGSCOPE_HARDEN OR CMAKE_BUILD_TYPE STREQUAL "Debug" OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    return()
  endif()
  add_compile_options(-fPIE -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i.86")
    add_compile_options(-fcf-protection)
  endif()
  add_link_options(-pie -Wl,-z,relro -Wl,-z,now)
endfunction()
