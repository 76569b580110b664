/* bench_figures.c -- time of every figure that runs without vectors allow.
 *
 *   bench_figures BIN [ROUNDS] [STEPS] [SITES]   default 5 rounds, 100000 steps, 61 sites; BIN holds the programs
 *
 * Makes a run file of STEPS steps x SITES BN sites with every scalar of each, losses and 50 evaluations
 * in $TMPDIR. A round draws every figure of `statplot list` once, to a PDF, from as many names of that
 * file as the figure wants runs. Figures that it does not allow (vectors, embeddings, several
 * processes) are named in a `#` line. `cpu` is user and system
 * time of statplot, its analyses and gnuplot: what the figure costs when the machine is shared.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program/progress.h"
#include "noise_run.h"

enum { MOST_RUNS = 3, MOST_ROUNDS = 100, MOST_FIGURES = 100 };

static void give_up(const char *what) {
    fprintf(stderr, "bench_figures: %s\n", what);
    exit(1);
}

/* -- statplot -------------------------------------------------------------------------------- */

typedef struct figure {
    char name[64];
    double wall[MOST_ROUNDS], cpu[MOST_ROUNDS];
    long peak; /* KiB */
    int runs;  /* that it wants */
    bool drawn;
} figure;

typedef struct bench {
    const char *bin;
    char directory[1024], run[MOST_RUNS][1100], output[1100];
    figure figure[MOST_FIGURES];
    int figures;
} bench;

/* Number of runs that a figure takes, from "NAME\\tA.h5 B.h5 [MORE.h5...] ...". */
static int runs_of(const char *line) {
    const char *takes = strchr(line, '\t');
    int runs = 0;
    const char *end = takes ? takes + 1 + strcspn(takes + 1, "[\t") : line;
    for (const char *at = takes; at && (at = strstr(at, ".h5")) && at < end; at++) runs++;
    return runs < MOST_RUNS ? runs : MOST_RUNS;
}

static void list_figures(bench *b) {
    char line[4096];
    snprintf(line, sizeof line, "'%s/statplot' list", b->bin);
    FILE *list = popen(line, "r");
    while (list && b->figures < MOST_FIGURES && fgets(line, sizeof line, list))
        if (sscanf(line, "%63s", b->figure[b->figures].name) == 1)
            b->figure[b->figures++].runs = runs_of(line);
    if (!list || pclose(list) != 0 || !b->figures) give_up("statplot list failed");
}

static void be_statplot(const bench *b, const figure *f) {
    char program[4096];
    snprintf(program, sizeof program, "%s/statplot", b->bin);
    const int null = open("/dev/null", O_WRONLY);
    if (null >= 0 && dup2(null, STDERR_FILENO) >= 0)
        execl(program, program, f->name, "-o", b->output, f->runs > 0 ? b->run[0] : NULL,
              f->runs > 1 ? b->run[1] : NULL, f->runs > 2 ? b->run[2] : NULL, (char *)NULL);
    _exit(127);
}

static double seconds_of(struct timeval t) {
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static void draw(const bench *b, figure *f, int round) {
    struct rusage used;
    int state = 0;
    const double start = progress_clock();
    const pid_t pid = fork();
    if (pid == 0) be_statplot(b, f);
    if (pid < 0 || wait4(pid, &state, 0, &used) != pid) give_up("cannot start statplot");
    f->wall[round] = progress_clock() - start;
    f->cpu[round] = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    f->peak = used.ru_maxrss > f->peak ? used.ru_maxrss : f->peak;
    f->drawn = state == 0;
    unlink(b->output);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_figures(bench *b, int rounds) {
    printf("figure\tseconds\tbest\tcpu\tcpu_best\tpeak_MiB\n");
    for (int i = 0; i < b->figures; i++) {
        figure *f = &b->figure[i];
        if (!f->drawn) continue;
        qsort(f->wall, (size_t)rounds, sizeof *f->wall, by_value);
        qsort(f->cpu, (size_t)rounds, sizeof *f->cpu, by_value);
        printf("%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\n", f->name, f->wall[rounds / 2], f->wall[0],
               f->cpu[rounds / 2], f->cpu[0], (double)f->peak / 1024);
    }
    for (int i = 0; i < b->figures; i++)
        if (!b->figure[i].drawn) printf("# not of such runs: %s\n", b->figure[i].name);
}

int main(int argc, char **argv) {
    static bench b;
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    const int64_t steps = argc > 3 ? atoll(argv[3]) : 100000;
    const int sites = argc > 4 ? atoi(argv[4]) : 61;
    if (argc < 2 || rounds < 1 || rounds > MOST_ROUNDS || steps < 1 || sites < 1) {
        fprintf(stderr, "usage: bench_figures BIN [ROUNDS] [STEPS] [SITES]\n");
        return 2;
    }
    const char *base = getenv("TMPDIR");
    b.bin = argv[1];
    snprintf(b.directory, sizeof b.directory, "%s/bench.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(b.directory)) give_up("cannot make a directory in $TMPDIR");
    for (int i = 0; i < MOST_RUNS; i++)
        snprintf(b.run[i], sizeof b.run[i], "%s/run%d.h5", b.directory, i);
    snprintf(b.output, sizeof b.output, "%s/figure.pdf", b.directory);
    list_figures(&b);
    sr_failure why = {0};
    if (noise_run_make(b.run[0], steps, sites, &why) != SR_OK) give_up(why.text);
    for (int i = 1; i < MOST_RUNS; i++)
        if (link(b.run[0], b.run[i]) != 0) give_up("cannot give the run file another name");
    printf("# %lld steps, %d sites, scalars; medians of %d rounds\n", (long long)steps, sites,
           rounds);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < b.figures; i++)
            if (r == 0 || b.figure[i].drawn) draw(&b, &b.figure[i], r);
    print_figures(&b, rounds);
    for (int i = 0; i < MOST_RUNS; i++) unlink(b.run[i]);
    rmdir(b.directory);
    return 0;
}
