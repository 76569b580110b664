#include "analysis/runs/running_updates.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 1024 };
/* Below, k is a single update and chance. Own choice, as in statrec diagnose. */
static const double SEVERAL = 1.1;

/* v; NaN without a step that moves the mean. */
static sr_status momentum_in_use(const sr_runfile *run, int64_t site, double *v, sr_failure *why) {
    const int64_t steps = sr_run_get_info(run)->steps;
    float moved[BLOCK], apart[BLOCK];
    double all_moved = 0, all_apart = 0;
    sr_status status = SR_OK;
    for (int64_t at = 0, n; at < steps && status == SR_OK; at += n) {
        n = steps - at < BLOCK ? steps - at : BLOCK;
        status = sr_run_scalar(run, "mu_moved", site, at, n, moved, why);
        if (status == SR_OK) status = sr_run_scalar(run, "mu_apart", site, at, n, apart, why);
        for (int64_t i = 0; i < n && status == SR_OK; i++) {
            if (!isfinite(moved[i]) || !isfinite(apart[i]) || moved[i] == 0) continue;
            all_moved += (double)moved[i];
            all_apart += (double)apart[i];
        }
    }
    *v = all_moved / all_apart;
    return status;
}

sr_status running_updates(const sr_runfile *run, int64_t site, double *updates, sr_failure *why) {
    const double alpha = sr_run_get_site(run, site)->alpha;
    double v;
    *updates = 1;
    if (!(alpha > 0 && alpha < 1) || !sr_run_has_scalar(run, "mu_moved") ||
        !sr_run_has_scalar(run, "mu_apart"))
        return SR_OK;
    const sr_status status = momentum_in_use(run, site, &v, why);
    const double k = log1p(-v) / log(alpha);
    if (status == SR_OK && isfinite(k) && k > SEVERAL) *updates = k;
    return status;
}

sr_status running_step_alpha(const sr_runfile *run, int64_t site, double *alpha, sr_failure *why) {
    double k;
    const sr_status status = running_updates(run, site, &k, why);
    *alpha = pow(sr_run_get_site(run, site)->alpha, k);
    return status;
}
