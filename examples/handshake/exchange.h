/* A chain of kernels, one per hart, that hand blocks on through circular buffers:

     hart 0           harts 1 .. n-2             hart n-1
     reader_kernel -> compute_kernel (each) ->   writer_kernel
                      |                             |
                      +------- grants <-------------+

   The writer has room for GRANTS blocks. The hart before it takes one grant per block, and the
   writer gives grants back in batches, because on real hardware each return is a message.

   Every hart verifies the checksum of each block, the writer the order as well. */
#ifndef EXAMPLES_HANDSHAKE_EXCHANGE_H
#define EXAMPLES_HANDSHAKE_EXCHANGE_H

/* Does not return, unless `harts` is 1: then there is nobody to exchange blocks with. */
void exchange(unsigned hart, unsigned harts);

#endif
