// The metadata of a CTF 1.8 trace: what its stream files hold, in TSDL.
#ifndef HANGSCOPE_EXPORT_CTF_METADATA_H
#define HANGSCOPE_EXPORT_CTF_METADATA_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "export/ctf_streams.h"
#include "model/trace.h"

namespace hangscope {

// Of the whole trace: names, which are identifiers of CTF's, and what they stand for.
using CtfEnvironment = std::vector<std::pair<std::string, std::variant<int64_t, std::string>>>;

// Events of a kind that are laid out in the same way; its number in CtfDescription::classes is in
// their headers.
struct CtfEventClass {
  const TraceEventKind* kind = nullptr;
  bool has_task = false;   // says which task ran
  bool ambiguous = false;  // says that its time may be wrong
  size_t fields = 0;       // how many of CtfFields its records had
};

struct CtfDescription {
  CtfUuid uuid{};
  bool counts_clock = false;
  std::string times;  // what a time is, in words
  TimeNs offset = 0;  // from the Unix epoch to the clock's zero; 0: not known
  TimeNs clock_error = 0;
  CtfEnvironment environment;
  std::map<int64_t, std::string> tasks;
  std::vector<CtfEventClass> classes;
};

// What an event of the kind carries: of a function that is entered its name and place, then the
// kind's fields.
std::vector<TraceField> CtfFields(const TraceEventKind& kind);

// Of an integer: 8, 16, 32 or 64, which all readers know well; at least those that it has.
int CtfBits(const TraceField& field);

std::string CtfMetadata(const CtfDescription& trace);

}  // namespace hangscope

#endif
