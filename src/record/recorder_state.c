/* recorder_state.c -- what every call into the recorder asks first: may it go on, and at which site.
 */
#include "recorder.h"

sr_status recorder_check(const sr_recorder *r) {
    return r ? r->failure.status : SR_STATE;
}

site_state *recorder_site(sr_recorder *r, int site, const char *call) {
    if (!r || r->failure.status != SR_OK) return NULL;
    if (!r->in_step) {
        sr_fail(&r->failure, SR_STATE, "%s: %s outside a step", r->path, call);
    } else if (site < 0 || site >= r->sites) {
        sr_fail(&r->failure, SR_USAGE, "%s: %s: site %d of %lld", r->path, call, site,
                (long long)r->sites);
    } else {
        return &r->state[site];
    }
    return NULL;
}
