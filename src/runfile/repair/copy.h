/* copy.h -- copies the readable part of a run file into a recorder that was declared like it. */
#ifndef RUNFILE_REPAIR_COPY_H
#define RUNFILE_REPAIR_COPY_H

#include "record/recorder.h"
#include "runfile/read/file/reader.h"
#include "runfile/repair/copy_plan.h"
#include "runfile/repair/unreadable_data.h"

/* Each function notes unreadable data in `losses`. up_to: copy rows with step <= up_to; < 0: all
 * rows. plan: copy these rows, of these sites; NULL: all. */

/* copy_rows.c: copies everything, for recovery, or the planned rows; then the caller keeps the time
 * of the start (recorder_take_created). */
sr_status recorder_copy_rows(sr_recorder *r, sr_runfile *from, const copy_plan *plan, int64_t up_to,
                             sr_recovery *result, unreadable_data *losses);
sr_status recorder_take_created(sr_recorder *r, const char *created);

/* copy_compatible.c: SR_USAGE if the file has other sites, embeddings or metrics than the recorder.
 * Declares the custom scalars that the recorder lacks. */
sr_status recorder_copy_match(sr_recorder *r, const sr_runfile *f, unreadable_data *losses);

/* copy_spectra.c: copies /spectra, and /final. */
sr_status recorder_copy_spectra(sr_recorder *r, const sr_runfile *f, const copy_plan *plan,
                                int64_t up_to, unreadable_data *losses);
sr_status recorder_copy_final(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                              unreadable_data *losses);

/* copy_pairs.c: copies the pairs of /final. passed: the final pass was made. */
sr_status recorder_copy_pairs(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                              bool passed, unreadable_data *losses);

/* copy_running.c: copies /running. *step: step of the row that the recorder resumes from, -1:
 * none. */
sr_status recorder_copy_running(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                                int64_t up_to, int64_t *step, unreadable_data *losses);

#endif
