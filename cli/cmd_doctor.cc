// hangscope doctor: docs/hangscope-doctor.md.
#include <unistd.h>

#include "commands.h"
#include "options.h"
#include "tools/diagnose.h"
#include "tools/doctor_text.h"

namespace hangscope::cli {
namespace {

constexpr char kDoctorHelp[] =
    R"(usage: hangscope doctor [--json]

Says what this machine lets this user record and look into, what is missing for what, and
the command that grants it. Changes nothing.

  --json                one JSON object (docs/json.md)

Status: 0 all that is needed works; 1 something is missing; 2 usage.
)";

}  // namespace

int DoctorCommand(const std::vector<std::string>& words) {
  OptionParser parser("doctor", kDoctorHelp);
  bool json = false;
  parser.Flag("--json", &json);
  if (const auto exit = parser.Parse(words)) return *exit;
  const DoctorReport report = Diagnose(RealMachine());
  WriteOut(json ? DoctorJson(report) : DoctorText(report));
  return report.all_work() ? kExitClean : kExitMissing;
}

}  // namespace hangscope::cli
