#define _GNU_SOURCE /* RTLD_NEXT */
#include "region_schedule.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/amx/gemm_amx.h"

enum { STACK_BYTES = 4 << 20 };

typedef void region_fn(void *data);

typedef struct tile_shape {
    uint8_t byte[64];
} tile_shape;

/* A thread of the region. */
typedef struct coroutine {
    ucontext_t context;
    char *stack;
    int allowed; /* omp_get_max_threads of this thread */
    bool done;
    tile_shape tiles;
} coroutine;

static struct simulation {
    schedule_log *log; /* NULL: regions run as always */
    double mark, clock_cost;
    int64_t labelled;     /* phases with a label */
    int threads, current; /* threads of the region; 0: outside regions */
    bool nested;          /* in a region within the region */
    region_fn *run;
    void *data;
    ucontext_t caller;
    coroutine thread[SCHEDULE_MOST_THREADS];
} sim;

static void *must(void *p) {
    if (p) return p;
    fprintf(stderr, "schedule: out of memory\n");
    exit(1);
}

static void *real_function(const char *name) {
    void *f = dlsym(RTLD_NEXT, name);
    if (f) return f;
    fprintf(stderr, "schedule: no %s in the OpenMP library\n", name);
    exit(1);
}

/* -- log ------------------------------------------------------------------------------------------- */

static double processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Since the last call, without the clock's own time. */
static double lap(void) {
    const double now = processor_seconds(), spent = now - sim.mark - sim.clock_cost;
    sim.mark = now;
    return spent > 0 ? spent : 0;
}

static void skip_lap(void) {
    sim.mark = processor_seconds();
}

static double clock_cost(void) {
    enum { TURNS = 1000 };
    const double start = processor_seconds();
    for (int i = 0; i < TURNS; i++) processor_seconds();
    return (processor_seconds() - start) / TURNS;
}

/* Adds a phase and room for the times of its threads. */
static double *log_phase(schedule_start start, int threads) {
    schedule_log *l = sim.log;
    if (l->phases == l->phase_room) {
        l->phase_room = 2 * l->phase_room + 1024;
        l->phase = must(realloc(l->phase, (size_t)l->phase_room * sizeof *l->phase));
    }
    if (l->count + threads > l->room) {
        l->room = 2 * l->room + 1024 + threads;
        l->seconds = must(realloc(l->seconds, (size_t)l->room * sizeof *l->seconds));
    }
    l->phase[l->phases++] = (schedule_phase){.start = start, .threads = threads, .at = l->count};
    l->count += threads;
    return l->seconds + l->phase[l->phases - 1].at;
}

static void log_serial(void) {
    const double spent = lap();
    *log_phase(STARTS_SERIAL, 1) = spent;
    skip_lap();
}

void schedule_begin(schedule_log *log) {
    log->phases = log->count = 0;
    sim.clock_cost = clock_cost();
    sim.labelled = 0;
    sim.log = log;
    skip_lap();
}

void schedule_label(const char *op, bool backward) {
    schedule_log *l = sim.log;
    if (!l) return;
    log_serial();
    for (; sim.labelled < l->phases; sim.labelled++) {
        l->phase[sim.labelled].op = op;
        l->phase[sim.labelled].backward = backward;
    }
}

void schedule_end(void) {
    schedule_label("rest", true);
    sim.log = NULL;
}

void schedule_free(schedule_log *log) {
    free(log->phase);
    free(log->seconds);
    *log = (schedule_log){0};
}

/* -- regions --------------------------------------------------------------------------------------- */

#ifdef PRODUCT_AMX
#define TILES __attribute__((target("amx-tile")))
static TILES void tiles_save(tile_shape *s) {
    if (amx_native()) _tile_storeconfig(s->byte);
}
static TILES void tiles_restore(const tile_shape *s) {
    if (amx_native()) _tile_loadconfig(s->byte);
}
#else
static void tiles_save(tile_shape *s) {
    (void)s;
}
static void tiles_restore(const tile_shape *s) {
    (void)s;
}
#endif

static void coroutine_main(void) {
    sim.run(sim.data);
    sim.thread[sim.current].done = true;
}

static void coroutine_make(coroutine *c, int allowed) {
    if (!c->stack) c->stack = must(malloc(STACK_BYTES));
    c->done = false;
    c->allowed = allowed;
    memset(&c->tiles, 0, sizeof c->tiles);
    getcontext(&c->context);
    c->context.uc_stack.ss_sp = c->stack;
    c->context.uc_stack.ss_size = STACK_BYTES;
    c->context.uc_link = &sim.caller;
    makecontext(&c->context, coroutine_main, 0);
}

/* Runs a coroutine to the next barrier, or the end; returns the time spent. */
static double coroutine_run(coroutine *c) {
    omp_set_num_threads(c->allowed);
    tiles_restore(&c->tiles);
    skip_lap();
    swapcontext(&sim.caller, &c->context);
    const double spent = lap();
    tiles_save(&c->tiles);
    c->allowed = omp_get_max_threads();
    return spent;
}

/* Runs a phase of all threads; false when it was the last. */
static bool phase_run(schedule_start start) {
    double *seconds = log_phase(start, sim.threads);
    for (sim.current = 0; sim.current < sim.threads; sim.current++)
        seconds[sim.current] = coroutine_run(&sim.thread[sim.current]);
    return !sim.thread[0].done;
}

static void region_run(region_fn *run, void *data, int threads) {
    const int allowed = omp_get_max_threads();
    tile_shape tiles;
    log_serial();
    tiles_save(&tiles);
    sim.threads = threads;
    sim.run = run;
    sim.data = data;
    for (int i = 0; i < threads; i++) coroutine_make(&sim.thread[i], allowed);
    for (schedule_start start = STARTS_FORK; phase_run(start);) start = STARTS_BARRIER;
    sim.threads = 0;
    omp_set_num_threads(allowed);
    tiles_restore(&tiles);
    skip_lap();
}

/* A region within a region, as libraries open them: one thread. */
static void nested_run(region_fn *run, void *data) {
    const int threads = sim.threads, current = sim.current;
    const bool nested = sim.nested;
    sim.threads = 1;
    sim.current = 0;
    sim.nested = true;
    run(data);
    sim.threads = threads;
    sim.current = current;
    sim.nested = nested;
}

/* -- the functions of gcc's OpenMP library --------------------------------------------------------- */

void GOMP_parallel(region_fn *run, void *data, unsigned threads, unsigned flags);
void GOMP_barrier(void);

void GOMP_parallel(region_fn *run, void *data, unsigned threads, unsigned flags) {
    static void (*next)(region_fn *, void *, unsigned, unsigned);
    if (!next) *(void **)&next = real_function("GOMP_parallel");
    const int wanted = threads ? (int)threads : omp_get_max_threads();
    if (sim.log && sim.threads)
        nested_run(run, data);
    else if (sim.log && wanted <= SCHEDULE_MOST_THREADS)
        region_run(run, data, wanted);
    else
        next(run, data, threads, flags);
}

void GOMP_barrier(void) {
    static void (*next)(void);
    if (!next) *(void **)&next = real_function("GOMP_barrier");
    if (!sim.log || !sim.threads)
        next();
    else if (!sim.nested)
        swapcontext(&sim.thread[sim.current].context, &sim.caller);
}

int omp_get_thread_num(void) {
    static int (*next)(void);
    if (!next) *(void **)&next = real_function("omp_get_thread_num");
    return sim.log && sim.threads ? sim.current : next();
}

int omp_get_num_threads(void) {
    static int (*next)(void);
    if (!next) *(void **)&next = real_function("omp_get_num_threads");
    return sim.log && sim.threads ? sim.threads : next();
}

bool schedule_possible(void) {
    schedule_log log = {0};
    int runs = 0;
    schedule_begin(&log);
#pragma omp parallel num_threads(3)
    {
#pragma omp atomic
        runs++;
    }
    schedule_end();
    const bool good = runs == 3 && log.phases == 3;
    schedule_free(&log);
    return good;
}

/* -- costs ----------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, int count) {
    qsort(value, (size_t)count, sizeof *value, ascending);
    return (value[(count - 1) / 2] + value[count / 2]) / 2;
}

static double region_seconds(int threads, int barriers) {
    const double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
    for (int i = 0; i < barriers; i++) {
#pragma omp barrier
    }
    return omp_get_wtime() - start;
}

/* The fastest tenth: if another process has the core, a region takes milliseconds. */
static double fast_region(int threads, int barriers) {
    enum { TURNS = 1001 };
    static double seconds[TURNS];
    for (int i = 0; i < TURNS; i++) seconds[i] = region_seconds(threads, barriers);
    qsort(seconds, TURNS, sizeof *seconds, ascending);
    return seconds[TURNS / 10];
}

schedule_costs schedule_measure_costs(int cores) {
    enum { BARRIERS = 8 };
    schedule_costs c = {.measured = cores < SCHEDULE_MOST_THREADS ? cores : SCHEDULE_MOST_THREADS};
    for (int n = 2; n <= SCHEDULE_MOST_THREADS; n++) {
        const double part = (double)n / c.measured;
        if (n > c.measured) {
            c.fork[n] = part * c.fork[c.measured];
            c.barrier[n] = part * c.barrier[c.measured];
            continue;
        }
        c.fork[n] = fast_region(n, 0);
        const double barriers = fast_region(n, BARRIERS) - c.fork[n];
        c.barrier[n] = barriers > 0 ? barriers / BARRIERS : 0;
    }
    return c;
}

double schedule_phase_seconds(const schedule_log *logs, int count, int64_t phase,
                              const schedule_costs *costs) {
    const schedule_phase *p = &logs->phase[phase];
    double longest = 0, seconds[SCHEDULE_MOST_LOGS];
    for (int thread = 0; thread < p->threads; thread++) {
        for (int i = 0; i < count; i++) seconds[i] = logs[i].seconds[p->at + thread];
        const double of_thread = median(seconds, count);
        if (of_thread > longest) longest = of_thread;
    }
    if (p->start == STARTS_FORK) longest += costs->fork[p->threads];
    if (p->start == STARTS_BARRIER) longest += costs->barrier[p->threads];
    return longest;
}
