/* programs.h -- runs the built programs from a test; run_builder.h makes run files for them. */
#ifndef TESTS_PROGRAMS_H
#define TESTS_PROGRAMS_H

#include <stdbool.h>

#include "testing/run_builder.h"

/* BUILD/bin of the build that this test belongs to. Fails the test when `make all` has not been
 * run. */
const char *program_directory(void);

typedef struct program_result {
    int status;      /* exit status, or 128 + signal */
    char *out, *err; /* malloc'd texts */
} program_result;

/* Runs a shell command line with program_directory() first on PATH, in check_temporary(). Free the
 * result with program_free. */
program_result program_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
void program_free(program_result *r);

/* False, with a visible "skipped", if gnuplot is not installed. */
bool have_gnuplot(void);

/* Cell of a printed table: the row-th row (from 0) below the header; NULL when it is not there.
 * Static storage. */
const char *table_cell(const char *table, int row, const char *column);
double table_real(const char *table, int row, const char *column); /* fails when it is not there */
/* Fails the test unless the cell is near the number (1e-6 relative), or is the text. */
void check_cell(const program_result *r, int row, const char *column, double want);
void check_text(const program_result *r, int row, const char *column, const char *want);
int table_rows(const char *table);

/* check_temporary()/NAME. Static storage, four at a time. */
const char *program_file(const char *name);
/* Writes it with this text. */
void program_write(const char *name, const char *text);

#endif
