// What sysfs says of hardware tracers, below a folder.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_TRACER_SYSFS_H
#define HANGSCOPE_TESTS_FAKES_FAKE_TRACER_SYSFS_H

#include <string>

#include "base/file_system.h"

namespace hangscope {

inline void PutSysfs(FileSystem* files, const std::string& path, const std::string& text) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    (void)files->MakeFolders(path.substr(0, slash));
  (void)WriteWholeFile(*files, path, text + "\n");
}

// CoreSight with two ETMv4 units, those of EtmV4Info(2), and two sinks; Intel PT; SPE on the CPUs 1
// to 3.
inline void AddTracers(FileSystem* files, const std::string& pmus = "/pmus") {
  const auto put = [&](const std::string& path, const std::string& text) {
    PutSysfs(files, pmus + "/" + path, text);
  };
  put("cs_etm/type", "8");
  put("cs_etm/format/cycacc", "config:12");
  put("cs_etm/format/contextid", "config:14");
  put("cs_etm/format/timestamp", "config:28");
  put("cs_etm/format/sinkid", "config2:0-31");
  put("cs_etm/sinks/tmc_etr0", "0x1a2b3c4d");
  put("cs_etm/sinks/tmc_etf0", "0x5");
  for (const char* cpu : {"cs_etm/cpu0/", "cs_etm/cpu1/"}) {
    put(std::string(cpu) + "trcidr/trcidr0", "0x28000ea1");
    put(std::string(cpu) + "trcidr/trcidr1", "0x4100f422");
    put(std::string(cpu) + "trcidr/trcidr2", "0x20001088");
    put(std::string(cpu) + "trcidr/trcidr8", "0x0");
    put(std::string(cpu) + "mgmt/trcauthstatus", "0x8c");
  }
  put("intel_pt/type", "9");
  put("intel_pt/format/pt", "config:0");
  put("intel_pt/format/cyc", "config:1");
  put("intel_pt/format/mtc", "config:9");
  put("intel_pt/format/tsc", "config:10");
  put("intel_pt/format/noretcomp", "config:11");
  put("intel_pt/format/branch", "config:13");
  put("intel_pt/format/mtc_period", "config:14-17");
  put("intel_pt/max_nonturbo_ratio", "36");
  put("intel_pt/tsc_art_ratio", "166:2");
  put("intel_pt/caps/event_trace", "0");
  put("intel_bts/type", "10");
  put("arm_spe_0/type", "14");
  put("arm_spe_0/cpumask", "1-3");
  put("arm_spe_0/format/ts_enable", "config:0");
  put("arm_spe_0/caps/min_interval", "256");
}

}  // namespace hangscope

#endif
