/* bare_site.h -- one site with a recorder and its own rows, for tests of single rows. */
#ifndef TESTS_OBSERVE_BARE_SITE_H
#define TESTS_OBSERVE_BARE_SITE_H

#include "observe/hooks.h"
#include "observe/observe.h"
#include "observe/run_record.h"

enum { ROWS = 10, D = 6, PADDED_ROW = 3 };

typedef struct bare {
    params p;
    norm_site site, *sites[1];
    model m;
    tape *t;
    run_record record;              /* only model, recorder and hooks */
    real x[ROWS * D], dy[ROWS * D]; /* all different; may be changed between passes */
    uint8_t mask[ROWS];             /* rows 3 and 7 are padded */
    double position[D];             /* mean position of the batch */
} bare;

/* The run file; equal for all bare sites of a test. */
const char *bare_path(void);
/* final, pairs: as in sr_options. */
void bare_open(bare *b, const char *norm, bool final, int64_t pairs);
/* Runs the site on all rows; *r must live as long as the pass. */
tensor *bare_forward(bare *b, norm_mode mode, norm_rows *r);
/* Abandons a recorder that is still open. */
void bare_close(bare *b);

#endif
