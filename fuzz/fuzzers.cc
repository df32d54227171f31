#include "fuzz.h"

namespace hangscope::fuzz {

void FuzzBash(std::string_view input);
void FuzzBus(std::string_view input);
void FuzzCatalog(std::string_view input);
void FuzzCode(std::string_view input);
void FuzzCore(std::string_view input);
void FuzzDebugger(std::string_view input);
void FuzzElf(std::string_view input);
void FuzzEtm(std::string_view input);
void FuzzExec(std::string_view input);
void FuzzGdb(std::string_view input);
void FuzzGo(std::string_view input);
void FuzzJvm(std::string_view input);
void FuzzLog(std::string_view input);
void FuzzPerf(std::string_view input);
void FuzzPostgres(std::string_view input);
void FuzzPython(std::string_view input);
void FuzzRing(std::string_view input);
void FuzzRuby(std::string_view input);
void FuzzScope(std::string_view input);
void FuzzTrace(std::string_view input);
void FuzzUnits(std::string_view input);
void FuzzV8(std::string_view input);
void FuzzWatch(std::string_view input);

std::span<const Fuzzer> Fuzzers() {
  static constexpr Fuzzer kFuzzers[] = {
      {"bash", FuzzBash},     {"bus", FuzzBus},     {"catalog", FuzzCatalog},
      {"code", FuzzCode},     {"core", FuzzCore},   {"debugger", FuzzDebugger},
      {"elf", FuzzElf},       {"etm", FuzzEtm},     {"exec", FuzzExec},
      {"gdb", FuzzGdb},       {"go", FuzzGo},       {"jvm", FuzzJvm},
      {"log", FuzzLog},       {"perf", FuzzPerf},   {"postgres", FuzzPostgres},
      {"python", FuzzPython}, {"ring", FuzzRing},   {"ruby", FuzzRuby},
      {"scope", FuzzScope},   {"trace", FuzzTrace}, {"units", FuzzUnits},
      {"v8", FuzzV8},         {"watch", FuzzWatch},
  };
  return kFuzzers;
}

Entry FindFuzzer(std::string_view name) {
  for (const Fuzzer& fuzzer : Fuzzers()) {
    if (fuzzer.name == name) return fuzzer.entry;
  }
  return nullptr;
}

}  // namespace hangscope::fuzz
