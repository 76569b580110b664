/* table_runs.h -- runs with known evaluations, for tables worked out by hand. */
#ifndef TESTS_TABLE_TABLE_RUNS_H
#define TESTS_TABLE_TABLE_RUNS_H

#include "testing/programs.h"

/* For cmocka: writes the run files of table_runs.c. Each has three evaluations of a translation.
 * ppl.h5 and ptb.h5 have a perplexity, cv.h5 an accuracy. The names in evil.h5 would break a table
 * if printed unescaped. */
int table_runs(void **state);

/* Fails unless the command line prints this below the comments, and nothing on standard error. */
void check_rows(const char *command, const char *want);

/* Columns of pn-table1 and of the toys. */
#define TWO  "IWSLT14 De-En published bleu ↑"
#define NAME "multi30k-de-en bleu"
#define BLEU NAME " ↑"

#endif
