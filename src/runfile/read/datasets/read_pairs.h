/* read_pairs.h -- input and output pairs of sites, from the final pass. */
#ifndef RUNFILE_READ_DATASETS_READ_PAIRS_H
#define RUNFILE_READ_DATASETS_READ_PAIRS_H

#include "runfile/read/file/reader.h"

/* The pairs of one site, [info.pairs] each. */
typedef struct reader_pairs {
    float *x, *y;
    int32_t *feature;
} reader_pairs;

/* False when out of memory; free it in any case. */
bool reader_pairs_init(reader_pairs *p, int64_t count);
void reader_pairs_free(reader_pairs *p);
/* Fills f->info.pairs. */
sr_status reader_count_pairs(sr_runfile *f, sr_failure *why);
/* Reads a site's pairs. Returns the first unreadable column, or NULL. */
const run_column *reader_read_pairs(const sr_runfile *f, int64_t site, const reader_pairs *p,
                                    sr_failure *why);
/* Reads and checks a site's pairs. passed: the final pass was made; without it they have no
   values. */
sr_status reader_check_site_pairs(const sr_runfile *f, int64_t site, bool passed,
                                  const reader_pairs *p, sr_failure *why);
/* Reads and checks the pairs of all sites. */
sr_status reader_check_pairs(const sr_runfile *f, sr_failure *why);

#endif
