// What the kernel counts of a TCP connection.
#ifndef HANGSCOPE_PROC_IPC_TCP_COUNTS_H
#define HANGSCOPE_PROC_IPC_TCP_COUNTS_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangscope {

// How many bytes have come to the socket `inode` in all, whether or not they were read. Its ends
// are "127.0.0.1:80" or "[::1]:80". Nothing: the kernel knows no such connection in the network
// namespace of this process, or does not say.
std::optional<uint64_t> BytesReceived(std::string_view local, std::string_view remote,
                                      uint64_t inode);

}  // namespace hangscope

#endif
