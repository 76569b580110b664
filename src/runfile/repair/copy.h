/* copy.h -- what can be read of a run file goes into a recorder that was declared like it. */
#ifndef RUNFILE_REPAIR_COPY_H
#define RUNFILE_REPAIR_COPY_H

#include "record/recorder.h"
#include "runfile/read/reader.h"
#include "runfile/unreadable_data.h"

/* copy_rows.c: all that can be read of a broken file into a recorder that was declared like it; notes in
 * `losses` what cannot. */
sr_status recorder_copy_rows(sr_recorder *r, struct sr_runfile *from, int64_t up_to_step,
                             struct sr_recovery *result, struct unreadable_data *losses);

/* copy_compatible.c: SR_USAGE where the file is of other sites, embeddings, metrics or scalars; scalars of its
 * host's that the recorder has not are declared. */
sr_status recorder_copy_match(sr_recorder *r, const struct sr_runfile *f,
                              struct unreadable_data *losses);

/* copy_spectra.c: rows of a run file into the recorder (step <= up_to; < 0: all). */
sr_status recorder_copy_spectra(sr_recorder *r, const struct sr_runfile *f, int64_t up_to,
                                struct unreadable_data *losses);
sr_status recorder_copy_final(sr_recorder *r, const struct sr_runfile *f,
                              struct unreadable_data *losses);

/* copy_pairs.c: those of /final, once it is known whether the pass was made. */
sr_status recorder_copy_pairs(sr_recorder *r, const struct sr_runfile *f, bool passed,
                              struct unreadable_data *losses);

#endif
