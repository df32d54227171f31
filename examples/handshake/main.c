/* Built three times: with HANDSHAKE_HANG, HANDSHAKE_WORK or HANDSHAKE_CRC defined. */
#include "exchange.h"
#include "platform.h"
#include "timed_crc.h"
#include "work.h"

#if defined(HANDSHAKE_HANG) + defined(HANDSHAKE_WORK) + defined(HANDSHAKE_CRC) != 1
#error "define one of HANDSHAKE_HANG, HANDSHAKE_WORK and HANDSHAKE_CRC"
#endif

#define WARM_UP_PORTIONS 6

void hart_main(unsigned hart) {
#ifdef HANDSHAKE_CRC
  timed_crc(hart, platform_hart_count());
#else
  work_warm_up(hart, WARM_UP_PORTIONS);
  exchange(hart, platform_hart_count());
#endif
}
