// What a piece of a target's code costs, counted.
#ifndef HANGSCOPE_MODEL_COST_H
#define HANGSCOPE_MODEL_COST_H

#include <cstdint>
#include <string>
#include <vector>

namespace hangscope {

struct CostCount {
  uint64_t entered = 0;
  uint64_t instructions = 0;
  uint64_t loads = 0;
  uint64_t stores = 0;

  CostCount& operator+=(const CostCount& other) {
    entered += other.entered;
    instructions += other.instructions;
    loads += other.loads;
    stores += other.stores;
    return *this;
  }
};

// From the first address to the one behind the last.
struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What is executed from any of the first addresses until any of the others.
struct MarkedCode {
  std::vector<uint64_t> begins;
  std::vector<uint64_t> ends;
};

// A function, or what is executed between the marks of a name.
struct CostSubject {
  std::string name;
  bool is_mark = false;
  std::vector<AddressRange> ranges;  // of a function; several have one name where they are static
  MarkedCode marked;
  std::vector<CostCount> harts;  // by hart

  CostCount Total() const {
    CostCount total;
    for (const CostCount& hart : harts) total += hart;
    return total;
  }
};

struct CostReport {
  std::string target;             // as QEMU calls it: "riscv32"
  uint64_t events_per_entry = 1;  // how many events each time entered stands for
  bool complete = true;           // false: QEMU had to be ended
  std::vector<CostSubject> subjects;
};

}  // namespace hangscope

#endif
