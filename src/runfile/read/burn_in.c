/* burn_in.c -- how long the initial values of running statistics last.
 *
 * running <- alpha running + (1 - alpha) batch: after N passes the initial value (0 for a mean, 1
 * for a variance or mean square) weighs alpha^N. Burn-in ends when this is below SR_STARTUP_LEFT:
 *
 *     N = ceil(ln SR_STARTUP_LEFT / ln alpha)      0.9: 44   0.95: 90   0.98: 228   0.99: 459
 *
 * Before that a distance from the running value mostly measures the initial value. With alpha = 1
 * the running value never changes, as requested, and the burn-in is 0.
 */
#include <math.h>

#include "statrec/runfile.h"

int64_t sr_startup_of(double alpha) {
    if (!(alpha >= 0 && alpha < 1)) return 0;
    if (alpha < SR_STARTUP_LEFT) return 1; /* almost the last batch alone */
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
