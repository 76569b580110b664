/* read_spectra.h -- singular values of sites, and the final pass. */
#ifndef RUNFILE_READ_DATASETS_READ_SPECTRA_H
#define RUNFILE_READ_DATASETS_READ_SPECTRA_H

#include "runfile/read/file/reader.h"

/* One row of /spectra in memory. */
typedef struct spectra_copy {
    int64_t step, *rows;              /* [S] */
    double *value[SR_SPECTRUM_COUNT]; /* [W] each, one block */
} spectra_copy;

/* False when out of memory; free it in any case. */
bool reader_spectra_init(spectra_copy *c, const sr_runfile *f);
void reader_spectra_free(spectra_copy *c);
/* Reads rows of one column of /spectra. */
sr_status reader_spectra_part(const sr_runfile *f, const run_column *c, const h5_rows *rows,
                              void *value, sr_failure *why);

/* Fills f->info.spectra. */
sr_status reader_count_spectra(sr_runfile *f, sr_failure *why);
/* Reads every row; their steps must be steps of the run. exact: columns must have no further
   rows. */
sr_status reader_check_spectra(const sr_runfile *f, bool exact, sr_failure *why);
/* Reads all of /final. */
sr_status reader_check_final(const sr_runfile *f, sr_failure *why);

#endif
