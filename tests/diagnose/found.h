/* found.h -- what statrec diagnose says of the run that write_planted_run left. */
#ifndef TESTS_DIAGNOSE_FOUND_H
#define TESTS_DIAGNOSE_FOUND_H

#include "planted.h"
#include "testing/programs.h"

/* Must succeed. */
program_result diagnose(const char *options);
/* The table of a run planted so. */
program_result advice(plan p);
int row_of(const program_result *r, const char *question);
int findings(const program_result *r);
/* One finding: this question, at this site, with an interval around its value beyond the limit, and
 * a figure that can be drawn. */
program_result check_found(const plan *p, const char *question, const char *severity,
                           const char *site);
/* The same, its value between these. */
void found(const plan *p, const char *question, const char *severity, const char *site, double low,
           double high);
/* What the row of the question has in this column holds the words, or does not. */
void holds(const program_result *r, const char *question, const char *column, const char *words,
           bool wanted);
void says(const program_result *r, const char *question, const char *words);
void advises(const program_result *r, const char *question, const char *words, bool wanted);

#endif
