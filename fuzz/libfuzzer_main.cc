// The entry point FUZZER as libFuzzer wants it.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const hangscope::fuzz::Entry entry = hangscope::fuzz::FindFuzzer(FUZZER);
  entry({reinterpret_cast<const char*>(data), size});
  return 0;
}
