/* table_runs.h -- runs whose evaluations are known, for tables worked out by hand. */
#ifndef TESTS_TABLE_TABLE_RUNS_H
#define TESTS_TABLE_TABLE_RUNS_H

#include "testing/programs.h"

/* For cmocka: writes the toys of table_runs.c, three evaluations of a translation run each; ppl.h5
 * and ptb.h5 with a perplexity; cv.h5 with an accuracy, and evil.h5, whose names would break a
 * table. */
int table_runs(void **state);

/* Fails unless the command line prints this below the comments, and nothing on standard error. */
void check_rows(const char *command, const char *want);

/* Columns of pn-table1 and of the toys. */
#define TWO  "IWSLT14 De-En published bleu ↑"
#define NAME "multi30k-de-en bleu"
#define BLEU NAME " ↑"

#endif
