// JUnit XML, so that CI shows a hang as a failed test with the report as text.
// Source of the format: the schema common to Jenkins and GitLab (testsuite,
// testcase, failure, error, system-out).
#ifndef HANGSCOPE_VERDICT_JUNIT_H
#define HANGSCOPE_VERDICT_JUNIT_H

#include <string>
#include <vector>

#include "base/clock.h"
#include "model/verdict.h"

namespace hangscope {

struct JunitCase {
  std::string name;  // of the command
  TimeNs elapsed = 0;
  std::string failure;  // headline of a hang; empty: none
  std::string error;    // crash or exit status; empty: none
  std::string report;   // text for either
  std::string out;      // the end of standard output and of standard error; empty: none
  std::string err;
};

// One line: the headline, and whom it is about, where and since when, as far as that is known.
std::string HeadlineWithSubject(const Verdict& verdict);

std::string JunitXml(const JunitCase& result);
// Of several, as one suite.
std::string JunitXml(const std::vector<JunitCase>& results);

}  // namespace hangscope

#endif
