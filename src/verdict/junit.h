// JUnit XML, so that CI shows a hang as a failed test with the report as text.
// Source of the format: the schema common to Jenkins and GitLab (testsuite,
// testcase, failure, error, system-out).
#ifndef HANGSCOPE_VERDICT_JUNIT_H
#define HANGSCOPE_VERDICT_JUNIT_H

#include <string>

#include "base/clock.h"

namespace hangscope {

struct JunitCase {
  std::string name;  // of the command
  TimeNs elapsed = 0;
  std::string failure;  // headline of a hang; empty: none
  std::string error;    // crash or exit status; empty: none
  std::string report;   // text for either
};

std::string JunitXml(const JunitCase& result);

}  // namespace hangscope

#endif
