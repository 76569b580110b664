/* host.c -- a program that records by libstatrec, and events that may happen to such a program.
 *
 *   host MODE FILE STEPS   with MODE: plain, kill, fork, exec, pipe, descriptors, threads, close
 *
 * hosts.py compares the files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "statrec/record.h"

typedef struct library {
    void *handle;
    sr_recorder *(*create)(const char *, const sr_options *, sr_failure *);
    int (*add_site)(sr_recorder *, const sr_site *);
    sr_status (*begin_step)(sr_recorder *, int64_t);
    sr_status (*put_vector)(sr_recorder *, int, sr_vector, const double *);
    sr_status (*put_rows)(sr_recorder *, int, int64_t);
    sr_status (*end_step)(sr_recorder *, const sr_step *);
    sr_status (*close)(sr_recorder *, const sr_finish *, sr_failure *);
} library;

#define TAKE(l, member, name) (*(void **)&(l)->member = dlsym((l)->handle, name))

static library load(void) {
    library l = {.handle = dlopen("libstatrec.so.1", RTLD_NOW)};
    if (!l.handle) exit((fprintf(stderr, "host: %s\n", dlerror()), 9));
    TAKE(&l, create, "sr_create"), TAKE(&l, add_site, "sr_add_site");
    TAKE(&l, begin_step, "sr_begin_step"), TAKE(&l, put_vector, "sr_put_vector");
    TAKE(&l, put_rows, "sr_put_rows"), TAKE(&l, end_step, "sr_end_step");
    TAKE(&l, close, "sr_close");
    return l;
}

static sr_recorder *begin(const library *l, const char *path) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.flush_steps = 4, o.flush_seconds = 1e9, o.overhead = 0, o.sync = SR_SYNC_NONE,
    o.vectors_every = 1;
    sr_recorder *r = l->create(path, &o, &why);
    if (!r) exit((fprintf(stderr, "host: %s\n", why.text), 3));
    sr_site s = SR_INIT(sr_site, .name = "a", .norm = "bn", .kind = "conv", .width = 3,
                        .family = SR_FAMILY_SIGMA, .eps = 1e-5, .alpha = 0.9);
    if (l->add_site(r, &s) < 0) exit(4);
    return r;
}

static sr_status step(const library *l, sr_recorder *r, int64_t k) {
    const double value[3] = {(double)k, 1, 2};
    sr_step row = SR_INIT(sr_step, .update = k, .tokens = 1, .epoch = 0, .loss = 1.0 / (double)k,
                          .lr = 1, .grad_norm = 1);
    l->begin_step(r, k);
    l->put_rows(r, 0, 5);
    l->put_vector(r, 0, SR_mu_B, value);
    return l->end_step(r, &row);
}

static int finish(const library *l, sr_recorder *r) {
    sr_failure why = {0};
    const sr_finish end = SR_INIT(sr_finish, .status = "complete", .reason = "");
    if (l->close(r, &end, &why) == SR_OK) return 0;
    fprintf(stderr, "host: %s\n", why.text);
    return 1;
}

typedef struct job {
    const library *l;
    char path[4096];
    long steps;
    int result;
} job;

static void *record(void *at) {
    job *j = at;
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* HDF5 is not safe for threads */
    pthread_mutex_lock(&one);
    sr_recorder *r = begin(j->l, j->path);
    pthread_mutex_unlock(&one);
    for (long k = 1; k <= j->steps; k++) {
        pthread_mutex_lock(&one);
        step(j->l, r, k);
        pthread_mutex_unlock(&one);
    }
    pthread_mutex_lock(&one);
    j->result = finish(j->l, r);
    pthread_mutex_unlock(&one);
    return NULL;
}

/* Two recorders, one in each thread. */
static int in_threads(const library *l, const char *path, long steps) {
    pthread_t thread[2];
    job j[2];
    for (int i = 0; i < 2; i++) {
        j[i] = (job){.l = l, .steps = steps};
        snprintf(j[i].path, sizeof j[i].path, "%s%s", path, i ? "-2" : "");
        pthread_create(&thread[i], NULL, record, &j[i]);
    }
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    return j[0].result | j[1].result;
}

/* Event after half of the steps. */
static void happen(const char *mode, const library *l, sr_recorder *r, char **argv) {
    if (!strcmp(mode, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(mode, "exec")) execlp("true", "true", (char *)NULL);
    if (!strcmp(mode, "pipe")) {
        int end[2];
        if (pipe(end) != 0) exit(5);
        close(end[0]);
        dup2(end[1], STDOUT_FILENO);
        signal(SIGPIPE, SIG_IGN);
        printf("a line that nobody reads\n");
        fflush(stdout);
    }
    if (!strcmp(mode, "descriptors")) {
        struct rlimit few = {16, 16};
        setrlimit(RLIMIT_NOFILE, &few);
        while (dup(STDERR_FILENO) >= 0) continue;
    }
    if (!strcmp(mode, "fork")) {
        const pid_t child = fork();
        if (child == 0) {
            step(l, r, 100000);
            if (argv[3][0] % 2) finish(l, r);
            exit(0); /* with the library's exit handlers */
        }
        waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    library l = load();
    const long steps = atol(argv[3]);
    if (!strcmp(argv[1], "threads")) return in_threads(&l, argv[2], steps);
    sr_recorder *r = begin(&l, argv[2]);
    for (long k = 1; k <= steps; k++) {
        if (step(&l, r, k) != SR_OK) break;
        if (k == steps / 2) happen(argv[1], &l, r, argv);
    }
    const int result = finish(&l, r);
    if (!strcmp(argv[1], "close")) dlclose(l.handle); /* its exit handlers must still be there */
    return result;
}
