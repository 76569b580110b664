/* plot_facts.h -- what is read of a run file for the labels of its curves. */
#ifndef PLOT_PLOT_FACTS_H
#define PLOT_PLOT_FACTS_H

#include "statnet/plot.h"
#include "statrec/runfile.h"

enum {
    FACTS_PARTS = 4,
    FACTS_PART = 80,
    FACTS_MODEL = 0,
    FACTS_NORM = 1,
    FACTS_DATA = 2,
    FACTS_SEED = 3
};

struct plot_facts {
    char text[FACTS_PARTS][FACTS_PART]; /* model, norm, data, seed */
    char *config;                       /* owned */
    char *declared;         /* owned: names of what the run declares, a newline behind each */
    char norms[FACTS_PART]; /* methods of all sites, each with a blank behind it */
    char uses[SR_KIND_SIZE];
    bool has_site;
    sr_run_site site; /* the main one */
    double startup;
};

#endif
