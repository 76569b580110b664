/* norm_rows.c -- turns a mask into the numbers of the valid rows. */
#include "norm/kernels/norm_rows.h"

sr_status norm_rows_init(norm_rows *r, tape *t, int64_t rows, const uint8_t *mask, norm_mode mode) {
    *r = (norm_rows){.rows = rows, .valid = rows, .mode = mode};
    if (rows < 0 || rows > INT32_MAX)
        return tape_fail(t, SR_USAGE, "normalization of %lld rows", (long long)rows), SR_USAGE;
    if (!mask) return SR_OK;
    int64_t valid = 0;
    for (int64_t i = 0; i < rows; i++) valid += mask[i] != 0;
    if (valid == rows) return SR_OK;
    int32_t *index = tape_alloc(t, (size_t)(valid + 1) * sizeof *index);
    if (!index) return SR_MEMORY;
    for (int64_t i = 0, j = 0; i < rows; i++)
        if (mask[i]) index[j++] = (int32_t)i;
    r->valid = valid;
    r->mask = mask;
    r->index = index;
    return SR_OK;
}
