/* burn_in.c -- how long running values still hold what they began with.
 *
 * running <- alpha running + (1 - alpha) batch: after N passes the initial value (0 for a mean, 1
 * for a variance or mean square) weighs alpha^N. It is called gone where that is below
 * SR_STARTUP_LEFT:
 *
 *     N = ceil(ln SR_STARTUP_LEFT / ln alpha)      0.9: 44   0.95: 90   0.98: 228   0.99: 459
 *
 * Until then a distance from the running value measures mostly the initial value. alpha = 1 never
 * forgets it, which is then what the run was asked for: 0.
 */
#include <math.h>

#include "statrec/runfile.h"

int64_t sr_startup_of(double alpha) {
    if (!(alpha >= 0 && alpha < 1)) return 0;
    if (alpha < SR_STARTUP_LEFT) return 1; /* the batch before: gone after one pass */
    return (int64_t)ceil(log(SR_STARTUP_LEFT) / log(alpha) - 1e-9);
}

int64_t sr_run_startup(const sr_runfile *f) {
    const sr_run_site *site;
    int64_t most = 0;
    for (int64_t i = 0; (site = sr_run_get_site(f, i)); i++) {
        const int64_t here = sr_startup_of(site->alpha);
        if (here > most) most = here;
    }
    return most;
}
