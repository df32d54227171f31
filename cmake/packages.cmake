# Debian's packages, by CPack. scripts/make-packages sets HANGSCOPE_PACKAGES and the prefix /usr, and builds the target `package`.
#
#   hangscope         the command, its manual pages and completions
#   libhangscope-dev  headers, the host library, what CMake and pkg-config find them with
#   hangscope-doc     the documentation
option(HANGSCOPE_PACKAGES "Prepare Debian's packages (scripts/make-packages)" OFF)
set(HANGSCOPE_MAINTAINER "The hangscope authors <hangscope@packages.invalid>" CACHE STRING "Name <address> in Debian's packages")
if(NOT HANGSCOPE_PACKAGES)
  return()
endif()
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "Debian's packages install into /usr: set CMAKE_INSTALL_PREFIX to that, or call scripts/make-packages")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hangscope)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL hangscope libhangscope-dev hangscope-doc)
set(CPACK_COMPONENTS_GROUPING IGNORE)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component})
endforeach()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${HANGSCOPE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()

# The first line is the summary.
set(CPACK_COMPONENT_HANGSCOPE_DESCRIPTION "find out why a program hangs
hangscope starts a program or looks at one that runs, says when it hangs and
which thread waits for which, and keeps what led up to that. It also reads
traces of simulators, perf.data, core dumps and the memory of firmware.")
set(CPACK_DEBIAN_HANGSCOPE_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_HANGSCOPE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_HANGSCOPE_PACKAGE_SUGGESTS "gdb, hangscope-doc")

set(CPACK_COMPONENT_LIBHANGSCOPE-DEV_DESCRIPTION "record events for hangscope and watch targets (development files)
The headers with which a program or a firmware records what hangscope reads,
the static library for programs that watch targets, and the files by which
CMake and pkg-config find both.")
set(CPACK_DEBIAN_LIBHANGSCOPE-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBHANGSCOPE-DEV_PACKAGE_DEPENDS
    "hangscope (= ${PROJECT_VERSION}), libfmt-dev, libdw-dev, libelf-dev, pkg-config")

set(CPACK_COMPONENT_HANGSCOPE-DOC_DESCRIPTION "find out why a program hangs (documentation)
What each command of hangscope does, with transcripts, and the formats of its
files.")
set(CPACK_DEBIAN_HANGSCOPE-DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_HANGSCOPE-DOC_PACKAGE_ARCHITECTURE all)

# Each package has the changes and the licence, and may have reasons against what lintian says.
set(debian ${PROJECT_BINARY_DIR}/debian)
file(MAKE_DIRECTORY ${debian})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md)
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/debian-changelog ${HANGSCOPE_MAINTAINER}
                OUTPUT_FILE ${debian}/changelog COMMAND_ERROR_IS_FATAL ANY)
find_program(HANGSCOPE_GZIP gzip REQUIRED)
execute_process(COMMAND ${HANGSCOPE_GZIP} -9 -n -f ${debian}/changelog COMMAND_ERROR_IS_FATAL ANY)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/debian/copyright ${debian}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${component} COMPONENT ${component})
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/debian/${component}.lintian-overrides)
    install(FILES ${CMAKE_CURRENT_LIST_DIR}/debian/${component}.lintian-overrides
            DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides RENAME ${component} COMPONENT ${component})
  endif()
endforeach()
include(CPack)
