// hangscope doctor: docs/hangscope-doctor.md.
#include <unistd.h>

#include "commands.h"
#include "help/all_helps.h"
#include "options.h"
#include "tools/diagnose.h"
#include "tools/doctor_text.h"

namespace hangscope::cli {

int DoctorCommand(const std::vector<std::string>& words) {
  OptionParser parser(DoctorHelp());
  bool json = false;
  parser.Flag("--json", &json);
  if (const auto exit = parser.Parse(words)) return *exit;
  const DoctorReport report = Diagnose(RealMachine());
  WriteOut(json ? DoctorJson(report) : DoctorText(report));
  return report.all_work() ? kExitClean : kExitMissing;
}

}  // namespace hangscope::cli
