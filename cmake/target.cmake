# hangscope::target: the headers that an instrumented program includes. Nothing to link.
add_library(hangscope_target INTERFACE)
add_library(hangscope::target ALIAS hangscope_target)
set_target_properties(hangscope_target PROPERTIES EXPORT_NAME target)
target_include_directories(hangscope_target INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
