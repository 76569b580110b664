/* amx_kernel.h -- products of two packed panels (amx_pack.h) by AMX tiles. */
#ifndef ENGINE_AMX_AMX_KERNEL_H
#define ENGINE_AMX_AMX_KERNEL_H

#include "engine/amx/amx_pack.h"

#ifdef PRODUCT_AMX
/* Call before a thread's first product and after its last. In between the thread uses tiles for
 * nothing else. */
void tiles_open(void);
void tiles_close(void);

/* Destination of the sums of two panels: at most SIDE rows and columns of c. */
typedef struct tile_sums {
    float *c;
    int64_t stride, rows, columns;
    bool add; /* to the present values */
} tile_sums;

/* Multiplies a panel of a by a panel of b, both `depth` deep (rounded up to DEPTH). bias: SIDE
 * numbers that start every row of sums; NULL: zeros. */
void panels_multiply(amx_parts parts, const char *a, const char *b, int64_t depth,
                     const float *bias, const tile_sums *to);
#endif

#endif
