/* comparability.h -- warns about statistics that may not be compared between runs. */
#ifndef ANALYSIS_FRAME_COMPARABILITY_H
#define ANALYSIS_FRAME_COMPARABILITY_H

#include "analysis/frame/site_selection.h"

/* Writes a `# warning:` line for each wanted statistic that depends on a setting in which a run
 * differs from the first run that has it. The line names a statistic that may be compared. */
void comparable_warn(const choice *c, const run_set *set, tsv *table);

#endif
