/* bare_site.c -- see bare_site.h. */
#include "bare_site.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"

const char *bare_path(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/bare.h5", check_temporary());
    return path;
}

static void fill(bare *b) {
    for (int i = 0; i < ROWS * D; i++) b->x[i] = (real)sin(i * i), b->dy[i] = (real)cos(3 * i * i);
    for (int i = 0; i < ROWS; i++) b->mask[i] = i != PADDED_ROW && i != 7;
    for (int k = 0; k < D; k++) b->position[k] = k + 1;
}

void bare_open(bare *b, const char *norm, bool final, int64_t pairs) {
    sr_failure why = {0};
    const norm_method *method = norm_find(norm);
    sr_options o = SR_OPTIONS_DEFAULT;
    const bool chosen = true;
    assert_non_null(method);
    norm_options options = norm_options_default(method);
    memset(b, 0, sizeof *b);
    params_init(&b->p, 3);
    check_ok(norm_site_init(&b->site, &b->p, "bare", "x", 0, D, method, &options, &why), &why);
    b->site.takes_positions = true;
    b->sites[0] = &b->site;
    b->m = (model){.site = b->sites, .sites = 1};
    b->t = tape_create(1, &why);
    o.overhead = 0, o.force = true, o.final = final, o.pairs = pairs;
    b->record = (run_record){
        .model = &b->m, .recorder = sr_create(bare_path(), &o, &why), .shares = 1, .own_shares = 1};
    assert_true(b->t && b->record.recorder);
    b->record.hooks = hooks_create(&b->m, b->record.recorder, &chosen, true, NULL, &why);
    if (!b->record.hooks) fail_msg("%s", why.text);
    fill(b);
}

tensor *bare_forward(bare *b, norm_mode mode, norm_rows *r) {
    int64_t dim[2] = {ROWS, D};
    tape_reset(b->t, rng_create(5), mode == NORM_TRAIN, mode == NORM_TRAIN);
    assert_int_equal(norm_rows_init(r, b->t, ROWS, b->mask, mode), SR_OK);
    r->position_mean = b->position;
    tensor *in = tape_tensor(b->t, 2, dim);
    assert_non_null(in);
    in->wants_grad = mode == NORM_TRAIN;
    memcpy(in->value, b->x, sizeof b->x);
    tensor *out = norm_apply(&b->site, b->t, in, r);
    if (!out) fail_msg("%s", tape_failure(b->t)->text);
    return out;
}

void bare_close(bare *b) {
    hooks_free(b->record.hooks);
    if (b->record.recorder) sr_abandon(b->record.recorder);
    tape_free(b->t);
    norm_site_free(&b->site);
    params_free(&b->p);
}
