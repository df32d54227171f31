// Names the calling thread for those who look at it from outside: ps -T, top -H, gdb.
#ifndef HANGSCOPE_BASE_THREAD_NAME_H
#define HANGSCOPE_BASE_THREAD_NAME_H

#include <pthread.h>

namespace hangscope {

// At most 15 characters.
inline void NameThread(const char* name) { (void)pthread_setname_np(pthread_self(), name); }

}  // namespace hangscope

#endif
