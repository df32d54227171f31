# cmake -DSOURCE=folder -DSCRIPTS=a.js:b.js -DOUTPUT=file.cc -P embed_page.cmake
# Puts page.css and the scripts into page.html, and what comes before and behind the data into two arrays. Works on
# hexadecimal digits throughout: CMake's lists would stumble over brackets and semicolons.

file(READ ${SOURCE}/page.html page HEX)
file(READ ${SOURCE}/page.css style HEX)
set(script "")
string(REPLACE ":" ";" SCRIPTS "${SCRIPTS}")
foreach(name IN LISTS SCRIPTS)
  file(READ ${SOURCE}/${name} text HEX)
  string(APPEND script ${text})
endforeach()

# Splits `page` at the comment /*! NAME */ into `before` and `behind`.
macro(split_at name)
  string(HEX "/*! ${name} */" mark)
  string(FIND ${page} ${mark} at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${SOURCE}/page.html has no comment /*! ${name} */, where the ${name} go")
  endif()
  string(LENGTH ${mark} length)
  math(EXPR rest "${at} + ${length}")
  string(SUBSTRING ${page} 0 ${at} before)
  string(SUBSTRING ${page} ${rest} -1 behind)
endmacro()

split_at(styles)
set(page ${before}${style}${behind})
split_at(scripts)
set(page ${before}${script}${behind})
split_at(data)

# As bytes, 32 a line.
function(array NAME HEX_DIGITS OUT)
  string(REGEX REPLACE "(..)" "0x\\1," bytes ${HEX_DIGITS})
  string(REPEAT "....," 32 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes ${bytes})
  string(LENGTH ${HEX_DIGITS} size)
  math(EXPR size "${size} / 2")
  set(${OUT} "const unsigned char ${NAME}[${size}] = {\n${bytes}};\nconst unsigned long ${NAME}Size = ${size};\n" PARENT_SCOPE)
endfunction()
array(kReportPageHead ${before} head)
array(kReportPageTail ${behind} tail)
file(WRITE ${OUTPUT} "// Made by cmake/embed_page.cmake from src/report/page/.
#include \"report/report_page_bytes.h\"

namespace hangscope {

${head}
${tail}
}  // namespace hangscope
")
