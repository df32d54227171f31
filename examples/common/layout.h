/* Sizes that both C and assembly need. */
#ifndef EXAMPLES_COMMON_LAYOUT_H
#define EXAMPLES_COMMON_LAYOUT_H

#ifndef MAX_HARTS /* QEMU has room for 512 */
#define MAX_HARTS 8
#endif
#define STACK_SHIFT 13 /* 8 KiB per hart */

#endif
