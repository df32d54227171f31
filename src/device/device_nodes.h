// The nodes of a device, as its memories' scopes and its file say where they are. Pure.
#ifndef HANGSCOPE_DEVICE_DEVICE_NODES_H
#define HANGSCOPE_DEVICE_DEVICE_NODES_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/watch.h"

namespace hangscope {

// What one memory says of nodes: its scope's table, of which all nodes of a device may be, and
// which of them its own cores are in.
struct NodesOfMemory {
  std::string name;
  std::optional<std::pair<uint16_t, uint16_t>> node = {};  // of its cores, as the file says
  std::vector<NodeSample> table = {};
  std::vector<bool> is_own = {};  // by the table
};

class DeviceNodes {
 public:
  // The numbers that its table's nodes have in the device. Those without coordinates are its own,
  // and called as the memory is. Fails where file and scope contradict each other, and where
  // another memory has cores at the same coordinates.
  Result<std::vector<uint32_t>> Add(const NodesOfMemory& memory);

  const std::vector<NodeSample>& all() const { return all_; }

 private:
  using Place = std::pair<uint16_t, uint16_t>;
  uint32_t NumberAt(const Place& place);

  std::vector<NodeSample> all_;
  std::map<Place, uint32_t> numbers_;
  std::map<Place, std::string> owners_;  // names of memories
};

}  // namespace hangscope

#endif
