/* pass_script.h -- runs whose steps call the recorder in the order of a script, and the contents of
 * their files. */
#ifndef TESTS_PASS_SCRIPT_H
#define TESTS_PASS_SCRIPT_H

#include <stdbool.h>

#include "statrec/record.h"
#include "statrec/runfile.h"

enum { SCRIPT_WIDTH = 5, SCRIPT_STEPS = 3, SCRIPT_PIECES = 5, SCRIPT_CASES = 64 };

typedef struct script_case {
    sr_site site;
    bool observed, channels_first;
    sr_element element;
    double mean;          /* mean of the activations; 0 if float16 must store them exactly */
    int64_t samples;      /* rows of each piece, as declared by the host program */
    const char *script;   /* pairs: F B a raw tensor, f b sums; 0 .. 4 one piece of the batch, = the
                           * pieces of `together` as one */
    const char *together; /* "02": pieces */
} script_case;

/* Recorded values of the file's one site. */
typedef struct script_record {
    float vector[SR_VECTOR_COUNT][SCRIPT_STEPS * SCRIPT_WIDTH];
    float scalar[SR_SCALAR_COUNT][SCRIPT_STEPS];
} script_record;

/* One call of a script in a started step. */
void script_call(sr_recorder *r, int site, const script_case *c, int64_t step, const char *call);
/* Makes a run of SCRIPT_STEPS steps at `path`, a site for each of `count` cases, and reads it. */
void script_run(const char *path, const script_case *c, int count, script_record *to);
void script_read(const char *path, int count, script_record *to);

#endif
