/* running.c -- writes the running statistics of sr_take_* to /running; a run may resume from
   them. */
#include "record/run/running.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/flush_policy.h"
#include "record/recorder_state.h"
#include "runfile/write/write_running.h"

double *running_values(const raw_state *raw, int which) {
    return (double *const[RUN_RUNNING]){raw->mu, raw->sigma2, raw->psi2, raw->nu}[which];
}

sr_status running_put(sr_recorder *r) {
    const running_rows *rows = &r->writer.running;
    bool any = false;
    for (int64_t i = 0; i < r->sites; i++) any |= r->state[i].raw.mu && !isnan(r->site[i].alpha);
    if (!r->writer.layout.running || r->ended < 0 || r->ended == rows->last || !any)
        return recorder_check(r);
    double *all = malloc(RUN_RUNNING * (size_t)r->width * sizeof *all);
    const double *row[RUN_RUNNING];
    if (!all)
        return sr_fail(&r->failure, SR_MEMORY, "%s: running values of %lld columns", r->path,
                       (long long)r->width);
    for (int i = 0; i < RUN_RUNNING; i++) {
        row[i] = all + i * r->width;
        for (int64_t j = 0; j < r->sites; j++) {
            const sr_run_site *s = &r->site[j];
            const double *from = running_values(&r->state[j].raw, i);
            for (int64_t k = 0; k < s->width; k++)
                all[i * r->width + s->offset + k] = from ? from[k] : NAN;
        }
    }
    sr_status status = writer_put_running(&r->writer, r->ended, row, &r->failure);
    free(all);
    return status;
}

sr_status sr_flush(sr_recorder *r) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r) || !r->started)
        return recorder_check(r);
    const double began = recorder_clock();
    if (running_put(r) != SR_OK) return recorder_check(r);
    r->own_seconds += recorder_clock() - began;
    return flush_policy_now(r);
}
