// A probe of the user's as a target of ours.
#ifndef HANGSCOPE_HOST_PROBE_ADAPTER_H
#define HANGSCOPE_HOST_PROBE_ADAPTER_H

#include <memory>

#include "hangscope/host/hangscope.hpp"
#include "target/target.h"

namespace hangscope {

// Fails where its ranges are in no order. Shares the probe: a target may be opened again.
Result<std::unique_ptr<Target>> OpenProbe(std::shared_ptr<host::Probe> probe);

}  // namespace hangscope

#endif
