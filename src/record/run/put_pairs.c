/* put_pairs.c -- /final/pair_x, pair_y and pair_feature, as the host gives them. */
#include "record/recorder_state.h"
#include "record/run/recorder_start.h"
#include "runfile/pair_check.h"
#include "runfile/write/write_spectra.h"
#include "runfile/write/writer.h"

sr_status sr_put_pairs(sr_recorder *r, int site, const float *x, const float *y,
                       const int32_t *feature) {
    if (!r || recorder_start(r) != SR_OK) return recorder_check(r);
    if (!r->options.pairs)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_put_pairs without sr_options.pairs", r->path);
    if (site < 0 || site >= r->sites || !x || !y || !feature)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_pairs: site %d, or no values", r->path,
                       site);
    const sr_run_site *at = &r->site[site];
    const char *fault = pair_check_fault(x, y, feature, r->options.pairs, at->width);
    if (fault)
        return sr_fail(&r->failure, SR_USAGE, "%s: sr_put_pairs: site %s: %s", r->path, at->name,
                       fault);
    const void *const value[SR_PAIR_COUNT] = {x, y, feature};
    return writer_keep(&r->writer, writer_put_pairs(&r->writer, site, value, &r->failure));
}
