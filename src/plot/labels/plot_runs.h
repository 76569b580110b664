/* plot_runs.h -- the open runs of a figure, and the parts of them that labels name. */
#ifndef PLOT_LABELS_PLOT_RUNS_H
#define PLOT_LABELS_PLOT_RUNS_H

#include "analysis/runs/run_set.h"
#include "runfile/read/read_trailer.h"
#include "statrec/runfile.h"

enum { RUN_MODEL, RUN_NORM, RUN_DATA, RUN_SEED, RUN_PARTS, RUN_PART = 80 };

/* Copies share the file, which plot_runs owns. */
typedef struct plot_run {
    const sr_runfile *file;
    char *path;                         /* as the user gave it; "./" before a dash */
    int look;                           /* line style, from 0 */
    char text[RUN_PARTS][RUN_PART];     /* "" where unknown */
    char task[2 * RUN_PART + 8];        /* "model, data" */
    const char *config;                 /* "" if the run has none */
    char norms[RUN_PART];               /* methods of all sites, a blank after each */
    char uses[SR_KIND_SIZE];            /* statistics that its main method takes from the batch */
    double startup;                     /* burn-in in percent of training */
    bool known;                         /* the file is finished, and `identity` identifies it */
    uint64_t identity[READER_IDENTITY]; /* reader_identify */
} plot_run;

typedef struct plot_runs {
    int count;
    char **path;   /* [count] */
    plot_run *run; /* [count] */
    run_set set;
} plot_runs;

/* Opens each file once, for the labels, the page and the analyses of a figure or report, which find
 * them in run_cache. Warns of repaired files. count may be 0. Call plot_runs_close after a failure,
 * too. */
sr_status plot_runs_open(plot_runs *r, char **paths, int count, sr_failure *why);
void plot_runs_close(plot_runs *r);

/* The custom scalar of this name; NULL if the run declares none. */
const sr_run_declared *plot_run_declared(const plot_run *run, const char *name);

#endif
