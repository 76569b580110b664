/* write_spectra.h -- writes singular values of sites and embeddings, and the final pass. */
#ifndef RUNFILE_WRITE_WRITE_SPECTRA_H
#define RUNFILE_WRITE_WRITE_SPECTRA_H

#include "runfile/write/run_writer.h"

/* Writes the row of /spectra of this step, if the step has one. */
sr_status writer_put_spectra(run_writer *w, int64_t step, sr_failure *why);
/* Appends a record of an embedding's singular values. */
sr_status writer_put_singular_values(run_writer *w, run_embedding *e, int64_t step,
                                     const double *values, sr_failure *why);
/* Fills /final: value[f] [S]. */
sr_status writer_put_final(run_writer *w, int64_t batches, const double *const *value,
                           sr_failure *why);
/* Pairs of one site: value[p] [layout.pairs], with the types of SR_PAIRS. */
sr_status writer_put_pairs(run_writer *w, int64_t site, const void *const value[SR_PAIR_COUNT],
                           sr_failure *why);

#endif
