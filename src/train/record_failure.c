/* record_failure.c -- how a run continues or ends when its run file cannot be written:
 * --on-write-error. */
#include <string.h>

#include "train/trainer.h"

/* A failure of the run file stops the run unless the user wants otherwise. */
sr_status trainer_check_record(trainer *r, sr_failure *why) {
    const sr_failure *f = run_record_failed(r->record);
    if (!f) return SR_OK;
    if (!strcmp(r->config->on_write_error, "continue")) {
        if (!r->record_loss_told) trainer_warn(r, "%s; the run continues without it", f->text);
        r->record_loss_told = true;
        return SR_OK;
    }
    sr_fail(why, f->status, "%s", f->text);
    sr_hint(why, "%s", f->hint);
    return f->status;
}

/* Rows do not wait for work that is long compared with the steps. */
sr_status trainer_flush(trainer *r, sr_failure *why) {
    run_record_flush_rows(r->record);
    return trainer_check_record(r, why);
}
