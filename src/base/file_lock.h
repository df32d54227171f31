// The advisory lock of a whole file, for fcntl with F_OFD_SETLK and its like: it belongs
// to the open file, and the kernel lets go of it when the last descriptor is closed.
#ifndef HANGSCOPE_BASE_FILE_LOCK_H
#define HANGSCOPE_BASE_FILE_LOCK_H

#include <fcntl.h>
#include <stdio.h>

namespace hangscope {

// `type`: F_WRLCK or F_UNLCK.
inline struct flock WholeFile(short type = F_WRLCK) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace hangscope

#endif
