/* amx_kernel.h -- the CPU's tiles: products of two panels of amx_pack.h. */
#ifndef ENGINE_AMX_AMX_KERNEL_H
#define ENGINE_AMX_AMX_KERNEL_H

#include "engine/amx/amx_pack.h"

#ifdef PRODUCT_AMX
/* Before the first and behind the last product of a thread, which has to do with tiles nowhere else between. */
void tiles_open(void);
void tiles_close(void);

/* Where the sums of two panels belong: at most SIDE rows and columns of c. */
typedef struct tile_sums {
    float *c;
    int64_t stride, rows, columns;
    bool add; /* to what is there */
} tile_sums;

/* Of a panel of a and one of b, both `depth` deep (rounded up to DEPTH). bias: SIDE numbers that every row of sums begins
 * with; NULL: zeros. */
void panels_multiply(amx_parts parts, const char *a, const char *b, int64_t depth,
                     const float *bias, const tile_sums *to);
#endif

#endif
