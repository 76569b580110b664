/* bench_analysis.c -- speed of `stat-distance --from vectors` against plainly reading its vectors.
 *
 *   bench_analysis BIN [ROUNDS] [STEPS]      default 5 rounds, 10000 steps; BIN holds the programs
 *
 * Makes a run file of STEPS x 13 sites x d 512 x the six vectors that stat-distance needs for all
 * five of its statistics (1.6 GB at 10000 steps) in $TMPDIR. A round times, one after the other,
 *
 *   read      a process that reads these six datasets with H5Dread into one buffer, READ_ROWS whole
 *             rows of each, then the next rows: in file order, with the fastest of the sizes and
 *             orders tried (64 to 1024 rows, dataset by dataset)
 *   analysis  stat-distance --from vectors, start to end, loading the program included
 *
 * Then the same beside a process that only computes (`busy`), and with the file dropped from the
 * page cache before each (`cold`). Wall, user and system time are medians over the rounds. `ratio`
 * is the analysis's speed divided by the reading speed; `peak` is the largest resident size of any
 * round.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program/progress.h"
#include "base/rng.h"
#include "statrec/record.h"

enum { SITES = 13, WIDTH = 512, READ_ROWS = 64, MOST_ROUNDS = 100, TABLE = 4096 };

static const char *const needed[] = {"mu_B", "sigma2_B", "psi2_B", "mu", "sigma2", "psi2"};
enum { NEEDED = sizeof needed / sizeof needed[0] };
static const sr_vector which[NEEDED] = {SR_mu_B, SR_sigma2_B, SR_psi2_B, SR_mu, SR_sigma2, SR_psi2};

static double gigabytes(int64_t steps) {
    return 4e-9 * NEEDED * SITES * WIDTH * (double)steps;
}

static void give_up(const char *what) {
    fprintf(stderr, "bench_analysis: %s\n", what);
    exit(1);
}

/* -- the run file ---------------------------------------------------------------------------- */

static void put_step(sr_recorder *r, const double *table, rng *random) {
    for (int site = 0; site < SITES; site++) {
        sr_put_rows(r, site, 1024);
        for (int v = 0; v < NEEDED; v++)
            sr_put_vector(r, site, which[v], table + rng_below(random, TABLE));
    }
}

static void make_run(const char *path, int64_t steps) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    sr_failure why = {0};
    rng random = rng_create(1);
    double table[TABLE + WIDTH];
    for (int i = 0; i < TABLE + WIDTH; i++) table[i] = exp(rng_normal(&random));
    o.program = "bench_analysis", o.model = "bench", o.data = "noise";
    o.vectors_every = 1, o.planned_steps = steps;
    sr_recorder *r = sr_create(path, &o, &why);
    if (!r) give_up(why.text);
    for (int i = 0; i < SITES; i++) {
        char name[32];
        snprintf(name, sizeof name, "site%d", i);
        const sr_site s = {.size = sizeof(sr_site),
                           name,
                           "bn",
                           "encoder",
                           SR_FAMILY_SIGMA,
                           WIDTH,
                           i,
                           0,
                           1e-5,
                           0.9};
        sr_add_site(r, &s), sr_set_observed(r, i);
    }
    for (int64_t step = 1; step <= steps; step++) {
        const sr_step row = {.size = sizeof(sr_step), step, 1024, 0, 1, 0.1, 1};
        sr_begin_step(r, step);
        put_step(r, table, &random);
        sr_end_step(r, &row);
    }
    const sr_finish f = {.size = sizeof(sr_finish), .status = "complete"};
    if (sr_close(r, &f, &why) != SR_OK) give_up(why.text);
}

/* -- timed processes ------------------------------------------------------------------------- */

static hsize_t least(hsize_t a, hsize_t b) {
    return a < b ? a : b;
}

static herr_t read_rows(hid_t set, hsize_t first, hsize_t rows, float *value) {
    const hsize_t start[2] = {first, 0}, count[2] = {rows, SITES * WIDTH};
    hid_t space = H5Dget_space(set), memory = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    const herr_t result = H5Dread(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, value);
    H5Sclose(memory), H5Sclose(space);
    return result;
}

/* Exit status of the process. */
static int read_plainly(const char *path, int64_t steps) {
    float *value = malloc(READ_ROWS * SITES * WIDTH * sizeof *value);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set[NEEDED];
    for (int v = 0; v < NEEDED; v++) {
        char name[64];
        snprintf(name, sizeof name, "/vectors/%s", needed[v]);
        set[v] = H5Dopen2(file, name, H5P_DEFAULT);
    }
    if (!value) return 1;
    const hsize_t all = (hsize_t)steps;
    for (hsize_t first = 0; first < all; first += READ_ROWS)
        for (int v = 0; v < NEEDED; v++)
            if (read_rows(set[v], first, least(all - first, READ_ROWS), value) < 0) return 1;
    for (int v = 0; v < NEEDED; v++) H5Dclose(set[v]);
    free(value);
    return H5Fclose(file) < 0;
}

static int run_analysis(const char *bin, const char *path) {
    char program[4096];
    snprintf(program, sizeof program, "%s/stat-distance", bin);
    const int null = open("/dev/null", O_WRONLY);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0) return 1;
    execl(program, program, path, "--from", "vectors", (char *)NULL);
    return 1;
}

typedef struct cost {
    double wall, user, system, peak; /* seconds; MiB */
} cost;

static double seconds_of(struct timeval t) {
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* bin NULL: plain reading. */
static cost time_one(const char *bin, const char *path, int64_t steps) {
    struct rusage used;
    int state = 0;
    const double start = progress_clock();
    const pid_t pid = fork();
    if (pid == 0) _exit(bin ? run_analysis(bin, path) : read_plainly(path, steps));
    if (pid < 0 || wait4(pid, &state, 0, &used) != pid || state != 0) give_up("a process failed");
    return (cost){progress_clock() - start, seconds_of(used.ru_utime), seconds_of(used.ru_stime),
                  (double)used.ru_maxrss / 1024};
}

static void drop_from_cache(const char *path) {
    const int file = open(path, O_RDONLY);
    if (file < 0 || fsync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
        give_up("cannot drop the file from the page cache");
    close(file);
}

/* -- rounds ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cost median_of(const cost *c, int rounds) {
    double wall[MOST_ROUNDS], user[MOST_ROUNDS], system[MOST_ROUNDS], peak[MOST_ROUNDS];
    for (int i = 0; i < rounds; i++)
        wall[i] = c[i].wall, user[i] = c[i].user, system[i] = c[i].system, peak[i] = c[i].peak;
    qsort(wall, (size_t)rounds, sizeof *wall, by_value);
    qsort(user, (size_t)rounds, sizeof *user, by_value);
    qsort(system, (size_t)rounds, sizeof *system, by_value);
    qsort(peak, (size_t)rounds, sizeof *peak, by_value);
    return (cost){wall[rounds / 2], user[rounds / 2], system[rounds / 2], peak[rounds - 1]};
}

static double least_wall(const cost *c, int rounds) {
    double least = INFINITY;
    for (int i = 0; i < rounds; i++) least = fmin(least, c[i].wall);
    return least;
}

static void print_row(const char *what, const char *cache, const cost *c, int rounds, double gb,
                      double against) {
    const cost m = median_of(c, rounds);
    printf("%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\t%.2f\t%.0f\n", what, cache, m.wall,
           least_wall(c, rounds), m.user, m.system, gb / m.wall, against / m.wall, m.peak);
}

/* Computes until it is killed. */
static pid_t begin_neighbour(void) {
    const pid_t pid = fork();
    if (pid < 0) give_up("a process failed");
    if (pid) return pid;
    for (volatile unsigned n = 0;;) n++;
}

static void measure(const char *bin, const char *path, int64_t steps, int rounds,
                    const char *cache) {
    static cost plain[MOST_ROUNDS], ours[MOST_ROUNDS];
    const bool cold = strcmp(cache, "cold") == 0;
    const double gb = gigabytes(steps);
    const pid_t neighbour = strcmp(cache, "busy") == 0 ? begin_neighbour() : 0;
    for (int r = 0; r < rounds; r++) {
        if (cold) drop_from_cache(path);
        plain[r] = time_one(NULL, path, steps);
        if (cold) drop_from_cache(path);
        ours[r] = time_one(bin, path, steps);
    }
    if (neighbour && (kill(neighbour, SIGKILL) != 0 || waitpid(neighbour, NULL, 0) != neighbour))
        give_up("cannot end a process");
    const double against = median_of(plain, rounds).wall;
    print_row("read", cache, plain, rounds, gb, against);
    print_row("analysis", cache, ours, rounds, gb, against);
}

int main(int argc, char **argv) {
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    const int64_t steps = argc > 3 ? atoll(argv[3]) : 10000;
    if (argc < 2 || rounds < 1 || rounds > MOST_ROUNDS || steps < 1) {
        fprintf(stderr, "usage: bench_analysis BIN [ROUNDS] [STEPS]\n");
        return 2;
    }
    const char *base = getenv("TMPDIR");
    char directory[1024], path[1100];
    snprintf(directory, sizeof directory, "%s/bench.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(directory)) give_up("cannot make a directory in $TMPDIR");
    snprintf(path, sizeof path, "%s/run.h5", directory);
    make_run(path, steps);
    printf("# %.2f GB: %lld steps, %d sites, d %d, %d vectors; medians of %d rounds\n",
           gigabytes(steps), (long long)steps, SITES, WIDTH, NEEDED, rounds);
    printf("what\tcache\tseconds\tbest\tuser\tsystem\tGB_per_s\tratio\tpeak_MiB\n");
    measure(argv[1], path, steps, rounds, "warm");
    measure(argv[1], path, steps, rounds, "busy");
    measure(argv[1], path, steps, rounds, "cold");
    unlink(path), rmdir(directory);
    return 0;
}
