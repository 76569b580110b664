/* declared_run.h -- run files of a program that declares custom scalars. */
#ifndef TESTS_DECLARED_RUN_H
#define TESTS_DECLARED_RUN_H

#include <stdint.h>

enum { DECLARED_STEPS = 40 };

/* 40 steps of the sites stem and top, whose method takes no batch statistics (observed: they are
 * observed). With a unit the program declares
 *     g_clip       per site, in `unit`: scale * step at stem, twice that at top
 *     net-cosine   per site, 1: 1 in odd steps and -1 in even ones, half of that after step 20, at
 *                  top alone
 *     clip_share   per step, percent: scale * step
 *     `another`    per site, in metres: 5 (NULL: not declared) */
typedef struct declared_run {
    const char *path, *unit, *another;
    double scale;
    uint64_t seed;
    int width;
    int observed;
} declared_run;

void write_declared_run(const declared_run *run);

#endif
