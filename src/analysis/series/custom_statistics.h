/* custom_statistics.h -- custom scalars: numbers that the program of a run declares
   (sr_declare_scalar). */
#ifndef ANALYSIS_SERIES_CUSTOM_STATISTICS_H
#define ANALYSIS_SERIES_CUSTOM_STATISTICS_H

#include "analysis/runs/run_set.h"
#include "analysis/series/statistic.h"

/* The declaration of a name in a run, or in the first run that has one. NULL: none. */
const sr_run_declared *declared_named(const sr_runfile *run, const char *name, sr_scope scope);
const sr_run_declared *declared_find(const run_set *set, const char *name, sr_scope scope);
/* Their names, each once, in the order of the runs, at most `most`; returns how many. */
int declared_list(const run_set *set, sr_scope scope, const char **names, int most);
enum { DECLARED_TEXT = SR_DEFINITION_SIZE + SR_NAME_SIZE + 8 };
/* "definition (unit)" */
void declared_text(const sr_run_declared *d, char text[DECLARED_TEXT]);
/* Writes a `# warning:` line if runs declare one name with different units. Writes a `# note:` line
 * for each run whose definition differs from the first. */
void declared_warn(const run_set *set, const char *name, sr_scope scope, tsv *table);

/* A custom scalar per site as a statistic. */
typedef struct own_statistic {
    statistic stat;
    const sr_run_declared *of; /* as the first run with it declares it */
    char definition[DECLARED_TEXT];
} own_statistic;

#endif
