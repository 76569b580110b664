/* stat_program.h -- main() of a stat-* program: help, options, open runs, table, errors. */
#ifndef ANALYSIS_FRAME_STAT_PROGRAM_H
#define ANALYSIS_FRAME_STAT_PROGRAM_H

#include <stdio.h>

#include "analysis/runs/run_set.h"
#include "base/options/options.h"

/* Describes one program. */
typedef struct analysis_program {
    const char *name;
    void (*help)(const void *self);
    option_table options;
    void *settings;   /* struct that `options` fills */
    const void *self; /* passed back to help and print */
    /* Prints the table. Prints nothing if it fails before the first row. */
    sr_status (*print)(const void *self, const run_set *set, const char *command, sr_failure *why);
} analysis_program;

/* main(): help, options, opening the runs, print, errors. */
int analysis_program_main(const analysis_program *p, int argc, char **argv);
/* The same for a program that accepts a command line without run files. */
int analysis_program_main_any(const analysis_program *p, int argc, char **argv);

/* Buffers the lines above the header of a table until the first row is certain. */
typedef struct table_head {
    FILE *out;
    char *text;
    size_t size;
} table_head;

/* Begins the table with provenance; then call tsv_note as usual; then one of the two below. */
sr_status table_head_begin(table_head *head, tsv *table, const char *program, const char *command,
                           const run_set *set, sr_failure *why);
/* Prints the buffered lines; the table continues on stdout. */
sr_status table_head_print(table_head *head, tsv *table, sr_failure *why);
void table_head_drop(table_head *head);

#endif
