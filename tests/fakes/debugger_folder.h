// A debugger's snapshot of a board of two cores, whose trace units write into one buffer; for
// tests that change what they are about.
#ifndef HANGSCOPE_TESTS_FAKES_DEBUGGER_FOLDER_H
#define HANGSCOPE_TESTS_FAKES_DEBUGGER_FOLDER_H

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/file_system.h"
#include "fakes/etm_bytes.h"

namespace hangscope {

class DebuggerFolder {
 public:
  // By their names in the folder.
  std::map<std::string, std::string> files;

  DebuggerFolder() {
    files["snapshot.ini"] =
        "; of a board\n[snapshot]\nversion=1.0\n\n[device_list]\ndevice0=cpu_0.ini\n"
        "device1=cpu_1.ini\ndevice2=etm_0.ini\ndevice3=etm_1.ini\n\n[trace]\nmetadata=trace.ini\n";
    files["trace.ini"] =
        "[trace_buffers]\nbuffers=buffer0\n[buffer0]\nname=ETB_0\nfile=cstrace.bin\n"
        "format=coresight\n[source_buffers]\nETM_0=ETB_0\nETM_1=ETB_0\n"
        "[core_trace_sources]\ncpu_0=ETM_0\ncpu_1=ETM_1\n";
    for (int core = 0; core < 2; ++core) {
      files[fmt::format("cpu_{}.ini", core)] = fmt::format(
          "[device]\nname=cpu_{}\nclass=core\ntype=Cortex-A53\n[regs]\nPC(size:64)=0x400014\n"
          "[dump1]\nfile=code.bin\naddress={:#x}\nlength={:#x}\n",
          core, kA64Base, sizeof kA64Code);
      files[fmt::format("etm_{}.ini", core)] = Etm(core, 0x10 + core);
    }
    files["code.bin"] = std::string(reinterpret_cast<const char*>(kA64Code), sizeof kA64Code);
    files["cstrace.bin"] = Framed(0x10, A64Run()) + Framed(0x11, A64Run());
  }

  static std::string Etm(int number, int id) {
    return fmt::format(
        "[device]\r\nname=ETM_{}\r\nclass=trace_source\r\ntype=ETM4.2\r\n[regs]\r\n"
        "TRCCONFIGR(0x004)=0x00000040\r\ntrctraceidr(id:0x10)={:#x}\r\nTRCIDR0=0x28000EA1\r\n"
        "TRCIDR1=0x4100F422 ; of the implementation\r\nTRCIDR2=0x20001088\r\n",
        number, id);
  }

  void Replace(const std::string& file, const std::string& what, const std::string& with) {
    std::string& text = files.at(file);
    text.replace(text.find(what), what.size(), with);
  }

  // The folder's name.
  std::string WriteTo(FileSystem& system) const {
    (void)system.MakeFolders("board").ok();
    for (const auto& [name, bytes] : files)
      (void)WriteWholeFile(system, "board/" + name, bytes).ok();
    return "board";
  }
};

}  // namespace hangscope

#endif
