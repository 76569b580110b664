/* schedule_table.h -- predicted and measured times of a step, by operation and number of threads. */
#ifndef BENCH_SCHEDULE_TABLE_H
#define BENCH_SCHEDULE_TABLE_H

#include "engine/tape.h"
#include "region_schedule.h"

enum { TABLE_MOST_PLANS = 8, TABLE_MOST_ROWS = 2 * PROFILE_OPS + 2 };

typedef struct schedule_row {
    const char *op;
    bool backward;
    double bytes;                                                   /* at least, per step */
    double predicted[TABLE_MOST_PLANS], measured[TABLE_MOST_PLANS]; /* seconds; 0: not measured */
} schedule_row;

/* Initialize with {0}, then plans, threads and cores. */
typedef struct schedule_table {
    int plans, threads[TABLE_MOST_PLANS]; /* numbers of threads */
    int cores;                            /* more threads are predicted only */
    int rounds;
    double bandwidth; /* bytes per second of all threads together; 0: no limit */
    double step[TABLE_MOST_PLANS][SCHEDULE_MOST_LOGS]; /* measured, seconds */
    schedule_log log[TABLE_MOST_PLANS][SCHEDULE_MOST_LOGS];
    schedule_row row[TABLE_MOST_ROWS];
    int rows;
} schedule_table;

/* Counts the bytes that each operation on the tape reads and writes, both passes. */
void schedule_table_bytes(schedule_table *s, const tape *t);
/* Adds a measured step: the profile of its operations, and all of it. */
void schedule_table_measured(schedule_table *s, int plan, int round, const tape_profile *profile,
                             double seconds);
/* False when the steps of a plan did not have the same phases. */
bool schedule_table_print(schedule_table *s, const char *model, const schedule_costs *costs);
void schedule_table_free(schedule_table *s);

#endif
