/* put_squares.c -- rejects negative means of squares. */
#include "record/step/put_step.h"

sr_status put_step_squares(sr_recorder *r, int site, const char *call, const char *name,
                           const double *value) {
    for (int64_t k = 0; k < r->site[site].width; k++) {
        if (!(value[k] < 0)) continue;
        sr_fail(&r->failure, SR_USAGE, "%s: %s: %s %g of feature %lld at site %s is negative",
                r->path, call, name, value[k], (long long)k, r->site[site].name);
        sr_hint(&r->failure, "put 0 if it is rounding");
        return SR_USAGE;
    }
    return SR_OK;
}
