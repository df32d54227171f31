# cmake -DHANGSCOPE=words -DGZIP=file -DFOLDER=folder -P write_manual.cmake
# Writes FOLDER/man1/hangscope*.1.gz and FOLDER/{bash,zsh,fish}/, as the command HANGSCOPE prints them.

cmake_policy(VERSION 3.25)
file(REMOVE_RECURSE ${FOLDER})
list(REMOVE_ITEM HANGSCOPE "")

function(write FILE)
  get_filename_component(folder ${FILE} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${HANGSCOPE} help ${ARGN} OUTPUT_FILE ${FILE} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

write(${FOLDER}/man1/hangscope.1 --man)
# That page names those of the commands: \fBhangscope\-why\fR(1)
file(STRINGS ${FOLDER}/man1/hangscope.1 lines REGEX "^.fBhangscope.-[a-z]+.fR\\(1\\)")
if(NOT lines)
  message(FATAL_ERROR "${FOLDER}/man1/hangscope.1 names no command")
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^.*-([a-z]+).*$" "\\1" command "${line}")
  write(${FOLDER}/man1/hangscope-${command}.1 --man ${command})
endforeach()
file(GLOB pages ${FOLDER}/man1/*.1)
execute_process(COMMAND ${GZIP} -9 -n ${pages} COMMAND_ERROR_IS_FATAL ANY) # -n: no time in it

write(${FOLDER}/bash/hangscope --completion bash)
write(${FOLDER}/zsh/_hangscope --completion zsh)
write(${FOLDER}/fish/hangscope.fish --completion fish)
