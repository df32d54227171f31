#include "version_text.h"

#include <fmt/format.h>

#include "base/build_features.h"
#include "hangscope/version.h"

namespace hangscope::cli {
namespace {

struct Feature {
  bool on;
  const char* library;
  const char* with;     // what it is for
  const char* without;  // what a build without it does not do
};

constexpr Feature kFeatures[] = {
    {HANGSCOPE_HAS_OPENCSD, "libopencsd", "CoreSight traces are decoded",
     "CoreSight traces in a perf.data or a debugger's snapshot are not decoded"},
    {HANGSCOPE_HAS_LIBIPT, "libipt", "Intel PT traces are decoded",
     "Intel PT traces in a perf.data are not decoded"},
    {HANGSCOPE_HAS_CAPSTONE, "capstone", "a spinning thread is told from one that works",
     "a spinning thread is not told from one that works"},
    {HANGSCOPE_HAS_NCURSES, "ncurses", "hangscope watch has a live view",
     "hangscope watch has no live view"},
    {HANGSCOPE_HAS_RE2, "RE2", "--trigger and --place-regex match lines",
     "the options --trigger and --place-regex are refused"},
};

}  // namespace

std::string VersionText(bool verbose) {
  std::string text = "hangscope " HANGSCOPE_VERSION "\n";
  if (!verbose) return text;
  for (const Feature& feature : kFeatures)
    text += fmt::format("  {:<3} {:<10}  {}\n", feature.on ? "on" : "off", feature.library,
                        feature.on ? feature.with : feature.without);
  return text;
}

}  // namespace hangscope::cli
