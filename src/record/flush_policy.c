/* flush_policy.c -- when buffered rows are flushed: after options.flush_steps rows, and at the
 * latest options.flush_seconds after a row was put. The duration of the next step or evaluation
 * does not matter.
 *
 * There is no thread and no signal, since the host program may use HDF5, too. Every call of the
 * recorder checks the clock. The end of a step also counts the duration of the last step. Before
 * longer work without such calls the host program calls sr_flush_rows.
 */
#include "record/flush_policy.h"

#include "journal/lock_file.h"
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

/* The first buffered row starts the clock. */
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

/* With SR_SYNC_FLUSH, flushes after flush_steps steps take at most FLUSH_SHARE of the time, since a
 * sync may take longer than short steps. A flush_steps below the default is always obeyed. */
static bool steps_are_due(const sr_recorder *r) {
    const int64_t steps = r->options.flush_steps;
    if (r->unflushed < steps) return false;
    if (r->options.sync != SR_SYNC_FLUSH || steps < FLUSH_STEPS) return true;
    return r->unflushed % steps == 0 &&
           FLUSH_SHARE * (recorder_clock() - r->clock_flush) >= r->flush_cost;
}

sr_status flush_policy_when_due(sr_recorder *r) {
    lock_file_beat(&r->writer.lock);
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
