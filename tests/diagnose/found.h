/* found.h -- output of statrec diagnose for the run of write_planted_run. */
#ifndef TESTS_DIAGNOSE_FOUND_H
#define TESTS_DIAGNOSE_FOUND_H

#include "planted.h"
#include "testing/programs.h"

/* Must succeed. */
program_result diagnose(const char *options);
/* The table for a run written from this plan. */
program_result advice(plan p);
int row_of(const program_result *r, const char *question);
int findings(const program_result *r);
/* Expects one finding: this question, at this site. The whole interval must be beyond the limit,
 * and the finding's figure must be drawable. */
program_result check_found(const plan *p, const char *question, const char *severity,
                           const char *site);
/* The same, with the value between these. */
void found(const plan *p, const char *question, const char *severity, const char *site, double low,
           double high);
/* The question's row contains the words in this column, or not. */
void holds(const program_result *r, const char *question, const char *column, const char *words,
           bool wanted);
void says(const program_result *r, const char *question, const char *words);
void advises(const program_result *r, const char *question, const char *words, bool wanted);

#endif
