/* A run of known length: hart 0 computes, the others wait at a barrier, QEMU ends with status 0. */
#ifndef EXAMPLES_HANDSHAKE_TIMED_CRC_H
#define EXAMPLES_HANDSHAKE_TIMED_CRC_H

void timed_crc(unsigned hart, unsigned harts);

#endif
