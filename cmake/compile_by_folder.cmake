# hangscope_compile_by_folder(TARGET): with HANGSCOPE_COMPILE_BY_FOLDER, as the presets have it that build everything at once,
# the sources of each folder are compiled as one. Most of the time of compiling a source goes into the standard library's and
# fmt's headers and templates, which are then read and instantiated once a folder: less than half of the time in all.
#
# Names in unnamed namespaces of one folder must therefore differ. Each source includes what it uses by itself all the
# same: the presets fuzz and tidy compile one at a time.
function(hangscope_compile_by_folder TARGET)
  if(NOT HANGSCOPE_COMPILE_BY_FOLDER)
    return()
  endif()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${TARGET} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "all_${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  # The warning is about types that a header shows to others; here each source is included, and shows its own to nobody.
  target_compile_options(${TARGET} PRIVATE -Wno-subobject-linkage)
endfunction()
