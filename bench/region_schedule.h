/* region_schedule.h -- runs the threads of OpenMP regions one after another on one core, and times each.
 *
 * Between schedule_begin and schedule_end, a region of P threads runs as P coroutines on the thread
 * that opened it. A coroutine runs to the next barrier, then the next one does. A phase is the time
 * between two barriers, or between two regions (then of one thread). The log of a step has every
 * phase with the processor time of every thread, so that other processes do not count:
 *   makespan of a step = sum over phases of the longest thread + its cost to start
 * Libraries that are called inside a region see one thread, as in our regions.
 *
 * The functions of gcc's OpenMP library that are defined in region_schedule.c pass all other
 * calls on. */
#ifndef BENCH_REGION_SCHEDULE_H
#define BENCH_REGION_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum { SCHEDULE_MOST_THREADS = 64, SCHEDULE_MOST_LOGS = 99 };

/* How a phase starts: after serial work, with a fork (and later a join), or after a barrier. */
typedef enum schedule_start { STARTS_SERIAL, STARTS_FORK, STARTS_BARRIER } schedule_start;

typedef struct schedule_phase {
    const char *op;
    bool backward;
    schedule_start start;
    int threads;
    int64_t at; /* index of its first thread in `seconds` */
} schedule_phase;

/* Initialize with {0}. */
typedef struct schedule_log {
    schedule_phase *phase;
    int64_t phases, phase_room;
    double *seconds; /* per phase and thread */
    int64_t count, room;
} schedule_log;

/* Costs in seconds of an empty region and of a barrier in it, by their number of threads. */
typedef struct schedule_costs {
    double fork[SCHEDULE_MOST_THREADS + 1], barrier[SCHEDULE_MOST_THREADS + 1];
    int measured; /* threads up to which it was measured; beyond, in proportion to threads */
} schedule_costs;

/* False when another compiler's OpenMP library opens the regions. */
bool schedule_possible(void);
/* Empties the log and fills it until schedule_end. */
void schedule_begin(schedule_log *log);
void schedule_end(void);
/* Names the phases since the last label. Does nothing without a log. */
void schedule_label(const char *op, bool backward);
void schedule_free(schedule_log *log);

/* With real threads, at most `cores`. */
schedule_costs schedule_measure_costs(int cores);
/* Seconds of a phase: the slowest thread, by the median of its times in `logs` of equal steps. */
double schedule_phase_seconds(const schedule_log *logs, int count, int64_t phase,
                              const schedule_costs *costs);

#endif
