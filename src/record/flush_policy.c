/* flush_policy.c -- when rows that wait in memory go to the file: after options.flush_steps of
 * them, and none later than options.flush_seconds after it was put, however long the step,
 * evaluation or pass takes that follows it. There is no thread and no signal, as HDF5 is the host's
 * too: every call of the recorder looks at the clock, and the end of a step looks ahead by as long
 * as the last one took. What calls nothing for longer than that is preceded by sr_flush_rows.
 */
#include "record/flush_policy.h"

#include "record/part_file.h"
#include "record/recorder_state.h"
#include "runfile/write/writer.h"

#define FLUSH_SHARE 0.01
enum { FLUSH_STEPS = 64 }; /* the default */

sr_status flush_policy_now(sr_recorder *r) {
    const double began = r->clock_flush = recorder_clock();
    r->unflushed = 0, r->waits = false;
    sr_status status = writer_flush(&r->writer, &r->failure);
    if (status == SR_OK) status = writer_keep(&r->writer, part_file_check(r, &r->failure));
    r->flush_cost = recorder_clock() - began;
    if (status == SR_OK) r->file_bytes = h5_end_of(r->writer.file);
    if (status == SR_OK) r->file_vectors = r->writer.vectors.written;
    r->own_seconds += recorder_clock() - began;
    return status;
}

sr_status sr_flush_rows(sr_recorder *r) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r) || !r->started || !r->waits)
        return recorder_check(r);
    return flush_policy_now(r);
}

/* Where nothing waited the clock starts with what comes. */
static void begin_waiting(sr_recorder *r) {
    if (!r->waits) r->clock_flush = recorder_clock();
    r->waits = true;
}

void flush_policy_ended(sr_recorder *r) {
    const double now = recorder_clock();
    begin_waiting(r);
    r->unflushed++;
    r->row_seconds = now - r->clock_row, r->clock_row = now;
}

/* Short steps do not wait for the disk after each flush_steps of them, as it may take longer than
 * they do: FLUSH_SHARE of the time at most, if that is soon enough for flush_seconds. Who asks for
 * fewer steps than the default gets them. */
static bool steps_are_due(const sr_recorder *r) {
    const int64_t steps = r->options.flush_steps;
    if (r->unflushed < steps) return false;
    if (r->options.sync != SR_SYNC_FLUSH || steps < FLUSH_STEPS) return true;
    return r->unflushed % steps == 0 &&
           FLUSH_SHARE * (recorder_clock() - r->clock_flush) >= r->flush_cost;
}

sr_status flush_policy_when_due(sr_recorder *r) {
    if (!r->waits || !r->started || r->failure.status != SR_OK) return recorder_check(r);
    const double ahead = r->in_step ? 0 : r->row_seconds;
    const double age = recorder_clock() - r->clock_flush + ahead;
    if (age < r->options.flush_seconds && !steps_are_due(r)) return SR_OK;
    return flush_policy_now(r);
}

sr_status flush_policy_beside(sr_recorder *r) {
    begin_waiting(r);
    return flush_policy_when_due(r);
}
