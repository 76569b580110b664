/* conv.c -- chooses the code for each convolution.
 *
 * Winograd if it is faster (conv_winograd_pays), else oneDNN if it is built in and has fast code,
 * else im2col. The choice depends on pass, shape and build alone. */
#include <stdlib.h>

#include "engine/conv/conv.h"
#include "engine/onednn/onednn.h"

struct conv_state {
    scratch_memory memory;
    conv_plans *plans; /* NULL until oneDNN is used */
};

conv_state *conv_create(sr_failure *why) {
    conv_state *c = calloc(1, sizeof *c);
    if (!c) sr_fail(why, SR_MEMORY, "out of memory for convolutions");
    return c;
}

void conv_free(void *state) {
    conv_state *c = state;
    if (!c) return;
#ifdef USE_DNNL
    conv_plans_free(c->plans);
#endif
    free(c->memory.start);
    free(c);
}

/* *done false: the library is absent or has no fast code. */
static sr_status run_dnnl(conv_state *c, int threads, conv_pass pass, const conv_shape *s,
                          const conv_arrays *a, bool *done, sr_failure *why) {
#ifdef USE_DNNL
    if (!c->plans) c->plans = conv_plans_create(&c->memory, why);
    if (!c->plans) return why->status;
    return conv_dnnl(c->plans, threads, pass, s, a, done, why);
#else
    (void)c, (void)threads, (void)pass, (void)s, (void)a, (void)done, (void)why;
    return SR_OK;
#endif
}

sr_status conv_run(conv_state *c, bool direct, int threads, conv_pass pass, const conv_shape *s,
                   const conv_arrays *a, sr_failure *why) {
    if (!direct && conv_winograd_pays(s))
        return conv_winograd(&c->memory, threads, pass, s, a, why);
    bool done = false;
    sr_status status = run_dnnl(c, threads, pass, s, a, &done, why);
    if (status == SR_OK && !done) status = conv_im2col(threads, pass, s, a, why);
    return status;
}
