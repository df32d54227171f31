# The target `uninstall` removes what `cmake --install` installed from this build folder, with the DESTDIR of that.
# Included before all that is installed.
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/remove_installed.cmake
  COMMENT "Removing what was installed" VERBATIM USES_TERMINAL)

# A manifest of CMake's lists files. Which folders are new is known only before: /usr/local/bin is there, and empty.
set(destinations bin libexec/hangscope ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR}/hangscope
    ${CMAKE_INSTALL_MANDIR}/man1 ${CMAKE_INSTALL_DOCDIR} ${CMAKE_INSTALL_DATADIR}/hangscope
    ${CMAKE_INSTALL_DATADIR}/cmake/hangscope ${CMAKE_INSTALL_DATADIR}/pkgconfig
    ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions
    ${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d)
install(CODE "
  set(new \"\")
  foreach(folder IN ITEMS ${destinations})
    if(NOT IS_ABSOLUTE \"\${folder}\")
      set(folder \"\${CMAKE_INSTALL_PREFIX}/\${folder}\")
    endif()
    set(folder \"\$ENV{DESTDIR}\${folder}\")
    while(NOT EXISTS \"\${folder}\")
      string(APPEND new \"\${folder}\\n\")
      get_filename_component(folder \"\${folder}\" DIRECTORY)
    endwhile()
  endforeach()
  file(APPEND \"${PROJECT_BINARY_DIR}/install_folders.txt\" \"\${new}\")
" ALL_COMPONENTS)
