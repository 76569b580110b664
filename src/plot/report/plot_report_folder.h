/* plot_report_folder.h -- the folder of a report: built beside its place, exchanged at the end. */
#ifndef PLOT_REPORT_PLOT_REPORT_FOLDER_H
#define PLOT_REPORT_PLOT_REPORT_FOLDER_H

#include <stdbool.h>

#include "plot/plot_table_cache.h"
#include "plot/template/plot_scratch.h"
#include "statrec/base.h"

#define REPORT_TITLE "<title>statrec report" /* begins the title of every page of a report */

typedef struct report_folder {
    char target[PLOT_PATH]; /* absolute, without links */
    bool exists, whole;     /* there is one already; it can be exchanged as a whole */
    bool force;             /* replaces files that no report wrote */
    plot_scratch build;     /* folder in which the report is made */
} report_folder;

/* Makes the folder build.path. Rejects a page that no report wrote, unless `force`. Removes remains
 * of reports by dead processes in the same place. Close it after a failure too. */
sr_status report_folder_open(report_folder *f, const char *output, bool force, sr_failure *why);
/* Puts the report in its place. Until then the old report is complete, from then on the new one.
 * Files that only the old page names are removed, files of others stay. */
sr_status report_folder_publish(report_folder *f, sr_failure *why);
/* Removes unpublished files. */
void report_folder_close(report_folder *f);

#endif
