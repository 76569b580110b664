/* diagnose.h -- finds faults of a run's normalization and their sites: asks questions of run
 * files. */
#ifndef DIAGNOSE_DIAGNOSE_H
#define DIAGNOSE_DIAGNOSE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/program/tool.h"
#include "statrec/runfile.h"

/* True of a method, by its name, whose batch may be spread over shards and ranks (--sync-norm). */
typedef bool diagnose_synchronizes_fn(const char *norm);

/* One page of text for each of paths[count]. worst: 0 nothing found, 1 minor, 2 notable, 3 severe,
 * over all of them. */
sr_status diagnose_page(char **paths, int count, diagnose_synchronizes_fn *synchronizes, FILE *out,
                        int *worst, sr_failure *why);
/* A row for each run and question; program "statrec diagnose", tsv.h decides the format. */
sr_status diagnose_table(char **paths, int count, diagnose_synchronizes_fn *synchronizes,
                         const char *command, FILE *out, int *worst, sr_failure *why);
/* The usual ranges, as src/diagnose/healthy_ranges.h has them: those that are said of "vision",
 * "text" or "watched" runs. */
sr_status diagnose_healthy(const char *kind, char **paths, int count, FILE *out, sr_failure *why);
/* A finding: question's id, "minor", "notable" or "severe", 1 to 3 for it, all of it in a line. */
typedef struct diagnose_finding {
    const char *question, *severity;
    int weight;
    const char *line;
} diagnose_finding;
typedef void diagnose_finding_fn(void *context, const diagnose_finding *found);
/* Each finding of an open run, the weightiest first. */
sr_status diagnose_findings(const sr_runfile *run, const char *path,
                            diagnose_synchronizes_fn *synchronizes, diagnose_finding_fn *tell,
                            void *context, sr_failure *why);
/* Every question with its criterion and source, for --help. */
void diagnose_list(FILE *out);

/* Statistics at the worst site of each run beside its measured gap: src/diagnose/harm_ranges.h. */
sr_status diagnose_harm(char **paths, int count, FILE *out, sr_failure *why);

/* A line on standard error for each of these files that is damaged, or was read from its backup
   copies. */
void diagnose_warn_damage(const tool *t, int count, char **paths);

#endif
