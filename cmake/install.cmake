# What `cmake --install` installs: the executable, its CMake package and pkg-config file, the headers,
# the documentation. Both packages find the executable relative to themselves, so that what was
# installed can be moved as a whole, and DESTDIR and --prefix work.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# share, not lib: of what all get only an executable is exported, and a project that compiles for another machine, or
# nothing at all, would not search this machine's lib.
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/hangscope)
set(pkgconfig_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
# In another project CMAKE_INSTALL_DOCDIR may be that project's.
set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/hangscope)
if(PROJECT_IS_TOP_LEVEL)
  set(doc_dir ${CMAKE_INSTALL_DOCDIR})
endif()

# Components: hangscope is the command; libhangscope-dev is what projects are compiled with; hangscope-doc the documentation;
# license the licence, which Debian's packages have in a file of their own.
install(TARGETS hangscope_target EXPORT hangscopeTargets)
if(HANGSCOPE_COMMAND)
  install(TARGETS hangscope EXPORT hangscopeTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT hangscope)
  # The executable looks for it in ../libexec/hangscope, seen from where it is itself.
  install(TARGETS hangscope_count LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR}/../libexec/hangscope COMPONENT hangscope)
  get_target_property(manual hangscope HANGSCOPE_MANUAL)
  if(manual)
    # Debian's zsh looks below /usr for what packages bring in a place of its own.
    set(zsh_dir ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions)
    if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
      set(zsh_dir ${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions)
    endif()
    install(DIRECTORY ${manual}/man1/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT hangscope)
    install(FILES ${manual}/bash/hangscope DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions COMPONENT hangscope)
    install(FILES ${manual}/zsh/_hangscope DESTINATION ${zsh_dir} COMPONENT hangscope)
    install(FILES ${manual}/fish/hangscope.fish DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d COMPONENT hangscope)
  endif()
endif()
# The host library has a file of its own: who wants the executable only, perhaps without a compiler, does not
# need what it is linked with.
install(TARGETS hangscope_host EXPORT hangscopeHostTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhangscope-dev)
install(EXPORT hangscopeHostTargets NAMESPACE hangscope:: DESTINATION ${package_dir} COMPONENT libhangscope-dev)
install(EXPORT hangscopeTargets NAMESPACE hangscope:: DESTINATION ${package_dir} COMPONENT libhangscope-dev)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/hangscopeConfig.cmake.in
                              ${CMAKE_CURRENT_BINARY_DIR}/hangscopeConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/hangscopeConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hangscopeConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/hangscopeConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/HangscopeSimulation.cmake
        DESTINATION ${package_dir} COMPONENT libhangscope-dev)

# The folders may be absolute; then they do not move.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${pkgconfig_dir})
  file(RELATIVE_PATH up /prefix/${pkgconfig_dir} /prefix)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(kind IN ITEMS bin include)
  string(TOUPPER CMAKE_INSTALL_${kind}DIR variable)
  set(pc_${kind}dir ${${variable}})
  if(NOT IS_ABSOLUTE "${pc_${kind}dir}")
    set(pc_${kind}dir "\${prefix}/${pc_${kind}dir}")
  endif()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/hangscope.pc.in ${CMAKE_CURRENT_BINARY_DIR}/hangscope.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hangscope.pc DESTINATION ${pkgconfig_dir} COMPONENT libhangscope-dev)

install(DIRECTORY include/hangscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libhangscope-dev
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES gdb/hangscope.py DESTINATION ${CMAKE_INSTALL_DATADIR}/hangscope/gdb COMPONENT hangscope)
install(DIRECTORY docs DESTINATION ${doc_dir} COMPONENT hangscope-doc FILES_MATCHING PATTERN "*.md" PATTERN "*.png"
        PATTERN "*.svg")
install(PROGRAMS ci/hangscope-ci DESTINATION ${doc_dir}/ci COMPONENT hangscope-doc)
install(DIRECTORY ci/github ci/gitlab DESTINATION ${doc_dir}/ci COMPONENT hangscope-doc)
install(DIRECTORY examples/systemd DESTINATION ${doc_dir}/examples COMPONENT hangscope-doc)
install(FILES README.md CHANGELOG.md DESTINATION ${doc_dir} COMPONENT hangscope-doc)
install(FILES LICENSE DESTINATION ${doc_dir} COMPONENT license)
