#include "decode/intel_pt_trace.h"

namespace hangscope {

Result<std::unique_ptr<InstructionTrace>> OpenIntelPtTrace(const IntelPtSetting&) {
  return Status::NotFound("this hangscope was built without libipt, which decodes Intel PT; install libipt-dev and "
                          "build it again");
}

}  // namespace hangscope
