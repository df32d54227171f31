// What findings are made from: the looks at processes, and what follows from these. Pure.
#ifndef HANGSCOPE_PROCESS_JUDGED_PROCESSES_H
#define HANGSCOPE_PROCESS_JUDGED_PROCESSES_H

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/process.h"
#include "process/process_graph.h"

namespace hangscope {

struct JudgedProcesses {
  // The newest look last; one at least. They outlive this.
  explicit JudgedProcesses(const std::vector<SystemSample>& its_looks);

  const ProcessNode& node(uint32_t index) const { return graph.nodes()[index]; }
  std::set<int> PidsOf(const std::vector<uint32_t>& nodes) const;
  // Threads of these that have not ended.
  size_t LiveThreads(const std::set<int>& pids) const;

  const std::vector<SystemSample>& looks;
  const SystemSample& look;  // the newest
  const ProcessGraph graph;
  const std::set<int> asked;      // processes
  const std::vector<bool> stuck;  // by node: nobody who moves could release it
};

// Processes for which a thread waits, whether or not they alone could end that.
std::set<int> WaitsForProcesses(const ThreadFacts& thread, const SystemSample& look);

// In the loop of libuv or GLib, or among the pools of node: there, threads idle until the program
// wants something. What the loop has called is the program's.
bool IdlesInRuntime(const ThreadFacts& thread);

// Equal for two threads of one process that wait for the same thing.
std::tuple<WaitKind, uint64_t, std::string, int> ObjectOf(const ThreadWait& wait);

}  // namespace hangscope

#endif
