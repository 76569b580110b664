/* site_arguments.c -- checks the site argument of a call within a step; flushes rows that are
   due. */
#include "record/site_arguments.h"

#include "record/flush_policy.h"
#include "record/recorder_state.h"

site_state *recorder_site(sr_recorder *r, int site, const char *call) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return NULL;
    if (r->in_step && flush_policy_when_due(r) != SR_OK) return NULL;
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
