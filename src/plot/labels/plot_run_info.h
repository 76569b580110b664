/* plot_run_info.h -- the parts of run files that labels are made of. */
#ifndef PLOT_LABELS_PLOT_RUN_INFO_H
#define PLOT_LABELS_PLOT_RUN_INFO_H

#include "statrec/runfile.h"

enum {
    FACTS_PARTS = 4,
    FACTS_PART = 80,
    FACTS_MODEL = 0,
    FACTS_NORM = 1,
    FACTS_DATA = 2,
    FACTS_SEED = 3
};

typedef struct facts_declared {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE];
    bool of_steps; /* a number of steps, not of sites */
} facts_declared;

typedef struct plot_run_info {
    char text[FACTS_PARTS][FACTS_PART]; /* model, norm, data, seed */
    char *config;                       /* owned */
    facts_declared *declared;           /* [declares], owned: what the run declares */
    int declares;
    char norms[FACTS_PART]; /* methods of all sites, each with a blank behind it */
    char uses[SR_KIND_SIZE];
    bool has_site;
    sr_run_site site; /* the main one */
    double startup;
} plot_run_info;

/* *facts [count], to be given to plot_run_info_free; NULL after a failure. */
sr_status plot_run_info_read(plot_run_info **facts, char **paths, int count, sr_failure *why);
void plot_run_info_free(plot_run_info *facts, int count);
/* [count] those of runs place[0] .. place[count - 1], to be given to free() while `facts` stay;
 * NULL when out of memory. */
plot_run_info *plot_run_info_choose(const plot_run_info *facts, const int *place, int count);

/* NULL when the run declares no number of this name. */
const facts_declared *plot_run_info_find(const plot_run_info *p, const char *name);

#endif
