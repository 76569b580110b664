/* run_identity.h -- normalization, placement and task of a run, and how its settings differ from
   others. */
#ifndef ANALYSIS_RUNS_RUN_IDENTITY_H
#define ANALYSIS_RUNS_RUN_IDENTITY_H

#include <stddef.h>

#include "analysis/runs/run_config.h"

typedef struct run_identity {
    const sr_runfile *run;
    const sr_run_info *info;
    const char *path;
    run_word of_sites;  /* methods of the sites outside of a decoder: "bn", or "bn,ln" */
    run_word norm;      /* "bn", "pn+ls", "ln/unbiased"; of a transformer, its encoder's */
    run_word decoder;   /* the decoder's, "" without one */
    run_word placement; /* value of --placement, "?" if unknown, "" of models without */
    run_word task;      /* "multi30k-de-en", "cifar10" */
} run_identity;

void run_identify(run_identity *r, const sr_runfile *run, const char *path);
/* "key=value" of each setting that differs among runs[count]. Leaves out settings without effect on
 * the result (seed, output, threads, recording). */
void run_settings(const run_identity *r, const run_identity *const *runs, int count, char *text,
                  size_t size);
/* Number of such settings that differ between two runs. */
int run_distance(const run_identity *a, const run_identity *b);

#endif
